"""What udev's rules and tmpfiles.d write to devices when they appear (udev(7), tmpfiles.d(5)).

Of a rule's conditions those are judged that a captured host can answer; where another one decides, the value is
unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import NamedTuple

from advisor.facts.network.link_claim import GOOGLE_CONFIG, OFF, is_stopped, is_switched_off
from advisor.facts.settings.site_settings import parse_multipath
from advisor.facts.settings.sysctl import dotted_key
from advisor.facts.text import parse_settings
from advisor.facts.writers.commands import NO_TIMEOUT, OF_INTEREST, written_file
from advisor.facts.writers.programs import Place, Writer, places_of
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

RULES = (
    *("/etc/udev/rules.d", "/run/udev/rules.d", "/usr/local/lib/udev/rules.d"),
    *("/usr/lib/udev/rules.d", "/lib/udev/rules.d"),
)
_TMPFILES = ("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d")
_TOKEN = lazy_regex(r'([A-Z]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|:=|=)\s*"([^"]*)"')
_CLASSES = {"block": "/sys/block", "net": "/sys/class/net"}
_MULTIPATH, _MULTIPATH_MORE = "/etc/multipath.conf", "/etc/multipath/conf.d"
_WRITES = lazy_regex(r'ATTR\{[^}]*\}\s*=\s*"|RUN|SYSCTL\{')
_NAME = lazy_regex(r"%k|\$kernel\b|\$name\b|\$env\{INTERFACE\}|%E\{INTERFACE\}")
_MOST_TEXT = 256 * 1024
_MOST_DEVICES = 512


class _Token(NamedTuple):
    key: str
    attribute: str
    sign: str
    value: str


def _files(host: Host, places: Sequence[str], ending: str) -> list[str]:
    """The files of directories of which an earlier one hides its namesakes in later ones, by name."""
    found: dict[str, str] = {}
    for place in places:
        for name in host.names(place):
            if name.endswith(ending):
                found.setdefault(name, f"{place}/{name}")
    return [found[name] for name in sorted(found)]


def list_rules(host: Host) -> list[str]:
    """Return the files of udev's rules that may set values, by name."""
    return _files(host, RULES, ".rules")


def read_tmpfiles(host: Host) -> Iterator[Place]:
    """Yield what lines of tmpfiles.d write; of several for one file the first counts, so it comes last."""
    for path in reversed(_files(host, _TMPFILES, ".conf")):
        lines = list(enumerate(host.read_or_empty(path)[:_MOST_TEXT].split("\n"), 1))
        for number, line in reversed(lines):
            words = line.split(None, 6)
            if len(words) == 7 and words[0].rstrip("!-+^=") == "w":
                for tunable, value in written_file(words[1], words[6].strip("\"' \t\r")):
                    yield Place(tunable, value, path, number, "advisor" if "/advisor" in path else None)


def read_multipath(host: Host) -> Iterator[Place]:
    """Yield the largest request that multipathd gives its maps and their paths (multipath.conf(5), max_sectors_kb);
    what a section gives single maps or arrays is no value that can be told."""
    lines = [
        (path, number, value if re.fullmatch("defaults|overrides", scope) else None)
        for path in (_MULTIPATH, *(f"{_MULTIPATH_MORE}/{name}" for name in host.names(_MULTIPATH_MORE)))
        for number, (key, value, scope) in parse_multipath(host.read_or_empty(path))
        if key == "max_sectors_kb"
    ]
    for disk in host.names(_CLASSES["block"]) if lines else ():
        if host.read_or_empty(f"/sys/block/{disk}/dm/uuid").startswith("mpath-"):
            for device in (disk, *host.names(f"/sys/block/{disk}/slaves")):
                for path, number, value in sorted(lines, key=lambda line: line[2] is None):
                    yield Place(f"block:{device}:max_sectors_kb", value, path, number)


def read_udev_rules(host: Host) -> Iterator[Place]:
    """Yield what rules write to the disks and links that are there, in the order of the files."""
    devices = [(kind, name) for kind, place in _CLASSES.items() for name in host.names(place)][:_MOST_DEVICES]
    for path in list_rules(host):
        rules = _rules_of(host.read_or_empty(path)[:_MOST_TEXT])
        by = "advisor" if "-advisor" in path else None
        for kind, name in devices if any(map(_actions, (tokens for _, tokens in rules))) else ():
            yield from _of_file(host, rules, kind, name, path, by)


