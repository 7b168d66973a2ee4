"""Where a link's MTU is kept: in the file of the network manager that sets the link up at boot.

A second place, a .link file in addition to a manager's own settings, would be overridden by the manager as soon as it
sets the link up after udev. So a manager's file is written or, where that is impossible, nothing is, with the reason.
"""

from __future__ import annotations

import re

import msgspec

from advisor.facts.network.link_claim import LinkOwner, is_plain, is_stopped, udev_property
from advisor.facts.network.link_files import Placed, brought_up, parse_assignments, read_stanzas, sets_mtu
from advisor.facts.network.link_managers import (
    KEYFILES,
    UNIT,
    VENDOR_KEYFILES,
    list_files,
    read_definitions,
    read_link_owner,
    read_network_mtu,
)
from advisor.facts.text import last_value
from advisor.host import Host, Missing, Probe, ReadCommand, ReadEthtool, ReadFile, ReadIrqs, RunCommand, Step, WriteFile
from advisor.host.patterns import lazy_regex
from advisor.host.steps import SetEthtool, SetIrqs, SetMtu, SetQdisc, SetTxqueuelen
from advisor.tunables.edits import FileEdit, apply_edit, mentions_key
from advisor.tunables.file_edits import edit_netplan, is_one_value_a_line
from advisor.tunables.preflight import ByAddress, ByName, ByPlace, link_identity

# udev rules that give a link its values when it appears (udev(7)): at boot, and when its driver is loaded again.

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


_HEADING = 1000  # characters in which a program says that a file is its own
_DROP_IN = "50-advisor-mtu.conf"
_NETPLAN_FILE = "/etc/netplan/90-advisor.yaml"
# What netplan finds rather than makes: a definition in our own file may outlast the one that it amends, and do no harm.
_PHYSICAL = frozenset({"ethernets", "modems", "wifis"})
_WITH_MTU = _PHYSICAL | {"bonds", "bridges", "dummy-devices", "tunnels", "virtual-ethernets", "vlans"}
_ETHERNET_PROFILES = frozenset(
    {
        *("ethernet", "802-3-ethernet", "bond", "bridge", "team", "vlan", "vxlan", "macvlan", "veth", "dummy", "tun"),
        *("macsec", "ovs-interface", "vrf"),
    }
)
_OWN_MTU_PROFILES = frozenset({"infiniband", "ip-tunnel", "wireguard"})


def persist_mtu(host: Host, link: str, value: str) -> FileEdit | Missing:
    """The edit that makes the MTU last, in the owner's own file. Missing says why there is none."""
    edit = _make_edit(host, link, value)
    if isinstance(edit, FileEdit) and not is_plain(edit.path):
        return Missing("unreadable", "the name of the file that holds it cannot be written")
    return edit


def _make_edit(host: Host, link: str, value: str) -> FileEdit | Missing:
    owner = read_link_owner(host, link)
    if isinstance(owner, Missing):
        return owner
    if owner.shared_with:
        others = " and ".join(owner.shared_with)
        return Missing("unreadable", f"{owner.evidence}, with {others} alike: give it settings of its own")
    match owner.manager:
        case "NetworkManager":
            file = str(owner.file)
            directory, _, name = file.rpartition("/")
            path = f"{KEYFILES}/{name}" if directory == VENDOR_KEYFILES else file
            reload = _reload_profile(host, path)
            if directory not in (KEYFILES, VENDOR_KEYFILES):
                return _in_ifcfg(host, file, value, reload=reload)
            content = host.read_bytes(file)
            if isinstance(content, Missing):
                return Missing("unreadable", f"{file}: {content.why}")
            if path != file and host.exists(path):
                return Missing(
                    "unreadable", f"{path} is another profile than {file}, which it would have to stand in for"
                )
            section = _profile_section(content.decode("utf-8", "replace"))
            if isinstance(section, Missing):
                return Missing("unreadable", f"{file}: {section.why}")
            fresh = content if path != file else b""
            return FileEdit(path, "section", f"{section}/", f"mtu={value}", fresh, mode=0o600, reload=reload)
        case "systemd-networkd":
            file = str(owner.file)
            said = read_network_mtu(host, file)
            if isinstance(said, Missing):
                return said
            if not said.files and not said.from_dhcp:
                return link_file_edit(host, link, f"MTUBytes={value}")
            path = f"/etc/systemd/network/{file.rpartition('/')[2]}.d/{_DROP_IN}"
            last = said.files[-1] if said.files else file
            if last != file and last.rpartition("/")[2] > _DROP_IN:
                if not last.startswith("/etc/"):
                    return Missing("unreadable", f"{last} is read after any file of advisor's and sets MTUBytes=")
                path = last
            # Nothing to reload: networkd would set the link up again.
            return FileEdit(path, "section", "Link/", f"MTUBytes={value}")
        case "netplan":
            return _in_netplan(host, owner, value)
        case "ifupdown":
            return _in_interfaces(host, link, owner, value)
        case "network-scripts" | "wicked":
            return _in_ifcfg(host, str(owner.file), value, reload=())
        case "udev":
            return link_file_edit(host, link, f"MTUBytes={value}")


