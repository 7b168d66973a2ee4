"""Modules that bring keys of /proc/sys along, and are loaded after systemd-sysctl has read its files (sysctl.d(5)).

The files then have no effect on these keys: at boot there is no such key yet, and nobody writes it later. Modules that
modules-load.d(5) or the kernel's command line name are there before, with those that they need; a udev rule may have
systemd-sysctl run again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from advisor.facts.writers.devices import list_rules
from advisor.facts.writers.record import Place
from advisor.host import Host

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
    rules = "\n".join(map(host.read_or_empty, list_rules(host))) if is_late else ""
    for module, tunable, value in rows:
        prefix = re.escape(tunable.removeprefix("sysctl:").partition("*")[0].rpartition(".")[0].replace(".", "/"))
        is_applied = re.search(rf"KERNEL==\"{module}\".*(sysctl.*(--system|-p\b)|--prefix=[./]?{prefix})", rules)
        if module not in early and not is_applied:
            yield Place(tunable, value, by=f"the module {module}")
    yield from (
        Place(f"module:{module}", LATER) for module in dict.fromkeys(row[0] for row in rows) if module not in early
    )


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