def _rules_of(text: str) -> list[tuple[int, list[_Token]]]:
    """The rules that set something, jump, or are jumped to, each with its first line."""
    found: list[tuple[int, list[_Token]]] = []
    begun, whole = 0, ""
    for number, line in enumerate(text.split("\n") if _WRITES.search(text) else (), 1):
        begun, whole = (begun, whole + line) if whole else (number, line)
        if whole.endswith("\\"):
            whole = whole[:-1]
            continue
        if not whole.lstrip().startswith("#"):
            tokens = [_Token(*one) for one in _TOKEN.findall(whole)]
            if _actions(tokens) or any(one.key in ("GOTO", "LABEL") for one in tokens):
                found.append((begun, tokens))
        whole = ""
    return found


def _actions(tokens: Sequence[_Token]) -> list[_Token]:
    return [
        one
        for one in tokens
        if one.sign not in ("==", "!=")
        and (one.key in ("ATTR", "SYSCTL") or (one.key == "RUN" and OF_INTEREST.search(one.value)))
    ]


def _of_file(
    host: Host, rules: Sequence[tuple[int, list[_Token]]], kind: str, name: str, path: str, by: str | None
) -> Iterator[Place]:
    """What the rules of a file do to a device. What a jump may leave out is a value that cannot be told."""
    skipped, doubted = "", ""
    for line, tokens in rules:
        labels = [one.value for one in tokens if one.key == "LABEL"]
        skipped, doubted = ("" if one in labels else one for one in (skipped, doubted))
        answers = [] if skipped else [_is_met(host, one, kind, name) for one in tokens if one.sign in ("==", "!=")]
        if skipped or False in answers:
            continue
        is_known = None not in answers and not doubted
        for one in _actions(tokens):
            for place in _of_action(host, one, kind, name, path, line, by):
                if is_known:
                    yield place
                elif not place.tunable.startswith("sysfs:"):
                    yield Place(place.tunable, None, path, line, by)
        for one in tokens:
            if one.key == "GOTO":
                skipped, doubted = (skipped, one.value) if None in answers else (one.value, doubted)


def _of_action(host: Host, one: _Token, kind: str, name: str, path: str, line: int, by: str | None) -> Iterator[Place]:
    if one.key == "RUN":
        yield from places_of(host, _NAME.sub(name, one.value), path, line, by)
    elif one.key == "SYSCTL":
        yield Place(f"sysctl:{dotted_key(one.attribute.replace('$name', name))}", one.value, path, line, by)
    else:
        for tunable, value in written_file(f"{_CLASSES[kind]}/{name}/{one.attribute}", one.value):
            yield Place(tunable, value, path, line, by)


def _is_met(host: Host, one: _Token, kind: str, name: str) -> bool | None:
    """Whether a device meets a condition; None where that cannot be told here."""
    base = f"{_CLASSES[kind]}/{name}"
    has: str | Missing | None = None
    if one.key == "KERNEL":
        has = name
    elif one.key == "SUBSYSTEM":
        has = kind
    elif one.key == "ACTION":
        return any(fnmatchcase(word, part) for part in one.value.split("|") for word in ("add", "change")) is (
            one.sign == "=="
        )
    elif one.key in ("ATTR", "ATTRS"):
        has = host.read(f"{base}/{one.attribute}")
        if one.key == "ATTRS" and isinstance(has, Missing):
            # The devices above that one are not looked through: what they have cannot be denied.
            has = host.read(f"{base}/device/{one.attribute}")
            has = None if isinstance(has, Missing) else has
        has = has.rstrip() if isinstance(has, str) else has
    elif (one.key, one.attribute) == ("ENV", "DEVTYPE"):
        has = "disk" if kind == "block" else None
    elif one.key == "DRIVERS" and kind == "net":
        has = host.readlink(f"{base}/device/driver")
        has = has if isinstance(has, Missing) else has.rpartition("/")[2]
    if has is None or (isinstance(has, Missing) and not has.is_absent):
        return None
    is_alike = isinstance(has, str) and any(fnmatchcase(has, part) for part in one.value.split("|"))
    return is_alike is (one.sign == "==")


# Modules that bring keys of /proc/sys along, and are loaded after systemd-sysctl has read its files (sysctl.d(5)).

