"""What a plan has to read from the host itself about a change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, Protocol, runtime_checkable

import msgspec

from advisor.facts.network.link_claim import udev_property
from advisor.host import Host, Missing, Probe, ReadFile, RunCommand, Step, WriteFile
from advisor.host.missing import Identity
from advisor.host.patterns import lazy_regex

# What a link is known by: at boot, before anybody has given it its name, and since a plan was made: names are given
# to other links, and links get other names.

_ADDRESS = lazy_regex(r"[0-9a-f]{2}(:[0-9a-f]{2}){5,19}")


class ByName(msgspec.Struct, frozen=True):
    """A virtual link: whoever makes it gives it this name."""

    name: str


class ByAddress(msgspec.Struct, frozen=True):
    """A port by the address that it was built with. ``driver`` distinguishes it from a VLAN or macvlan on top, which
    shows the same address; empty where the port's driver is not known."""

    address: str
    driver: str


class ByPlace(msgspec.Struct, frozen=True):
    """A port by udev's ID_PATH: the slot that it is in."""

    path: str


def link_identity(host: Host, link: str) -> ByName | ByAddress | ByPlace | Missing:
    """What identifies a link when it appears. Missing where nothing about it lasts."""
    base = f"/sys/class/net/{link}"
    if not host.exists(f"{base}/device"):
        return ByName(link)
    # A bond member shows the bond's address; its own one is kept aside.
    member = host.read(f"{base}/bonding_slave/perm_hwaddr")
    own = host.read(f"{base}/address") if host.read(f"{base}/addr_assign_type") == "0" else member
    address = member if isinstance(own, Missing) else own
    if not isinstance(address, Missing) and _ADDRESS.fullmatch(address):
        driver = host.readlink(f"{base}/device/driver")
        return ByAddress(address, "" if isinstance(driver, Missing) else driver.rpartition("/")[2])
    path = udev_property(host, link, "ID_PATH")
    return ByPlace(path) if path else Missing("unreadable", "it has no lasting address or path to be known by at boot")


_SYSCTL = lazy_regex(r"sysctl:net\.(?:ipv[46]\.(?:conf|neigh)|mpls\.conf)\.([^.]+)\.[^.]+")
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_LINKS = "/sys/class/net"


class LinkMark(msgspec.Struct, frozen=True):
    """What identifies a link: ``ifindex`` within one boot, across boots the permanent ``address`` and the path
    of its ``device``. None where the kernel gives no such thing; a virtual link has neither of the last two, and is
    known by its name alone after a boot."""

    name: str
    ifindex: str | None
    boot_id: str | None
    address: str | None
    device: str | None


class LostLink(msgspec.Struct, frozen=True):
    """Why a link is not found. ``is_gone``: for certain, and what was set on it with it."""

    why: str
    is_gone: bool


def link_of(tunable: str) -> str | None:
    """The name of the link that a tunable is of; None for all others."""
    if tunable.startswith("link:"):
        return tunable.split(":")[1]
    found = _SYSCTL.fullmatch(tunable)
    name = found[1].replace("/", ".") if found else None
    return None if name in ("all", "default") else name


def mark_of(host: Host, name: str) -> LinkMark | None:
    """None where there is no such link, or nothing identifies it."""
    base = f"{_LINKS}/{name}"
    ifindex = host.read_text(f"{base}/ifindex")
    if ifindex is None:
        return None
    address = host.read_text(f"{base}/bonding_slave/perm_hwaddr")
    if host.read_text(f"{base}/addr_assign_type") == "0":
        address = host.read_text(f"{base}/address")
    device, boot_id = host.real(f"{base}/device"), host.read_text(_BOOT_ID)
    if isinstance(device, Missing):
        # A virtual link shows the address of the one below it, or a random one.
        return LinkMark(name, ifindex, boot_id, None, None)
    return LinkMark(name, ifindex, boot_id, address, device)


def marks_of(host: Host) -> tuple[LinkMark, ...]:
    """Of each link of the host."""
    return tuple(mark for name in host.names(_LINKS) if (mark := mark_of(host, name)) is not None)