def persistence_notes(host: Host, link: str, value: str) -> tuple[str, ...]:
    """What a reader of the plan should know of the place: whose it is, and who else writes it."""
    owner = read_link_owner(host, link)
    edit = persist_mtu(host, link, value)
    if isinstance(owner, Missing) or isinstance(edit, Missing) or edit.path.endswith(".link"):
        return ()
    is_made = "cloud-init" in host.read_or_empty(edit.path)[:_HEADING]
    made = (f"{edit.path} was generated by cloud-init: it may be generated again, without this MTU",) if is_made else ()
    return (f"{link}: {owner.evidence}", *made)


def _reload_profile(host: Host, profile: str) -> tuple[RunCommand, ...]:
    """What makes NetworkManager read a profile again. It is not activated again: the live value is set already."""
    return () if is_stopped(host, UNIT) else (RunCommand(("nmcli", "connection", "load", profile)),)


def _profile_section(text: str) -> str | Missing:
    """The section that holds the MTU: that of Ethernet for most kinds of link, under either of its names."""
    kind = last_value(text, "connection", "type", continued=False) or ""
    if kind in _OWN_MTU_PROFILES:
        return kind
    if kind not in _ETHERNET_PROFILES:
        return Missing("unreadable", f"a profile of type {kind!r} has no MTU that could be set")
    return "802-3-ethernet" if re.search(r"^[ \t]*\[802-3-ethernet\]", text, re.MULTILINE) else "ethernet"


def _in_netplan(host: Host, owner: LinkOwner, value: str) -> FileEdit | Missing:
    kind, _, identity = owner.name.partition("/")
    if kind not in _WITH_MTU:
        return Missing("unreadable", f"{owner.evidence}; {kind} have no MTU in netplan")
    if not re.fullmatch(r"[!-~]+", identity):
        return Missing("unreadable", f"{identity!r} cannot be written as an ID of netplan")
    path = _netplan_path(host, kind, identity)
    if isinstance(path, Missing):
        return path
    # Its generated files would else bring the old value back when the renderer sets the link up again.
    reload = (RunCommand(("netplan", "generate")), *(_reload_profile(host, owner.profile) if owner.profile else ()))
    edit = FileEdit(path, "netplan", owner.name, value, mode=0o600, reload=reload)
    if edit_netplan(host.read_or_empty(path), owner.name, value) is None:
        return Missing("unreadable", f"{path} cannot be edited as it is laid out")
    return edit


def _netplan_path(host: Host, kind: str, identity: str) -> str | Missing:
    """Our own file for what netplan finds, if it is read last; the file that defines it for what netplan makes."""
    definitions = read_definitions(host, identity)
    if isinstance(definitions, Missing):
        return definitions
    found = [one for one in definitions if one.kind == kind]
    setting = [one for one in found if one.mtu is not None]
    own = _NETPLAN_FILE.rpartition("/")[2]
    if kind in _PHYSICAL and not (setting and setting[-1].path.rpartition("/")[2] > own):
        hiding = next((path for path in list_files(host) if path.endswith(f"/{own}")), _NETPLAN_FILE)
        return hiding if hiding == _NETPLAN_FILE else Missing("unreadable", f"{hiding} hides {_NETPLAN_FILE}")
    last = (setting or found)[-1].path
    if not last.startswith("/etc/netplan/"):
        return Missing("unreadable", f"{last}, which is not the administrator's, has the last word on it in netplan")
    return last