LATE: tuple[tuple[str, str, str | None], ...] = (
    ("br_netfilter", "sysctl:net.bridge.bridge-nf-*", None),
    ("br_netfilter", "sysctl:net.bridge.bridge-nf-call-*", "1"),
    ("nf_conntrack", "sysctl:net.netfilter.nf_conntrack_*", None),
    ("nf_conntrack", "sysctl:net.nf_conntrack_max", None),
    ("ip_vs", "sysctl:net.ipv4.vs.*", None),
    ("sctp", "sysctl:net.sctp.*", None),
    ("rds", "sysctl:net.rds.*", None),
    ("smc", "sysctl:net.smc.*", None),
    ("mpls_router", "sysctl:net.mpls.*", None),
    ("sunrpc", "sysctl:sunrpc.*", None),
    ("lockd", "sysctl:fs.nfs.nlm_*", None),
)
"""Module, the keys that it has, and what they are until something sets them, where that is the same everywhere."""
_MORE = (("md_mod", "dev.raid.*"), ("cdrom", "dev.cdrom.*"), ("xfs", "fs.xfs.*"), ("binfmt_misc", "fs.binfmt_misc.*"))
"""Of further modules no file's value is known to come too early."""
BRINGS = {
    "br_netfilter": "net.bridge.bridge-nf-call-iptables, -ip6tables and -arptables become 1 when it is loaded: frames "
    "between ports of a bridge then pass the firewall's FORWARD rules, and a policy of DROP cuts off virtual machines "
    "and containers; sysctl:net.bridge.bridge-nf-call-iptables=0 in the same plan leaves them alone",
    "nf_conntrack": "the keys below net.netfilter begin with the kernel's own values, nf_conntrack_max with one by "
    "memory: where a rule asks for it, each connection takes an entry, and a full table drops new ones",
}
"""What else becomes of a host when a module is loaded (networking/bridge, networking/nf_conntrack-sysctl)."""
LATER = "loaded later"
"""What the next boot makes of such a module."""
DIRECTORIES = ("/etc/modules-load.d", "/run/modules-load.d", "/usr/lib/modules-load.d", "/lib/modules-load.d")
MODPROBE_PLACES = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")


def module_of(key: str) -> str | None:
    """Return the module that brings a dotted key along; None where that is not known."""
    rows = (*((module, tunable.removeprefix("sysctl:")) for module, tunable, _ in LATE), *_MORE)
    return next((module for module, pattern in rows if fnmatchcase(key, pattern)), None)


def read_late_modules(host: Host) -> Iterator[Place]:
    """Yield the keys of the modules that are loaded, and not early."""
    lines = (line.split() for line in host.read_or_empty("/proc/modules").splitlines())
    users = {words[0]: words[3].strip(",").split(",") for words in lines if len(words) > 3}
    rows = [row for row in LATE if row[0] in users]
    if not rows:
        return
    early = set(_early_modules(host))
    # What loads early brings along what it needs.
    while more := {name for name, by in users.items() if name not in early and early.intersection(by)}:
        early |= more
    is_late = any(module not in early for module, _, _ in rows)
    rules = "\n".join(map(host.read_or_empty, [*list_rules(host), *_modprobe_files(host)])) if is_late else ""
    for module, tunable, value in rows:
        prefix = re.escape(tunable.removeprefix("sysctl:").partition("*")[0].rpartition(".")[0].replace(".", "/"))
        loads = rf"(?:KERNEL==\"{module}\"|(?m:^)\s*install\s+{module}\s)"
        is_applied = re.search(rf"{loads}.*(sysctl.*(--system|-p\b)|--prefix=[./]?{prefix})", rules)
        if module not in early and not is_applied:
            yield Place(tunable, value, by=f"the module {module}")
    yield from (
        Place(f"module:{module}", LATER) for module in dict.fromkeys(row[0] for row in rows) if module not in early
    )


def _modprobe_files(host: Host) -> Iterator[str]:
    """The files of modprobe.d(5), whose lines ``install`` run commands: that of nfs-utils (50-nfs.conf) runs sysctl."""
    yield from (f"{place}/{name}" for place in MODPROBE_PLACES for name in host.names(place) if name.endswith(".conf"))


def _early_modules(host: Host) -> Iterator[str]:
    paths = [f"{place}/{name}" for place in DIRECTORIES for name in host.names(place) if name.endswith(".conf")]
    for path in (*paths, "/etc/modules", "/etc/initramfs-tools/modules"):
        yield from _words(line.partition("#")[0] for line in host.read_or_empty(path).splitlines())
    for word in host.read_or_empty("/proc/cmdline").split():
        name, _, value = word.partition("=")
        if name in ("modules-load", "modules_load", "rd.modules-load", "rd.driver.pre"):
            yield from (one.replace("-", "_") for one in value.split(","))


def _words(lines: Iterable[str]) -> Iterator[str]:
    yield from (line.split()[0].replace("-", "_") for line in lines if line.strip() and line[0] != ";")


# Agents and packages of cloud providers, and other programs that come back to values of devices.