def place_of(host: Host, mark: LinkMark) -> str | LostLink:
    """The name that the link has now. Within one boot it is found by its ifindex, after a boot by its permanent address
    and its device together, and a virtual one by its name; what is known of it besides must agree."""
    names = host.names(_LINKS)
    if mark.boot_id is not None and mark.boot_id == host.read_text(_BOOT_ID):
        for name in (mark.name, *names):
            if host.read_text(f"{_LINKS}/{name}/ifindex") == mark.ifindex:
                return name if _is_same_link(mark, mark_of(host, name)) else _report_unclear(mark, name)
        return _report_gone(host, mark)
    found = {name: now for name in names if (now := mark_of(host, name)) is not None}
    if mark.device is None:
        # Who makes a virtual link gives it its name.
        is_there = mark.name in found and found[mark.name].device is None
        return mark.name if is_there else _report_gone(host, mark)
    same = [name for name, now in found.items() if (now.address, now.device) == (mark.address, mark.device)]
    if len(same) == 1:
        return same[0]
    known = {mark.address, mark.device} - {None}
    alike = same or [name for name, now in found.items() if known & {now.address, now.device}]
    return _report_unclear(mark, *alike) if alike else _report_gone(host, mark)


def foreign_links(host: Host, marks: Iterable[LinkMark]) -> Mapping[str, str]:
    """Names that do not stand for the link that they stood for, each with the reason."""
    found = {}
    for mark in marks:
        place = place_of(host, mark)
        if isinstance(place, LostLink):
            found[mark.name] = place.why
        elif place != mark.name:
            what = "is another link than it was" if host.exists(f"{_LINKS}/{mark.name}") else "is not there"
            found[mark.name] = f"{mark.name} {what}; the one that is meant is {place} now"
    return found


def _is_same_link(mark: LinkMark, now: LinkMark | None) -> bool:
    if now is None or now.device != mark.device:
        return False
    # A link that has been given another address does not show its permanent one.
    return mark.address is None or now.address is None or mark.address == now.address


def _report_gone(host: Host, mark: LinkMark) -> LostLink:
    if host.exists(f"{_LINKS}/{mark.name}"):
        return LostLink(f"{mark.name} is another link than it was; the one that is meant is gone", is_gone=True)
    return LostLink(f"{mark.name} is not there, under any name", is_gone=True)


def _report_unclear(mark: LinkMark, *names: str) -> LostLink:
    return LostLink(f"{mark.name} cannot be distinguished from {', '.join(names)}", is_gone=False)


RefusalState = Literal["blocked", "not-applicable", "in-place", "by-hand", "incapable", "unknown"]


def bind_probe(probe: Probe, identity: Identity | None) -> Probe:
    """The probe, of the device of this identity alone."""
    return msgspec.structs.replace(probe, identity=identity) if isinstance(probe, ReadFile) else probe


def bind_steps(steps: Iterable[Step], identity: Identity | None) -> tuple[Step, ...]:
    """The steps, on the device of this identity alone."""
    return tuple(
        msgspec.structs.replace(step, identity=identity) if isinstance(step, WriteFile) else step for step in steps
    )


def list_choices(choices: Iterable[str]) -> str:
    """What a file offers, for a sentence. ``none`` is a choice, too, and as the first it would read as *nothing*."""
    *others, last = sorted(choices, key=lambda one: one == "none") or ["nothing"]
    return f"{', '.join(others)} and {last}" if others else last


class SideEffect(msgspec.Struct, frozen=True):
    """Another tunable that the kernel may change with a change (a bridge follows its ports); ``undo`` restores it.

    A rollback restores it if it changed. Without ``undo`` no command can do that.
    """

    tunable: str
    before: str
    probe: Probe
    undo: tuple[Step, ...]
    keeps: bool = False
    """Also while the plan is active: what a link lost with the change is restored at once, where that is possible."""
    resets: bool = False
    """The rollback of the change resets it, too: it is then restored and read back."""
    coupled: bool = False
    """A sysctl that the kernel changes together with another one, by the change and by its rollback: it is restored to
    what it was before, or to what it was set to since."""


class ClassMember(msgspec.Struct, frozen=True):
    """A device that a class had when a plan was made, and ``value``, what it had then. ``identity`` distinguishes a
    block device, ``link`` a link, from one that gets its name later."""

    path: str
    value: str
    identity: Identity | None = None
    link: LinkMark | None = None


