"""udev rules that give a link its values when it appears (udev(7)): at boot, and when its driver is loaded again.

One mechanism for all of them: of .link files only the first that matches a link counts, and it knows a part of them
only (systemd.link(5)). The rules stand behind 80-net-setup-link.rules, which names the link; what belongs to a queue
stands in a second file, behind the number of queues.
"""

from __future__ import annotations

import re

from advisor.facts.link_claim import udev_property
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


_DIRECTORY = "/etc/systemd/network"
_DEFAULT_LINK_FILE = "/usr/lib/systemd/network/99-default.link"
# Of the files that match a link only the first is read.
_PREFIXES = ("10", "05", "00")


def link_file_edit(host: Host, link: str, settings: str) -> FileEdit | Missing:
    """A .link file that matches this link alone and keeps what its present one says; ``settings`` are ``KEY=VALUE``.

    One that carried these alone would take the naming and MAC policies of the file it hides from the link, and
    rename it at the next boot.
    """
    match = _match_section(host, link)
    if isinstance(match, Missing):
        return match
    present = udev_property(host, link, "ID_NET_LINK_FILE")
    path = _file_path(link, present, settings)
    if isinstance(path, Missing):
        return path
    lines = []
    section = ""
    # A line that ends in a backslash goes on in the next one (systemd.syntax(7)).
    for line in host.read_or_empty(present or _DEFAULT_LINK_FILE).replace("\\\n", " ").splitlines():
        stripped = " ".join(line.split())
        if stripped.startswith("["):
            section = stripped
        elif section == "[Link]" and "=" in stripped and stripped[0] not in "#;":
            lines.append(stripped)
    own = tuple(one.partition("=")[0] for one in settings.split())
    link_section = "".join(line + "\n" for line in lines if line.partition("=")[0].strip() not in own)
    fresh = f"[Match]\n{match}\n\n[Link]\n{link_section}".encode()
    return FileEdit(path, "section", "Link/", settings, fresh, reload=_RELOAD)


def _match_section(host: Host, link: str) -> str | Missing:
    match link_identity(host, link):
        case ByName(name) if re.fullmatch(r"[\w.-]+", name, re.ASCII):
            return f"OriginalName={name}"
        case ByName():
            return Missing("unreadable", "its name cannot be written as a match of a .link file")
        case ByAddress(address, driver):
            return f"MACAddress={address}" + (f"\nDriver={driver}" if driver else "")
        case ByPlace(path):
            return f"Path={path}"
        case Missing() as missing:
            return missing


def _file_path(link: str, present: str | None, settings: str) -> str | Missing:
    """A place before the file that the link has now, by name: the directory does not count."""
    first = present.rpartition("/")[2] if present else ""
    for prefix in _PREFIXES:
        name = f"{prefix}-advisor-{_file_name(link)}.link"
        if not first or name <= first:
            return f"{_DIRECTORY}/{name}"
    key = settings.partition("=")[0]
    return Missing("unreadable", f"{present} comes before any other .link file: set {key}= there")


def _file_name(link: str) -> str:
    return re.sub(r"[^\w.-]", lambda found: "".join(f"_{byte:02x}" for byte in found[0].encode()), link, flags=re.ASCII)