_EC2_NETWORK = "/usr/lib/systemd/network/80-ec2.network"
_OCI_CONFIG = "/etc/oci-utils.conf.d"
_RDMA_AGENTS = ("/run/oci-hpc/oci-rdma-authentication.json", "/opt/oci-hpc/oci-cn-auth")
_LOCAL_SSD = ("scheduler", "add_random", "nr_requests", "rotational", "rq_affinity", "nomerges")
_NET = "/sys/class/net"


def _disk_rules(name: str, model: str, host: Host) -> Iterator[Place]:
    """The time of requests that a package's rule gives the disks of one model."""
    path = next((f"{place}/{name}" for place in RULES if host.exists(f"{place}/{name}")), None)
    found = re.search(r'ATTR\{queue/io_timeout\}="([0-9]+)"', host.read_or_empty(path) if path else "")
    for disk in host.names("/sys/block") if found else ():
        if host.read_or_empty(f"/sys/block/{disk}/device/model").strip() == model and found:
            yield Place(f"block:{disk}:io_timeout", str(min(int(found[1]), NO_TIMEOUT)), path)


def _local_ssds(host: Host) -> Iterator[Place]:
    if host.exists("/usr/bin/google_optimize_local_ssd") and not is_switched_off(host, "optimize_local_ssd"):
        yield Place("irq:*:affinity", None)
        for disk in host.names("/sys/block"):
            if "EphemeralDisk" in host.read_or_empty(f"/sys/block/{disk}/device/model"):
                yield from (Place(f"block:{disk}:{name}", None) for name in _LOCAL_SSD)


def _ec2_links(host: Host) -> Iterator[Place]:
    found = re.search(r"(?m)^MTUBytes=([0-9]+)", host.read_or_empty(_EC2_NETWORK))
    for link in host.names(_NET) if found else ():
        place = host.readlink(f"{_NET}/{link}/device/driver")
        if isinstance(place, Missing) or place.rpartition("/")[2] in ("ena", "ixgbevf", "vif"):
            yield Place(f"link:{link}:mtu", found[1] if found else None, _EC2_NETWORK)


def _oracle_vnics(host: Host) -> Iterator[Place]:
    """Unless ``enabled`` of [vnic] is off, or ``vf_net`` on; of several files the order is not defined, so that one
    that says so counts."""
    texts = (host.read_or_empty(f"{_OCI_CONFIG}/{name}") for name in host.names(_OCI_CONFIG))
    said = [one for text in texts for one in parse_settings(text.replace(":", "="), continued=False)]
    is_off = any(
        (value.lower() in OFF) is (key == "enabled")
        for section, key, value in said
        if section == "vnic" and key in ("enabled", "vf_net")
    )
    if host.exists("/usr/libexec/ocid") and not is_stopped(host, "ocid.service") and not is_off:
        yield Place("link:*:mtu", "9000")


def _oracle_rdma(host: Host) -> Iterator[Place]:
    if any(map(host.exists, _RDMA_AGENTS)):
        for link in host.names(_NET):
            if host.exists(f"{_NET}/{link}/device/infiniband"):
                yield Place(f"link:{link}:mtu", None)


_LEAVES = f"= false in the section [InstanceSetup] of {GOOGLE_CONFIG} leaves these as they are set"
_RUNTIME = "no file of advisor's is read after it: apply this without --runtime-only, or change the rule"
BEFORE_UDEV = (
    Writer(
        "azure-vm-utils",
        "whenever udev sees the disk, at boot for instance",
        partial(_disk_rules, "80-azure-disk.rules", "MSFT NVMe Accelerator v1.0"),
        _RUNTIME,
        True,
    ),
    Writer(
        "Google's guest environment",
        "whenever udev sees the disk, at boot for instance",
        partial(_disk_rules, "65-gce-disk-naming.rules", "nvme_card-pd"),
        _RUNTIME,
        True,
    ),
    Writer(
        "amazon-ec2-net-utils",
        "when systemd-networkd configures the link",
        _ec2_links,
        "a file NAME.network.d/50-mtu.conf for the link's own .network file overrides that",
        True,
    ),
)
"""Packages whose files are read before those that advisor writes."""
AGENTS = (
    Writer("google_optimize_local_ssd", "when its agent starts", _local_ssds, f"optimize_local_ssd {_LEAVES}", True),
    Writer(
        "ocid",
        "for secondary VNICs, after each boot for instance",
        _oracle_vnics,
        f"enabled = false in the section [vnic] of a file in {_OCI_CONFIG} leaves them alone",
        True,
    ),
    Writer(
        "oracle-cloud-agent",
        "by its plugin Compute HPC RDMA Authentication",
        _oracle_rdma,
        "leave these links to it, or disable the plugin in the instance's Oracle Cloud Agent tab",
        True,
    ),
)