def _in_interfaces(host: Host, link: str, owner: LinkOwner, value: str) -> FileEdit | Missing:
    placed = read_stanzas(host)
    if isinstance(placed, Missing):
        return placed
    name = _stanza_with_mtu(placed, owner.name)
    if isinstance(name, Missing):
        return name
    own = [one for one in placed if one.stanza.interface == name]
    key = name if name == link else f"{name} {link}"
    edits = [FileEdit(path, "interfaces", key, value) for path in dict.fromkeys(one.path for one in own)]
    contents = [host.read_bytes(edit.path) for edit in edits]
    setting = [
        edit
        for edit, content in zip(edits, contents, strict=True)
        if not isinstance(content, Missing) and mentions_key(content, edit)
    ]
    if len(setting) > 1:
        return Missing("unreadable", f"{setting[0].path} and {setting[1].path} both give 'iface {name}' an MTU")
    best = min(own, key=lambda one: (not one.stanza.takes_mtu, one.stanza.family != "inet"))
    return setting[0] if setting else next(edit for edit in edits if edit.path == best.path)


def _stanza_with_mtu(placed: tuple[Placed, ...], name: str) -> str | Missing:
    """The logical interface whose stanza has the MTU: its own, or the only one that it inherits one from.

    ifup joins a value that is inherited and one of the stanza itself to one that is no number.
    """
    found: set[str] = set()
    pending = [name]
    while pending:
        heir = pending.pop()
        for one in placed:
            if one.stanza.interface == heir:
                new = set(one.stanza.inherits) - found
                found |= new
                pending += new
    inherited = frozenset(found)
    giving = [one for one in placed if one.stanza.interface in inherited and sets_mtu(one)]
    if not giving:
        return name
    template = str(giving[0].stanza.interface)
    heirs = {one.stanza.interface for one in placed if template in one.stanza.inherits}
    if len(giving) > 1 or heirs - inherited - {name} or template in brought_up(placed):
        return Missing("unreadable", f"it has its MTU from 'iface {template}' in {giving[0].path}, and so have others")
    return template


def _in_ifcfg(host: Host, path: str, value: str, *, reload: tuple[RunCommand, ...]) -> FileEdit | Missing:
    content = host.read_bytes(path)
    if isinstance(content, Missing):
        return Missing("unreadable", f"{path}: {content.why}")
    edit = FileEdit(path, "shell", "MTU", value, reload=reload)
    after = apply_edit(content, edit).decode("utf-8", "replace")
    if not is_one_value_a_line(content.decode("latin-1")) or parse_assignments(after).get("MTU") != value:
        return Missing("unreadable", f"{path} holds a value over several lines, or more than values")
    return edit


# Probes and steps of a link under another name of it.

_PLACE = lazy_regex(r"(/sys/class/net|/proc/sys/net/(?:ipv[46]/(?:conf|neigh)|mpls/conf))/([^/]+)(/.*)", re.DOTALL)

_replace = msgspec.structs.replace


def renamed_probe(probe: Probe, old: str, new: str) -> Probe:
    """``probe`` as it is to be asked where the link ``old`` is named ``new``."""
    match probe:
        case ReadFile(path):
            return _replace(probe, path=_rename_path(path, old, new))
        case ReadCommand(argv):
            return _replace(probe, argv=_rename_argv(argv, old, new))
        case ReadEthtool(link) | ReadIrqs(link):
            return _replace(probe, link=new) if link == old else probe


def renamed_step(step: Step, old: str, new: str) -> Step:
    """``step`` as it is to be done where the link ``old`` is named ``new``."""
    match step:
        case WriteFile(path):
            return _replace(step, path=_rename_path(path, old, new))
        case RunCommand(argv):
            return _replace(step, argv=_rename_argv(argv, old, new))
        case SetMtu(link) | SetTxqueuelen(link) | SetEthtool(link) | SetQdisc(link) | SetIrqs(link):
            return _replace(step, link=new) if link == old else step
    return step


def _rename_path(path: str, old: str, new: str) -> str:
    found = _PLACE.fullmatch(path)
    return f"{found[1]}/{new}{found[3]}" if found and found[2] == old else path


def _rename_argv(argv: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    """ip(8) and tc(8) take the name behind ``dev``, ethtool(8) behind its option."""
    return tuple(
        new if word == old and (argv[place - 1] == "dev" or (argv[0] == "ethtool" and place == 2)) else word
        for place, word in enumerate(argv)
    )
