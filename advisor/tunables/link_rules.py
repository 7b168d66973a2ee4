"""udev rules that give a link its values when it appears (udev(7)): at boot, and when its driver is loaded again.

One mechanism for all of them: of .link files only the first that matches a link counts, and it knows a part of them
only (systemd.link(5)). The rules stand behind 80-net-setup-link.rules, which names the link; what belongs to a queue
stands in a second file, behind the number of queues.
"""

from __future__ import annotations

import re

from advisor.host import Host, Missing, RunCommand
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit
from advisor.tunables.link_identity import ByAddress, ByName, ByPlace, link_identity

RULES = "/etc/udev/rules.d/91-advisor-link.rules"
QUEUE_RULES = "/etc/udev/rules.d/92-advisor-link-queues.rules"

_FRESH = b"# Values of links that last over a reboot. See udev(7).\n"
_RELOAD = (RunCommand(("udevadm", "control", "--reload")),)
_FOLDERS = ("/usr/sbin", "/sbin", "/usr/bin", "/bin")
_PLAIN = lazy_regex(r"[\w.:-]+", re.ASCII)


def run_rule(host: Host, link: str, program: str, words: str, value: str, *, path: str = RULES) -> FileEdit | Missing:
    """A rule that runs ``PROGRAM WORDS VALUE``, where ``$name`` is the link. Missing says why there can be none."""
    place = next((f"{folder}/{program}" for folder in _FOLDERS if host.exists(f"{folder}/{program}")), None)
    if place is None:
        return Missing("absent", f"{program} is not installed, so that nothing could set it at boot")
    match = _match(host, link)
    if isinstance(match, Missing):
        return match
    return FileEdit(path, "udev-run", f'{match}, RUN+="{place} {words}', value, _FRESH, reload=_RELOAD)


def attribute_rule(host: Host, link: str, attribute: str, value: str) -> FileEdit | Missing:
    """A rule that writes an attribute of the link."""
    match = _match(host, link)
    if isinstance(match, Missing):
        return match
    return FileEdit(RULES, "udev-rule", match, f'ATTR{{{attribute}}}="{value}"', _FRESH, reload=_RELOAD)


def _match(host: Host, link: str) -> str | Missing:
    """The rule's match part: a port by its own address and driver or by its place, a virtual link by its name."""
    if not host.exists("/run/udev/data") and not host.exists("/run/udev/control"):
        return Missing("absent", "udev does not run here, so that no rule would be read")
    if not _PLAIN.fullmatch(link):
        return Missing("unreadable", "its name cannot be written into a udev rule")
    match link_identity(host, link):
        case ByName(name):
            # A virtual link may be made under one name and get its own afterwards.
            return f'ACTION=="add|move", SUBSYSTEM=="net", KERNEL=="{name}"'
        case ByAddress(address, driver):
            known = driver if _PLAIN.fullmatch(driver) else "?*"
            return f'ACTION=="add", SUBSYSTEM=="net", ATTR{{address}}=="{address}", DRIVERS=="{known}"'
        case ByPlace(path) if _PLAIN.fullmatch(path):
            return f'ACTION=="add", SUBSYSTEM=="net", ENV{{ID_PATH}}=="{path}"'
        case ByPlace():
            return Missing("unreadable", "the path that it is known by cannot be written into a udev rule")
        case Missing() as missing:
            return missing