class Preflight(msgspec.Struct, frozen=True):
    """What goes beyond probe, steps and edit. ``refusal``: why this host would not take the value. ``undo``: how to go
    back where writing the value before would not do. ``identity``: what distinguishes the device that is meant from one
    that gets its name later. ``state``: what the refusal amounts to; *blocked* holds up all of the plan, *incapable*
    does where a person named this device, the others this value alone. ``related``: values of other tunables that bear
    on it. ``members``: devices of a class that are there."""

    refusal: str | None = None
    state: RefusalState = "blocked"
    undo: tuple[Step, ...] | None = None
    identity: Identity | None = None
    side_effects: tuple[SideEffect, ...] = ()
    notes: tuple[str, ...] = ()
    related: tuple[tuple[str, str], ...] = ()
    members: tuple[ClassMember, ...] = ()


@runtime_checkable
class ExpandsIds(Protocol):
    """A tunable that stands for others: those that a pattern fits, or the one that this kernel has in its place."""

    def expand_ids(self, host: Host) -> tuple[str, ...] | Missing:
        """The ids that are meant on this host, its own where it is one of them; Missing says why there is none."""
        ...


# What there is of a kernel module on a host, by /proc/modules and what depmod(8) wrote, and how it is taken away.

BUILT_IN = "is built into this kernel"
"""Why nothing is to be done to load a module."""

NAME = "[A-Za-z0-9_]{1,60}"


def module_name(name: str) -> str:
    """A module's name as /proc/modules has it: its file may be named with hyphens."""
    return name.replace("-", "_")


def is_built_in(host: Host, name: str) -> bool:
    """Whether the kernel itself holds the module, or a part of it that has parameters is called so."""
    if host.is_dir(f"/sys/module/{name}") and (host.exists("/proc/modules") or not loads_modules(host)):
        return name not in read_loaded(host)
    index = host.read_or_empty(f"{_module_directory(host)}/modules.builtin")
    return any(_module_of(line) == name for line in index.split("\n"))


def read_dependencies(host: Host, name: str) -> tuple[str, ...] | None:
    """The modules that modprobe loads along with one, in the order in which they can be removed after it; None where
    modules.dep does not list the module, or cannot be read."""
    for line in host.read_or_empty(f"{_module_directory(host)}/modules.dep").split("\n"):
        own, colon, others = line.partition(":")
        if colon and _module_of(own) == name:
            return tuple(_module_of(one) for one in others.split())
    return None


def read_loaded(host: Host) -> frozenset[str]:
    """Names of the modules that are loaded."""
    return frozenset(line.split()[0] for line in host.read_or_empty("/proc/modules").split("\n") if line.strip())


def loads_modules(host: Host) -> bool:
    """Whether this kernel can load modules: one without CONFIG_MODULES has no /proc/modules, and depmod(8) has nothing
    to list for it. A capture that lacks the file does not say so."""
    if not host.is_live:
        return True
    modules = host.read("/proc/modules")
    return not isinstance(modules, Missing) or not modules.is_absent or has_index(host)


def has_index(host: Host) -> bool:
    """Whether the list of the kernel's modules is there."""
    return host.exists(f"{_module_directory(host)}/modules.dep")


def _module_directory(host: Host) -> str:
    release = host.read("/proc/sys/kernel/osrelease")
    return "/lib/modules/none" if isinstance(release, Missing) else f"/lib/modules/{release}"


def _module_of(path: str) -> str:
    return module_name(path.rpartition("/")[2].partition(".ko")[0])


_KINDS = {
    **{name: (name,) for name in ("dummy", "ifb", "ipvlan", "ipvtap", "macsec", "macvlan", "macvtap", "team", "veth")},
    **{name: (name,) for name in ("amt", "bareudp", "bridge", "geneve", "gtp", "hsr", "nlmon", "tun", "vcan", "vrf")},
    **{name: (name,) for name in ("ipip", "sit", "vsockmon", "vxcan", "vxlan", "wireguard")},
    "8021q": ("vlan",),
    "batman_adv": ("batadv",),
    "bonding": ("bond",),
    "can_dev": ("can",),
    "ib_ipoib": ("ipoib",),
    "ieee802154_6lowpan": ("lowpan",),
    "ip6_gre": ("ip6gre", "ip6gretap", "ip6erspan"),
    "ip6_tunnel": ("ip6tnl",),
    "ip6_vti": ("vti6",),
    "ip_gre": ("gre", "gretap", "erspan"),
    "ip_vti": ("vti",),
    "ppp_generic": ("ppp",),
    "xfrm_interface": ("xfrm",),
}
"""Module → the kinds of links that are gone with it: its aliases rtnl-link-KIND (modules.alias), and tun."""

# Links that a module makes by itself when it is loaded: until one is up, nobody uses it.
_OWN = "((bond|dummy|ifb|ib|can)[0-9]+|(gre|gretap|erspan|ip6gre|ip6gretap|ip6erspan|sit|ip6tnl|tunl|ip_vti|ip6_vti)0)"
# Links of all network namespaces that have a process or a name; where ip does not know the kind, the module stays.
_PLACES = "stat -L -c '%i %n' /proc/[0-9]*/ns/net /run/netns/* 2>/dev/null | sort -u -k 1,1 | cut -d ' ' -f 2"
_USED = (
    f"sed -n -E -e '/[<,]UP[,>]/!{{/^[0-9]+: {_OWN}[:@]/d;}}' -e 's/^[0-9]+: ([^:@ ]+).*/\\1/p'"
)  # fmt: skip
_REMOVE = (
    f"for place in $({_PLACES}); do for kind in $0; do"
    ' links=$(nsenter --net="$place" ip -o link show type "$kind") || exit 1;'
    f' used=$(printf "%s\\n" "$links" | {_USED});'
    ' [ -z "$used" ] || { echo "module in use: $1 makes the link" $used >&2; exit 1; };'
    ' done; done; exec rmmod "$@"'
)


def removal_command(*modules: str) -> RunCommand:
    """Removes modules in this order; fails, and removes none, where one of them makes a link that is in use."""
    kinds = [kind for module in modules for kind in _KINDS.get(module, ())]
    return (
        RunCommand(("/bin/sh", "-c", _REMOVE, " ".join(kinds), *modules)) if kinds else RunCommand(("rmmod", *modules))
    )


# Settings that name what root or the kernel runs, or that switch off what guards the host. A profile must be able to
# set neither: a bad value of anything else can be restored, and these could take the host over before.

RUNS = "the kernel runs what it names, as root"
_FIRMWARE = "it names where programs for devices lie"
_SHELL = "it starts other programs than the host's own"
_GUARDS = "it decides which of the kernel's protections are on"

_SYSCTLS = lazy_regex(
    r"kernel\.(core_pattern|modprobe|poweroff_cmd|hotplug|usermodehelper\..*)|fs\.binfmt_misc\..*"
    r"|fs\.ocfs2\.nm\.hb_ctl_path"
)
_MODULES = {
    "firmware_class.path": _FIRMWARE,
    "drbd.usermode_helper": RUNS,
    "nfs.cache_getent": RUNS,
    "nfsd.cltrack_prog": RUNS,
    "module.sig_enforce": _GUARDS,
}
_WORDS = (
    (lazy_regex(r"(rd)?init|root|nfsroot|initrd"), "the host is started with what it names, as root"),
    (
        lazy_regex(
            r"(rd\.)?systemd\.(run\w*|unit|wants|debug[_-]shell|mask|setenv|set_credential\w*|import_credentials)"
            r"|rd\.(break|shell|emergency)|break|1|s|S|single|rescue|emergency|kgdbwait|kgdboc"
        ),
        _SHELL,
    ),
    (
        lazy_regex(
            r"selinux|enforcing|checkreqprot|apparmor|tomoyo|security|lsm|lockdown|integrity_audit|ima_\w+|evm"
            r"|nosmep|nosmap|nokaslr|no_hash_pointers|hardened_usercopy|vsyscall"
        ),
        _GUARDS,
    ),
)


def refused_sysctl(key: str) -> str | None:
    """Why no profile sets a sysctl; None where one may."""
    return RUNS if _SYSCTLS.fullmatch(key) else None


def refused_parameter(module: str, parameter: str) -> str | None:
    """Why no profile sets a parameter of a module."""
    return _MODULES.get(f"{module.replace('-', '_')}.{parameter.replace('-', '_')}")


def refused_word(word: str) -> str | None:
    """Why no plan proposes a word of the kernel's command line, on which sysctls and parameters may be set, too."""
    if word.startswith("sysctl."):
        return refused_sysctl(word.removeprefix("sysctl."))
    module, dot, parameter = word.partition(".")
    known = refused_parameter(module, parameter) if dot else None
    return known or next((why for pattern, why in _WORDS if pattern.fullmatch(word)), None)
