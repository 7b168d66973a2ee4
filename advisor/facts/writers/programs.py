"""Running programs that set values when they start, and again whenever they start anew.

Sources: moby, daemon/libnetwork/drivers/bridge/setup_ip_forwarding.go; kubernetes,
pkg/kubelet/cm/container_manager_linux.go (setupKernelTunables) and cmd/kube-proxy (conntrack settings); libvirt,
src/network/bridge_driver.c (networkEnableIPForwarding); ovs-vswitchd.conf.db(5), mtu_request; irqbalance(1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from advisor.facts.owners import read_owners
from advisor.facts.writers.record import Place
from advisor.host import Host
from advisor.host.numbers import is_count

KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
DOCKER_CONFIG = "/etc/docker/daemon.json"
OVS_DATABASES = ("/etc/openvswitch/conf.db", "/var/lib/openvswitch/conf.db")
CONFIGURATIONS = (*OVS_DATABASES, DOCKER_CONFIG, KUBELET_CONFIG)
PODS = "/var/log/pods"
CRASH_HANDLERS = ("/usr/share/apport/apport", "/usr/sbin/abrtd")
_KUBELET = {
    **{"vm.overcommit_memory": "1", "vm.panic_on_oom": "0", "kernel.panic": "10", "kernel.panic_on_oops": "1"},
    **{"kernel.keys.root_maxkeys": "1000000", "kernel.keys.root_maxbytes": "25000000"},
}
_KNOWN = {
    DOCKER_CONFIG: r'"(?:ip-forward|iptables|ipv6)"\s*:\s*(?:true|false)',
    KUBELET_CONFIG: r"(?m)^protectKernelDefaults:[ \t]*(?:true|false)",
}
_KUBE_PROXY = ("nf_conntrack_max", "nf_conntrack_tcp_timeout_established", "nf_conntrack_tcp_timeout_close_wait")


def is_running(host: Host, *units: str) -> bool:
    """Return whether one of the units has a control group or a run that systemd knows of."""
    groups = ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice")
    runs = (host.readlink(f"/run/systemd/units/invocation:{unit}") for unit in units)
    return any(host.exists(f"{place}/{unit}") for place in groups for unit in units) or any(
        isinstance(one, str) for one in runs
    )


def read_docker(host: Host) -> Iterator[Place]:
    """Yield what Docker's daemon sets for its networks."""
    if is_running(host, "docker.service", "snap.docker.dockerd.service"):
        config = host.read_or_empty(DOCKER_CONFIG)
        if not re.search(r'"(ip-forward|iptables)"\s*:\s*false', config):
            yield Place("sysctl:net.ipv4.ip_forward", "1")
        if re.search(r'"ipv6"\s*:\s*true', config):
            yield Place("sysctl:net.ipv6.conf.all.forwarding", "1")


def read_libvirt(host: Host) -> Iterator[Place]:
    """Yield what libvirt sets for a network that forwards, with a bridge of its own."""
    has_bridge = any(name.startswith("virbr") for name in host.names("/sys/class/net"))
    if has_bridge and is_running(host, "libvirtd.service", "virtnetworkd.service"):
        yield Place("sysctl:net.ipv4.ip_forward", "1")


def read_kubelet(host: Host) -> Iterator[Place]:
    """Yield what kubelet sets of the kernel's own behaviour, unless it only checks it."""
    config = host.read_or_empty(KUBELET_CONFIG)
    is_there = is_running(host, "kubelet.service", "k3s.service", "k3s-agent.service", "rke2-server.service")
    if is_there and not re.search(r"(?m)^protectKernelDefaults:\s*true", config):
        yield from (Place(f"sysctl:{key}", value) for key, value in _KUBELET.items())


def read_kube_proxy(host: Host) -> Iterator[Place]:
    """Yield what kube-proxy sets of connection tracking; its own configuration, which says how much, lies in a pod."""
    pods = any("_kube-proxy-" in name for name in host.names(PODS))
    if pods or is_running(host, "kube-proxy.service", "k3s.service", "k3s-agent.service"):
        yield from (Place(f"sysctl:net.netfilter.{name}", None) for name in _KUBE_PROXY)
        yield Place("sysctl:net.nf_conntrack_max", None)


def read_open_vswitch(host: Host) -> Iterator[Place]:
    """Yield the MTU of the ports that Open vSwitch sizes: as asked for, or as its other ports have it."""
    if is_running(host, "ovs-vswitchd.service", "openvswitch-switch.service", "openvswitch.service"):
        for path in OVS_DATABASES:
            for port in ovs_ports(host.read_or_empty(path)):
                if is_count(str(port.get("mtu_request", ""))):
                    yield Place(f"link:{port.get('name')}:mtu", str(port["mtu_request"]), path)
                elif port.get("type") == "internal":
                    yield Place(f"link:{port.get('name')}:mtu", None, path)


def ovs_ports(text: str) -> list[dict[str, object]]:
    """Return name, type and mtu_request of each interface of a database file, whose lines are changes."""
    found: dict[str, dict[str, object]] = {}
    for line in text.splitlines():
        if not line.startswith("{") or '"Interface"' not in line:
            continue
        try:
            rows = json.loads(line).get("Interface")
        except (ValueError, AttributeError, RecursionError):
            continue
        for key, row in rows.items() if isinstance(rows, dict) else ():
            if isinstance(row, dict):
                kept = {name: row[name] for name in ("name", "type", "mtu_request") if name in row}
                found[key] = {**found.get(key, {}), **kept}
            else:
                found.pop(key, None)
    return list(found.values())


def read_irqbalance(host: Host) -> Iterator[Place]:
    """Yield the interrupts that irqbalance moves: all that its options do not exclude."""
    owners = read_owners(host)
    if owners.irqbalance and not owners.banned_irqs:
        yield Place("irq:*:affinity", None)
    elif owners.irqbalance:
        numbers = {int(name) for name in host.names("/proc/irq") if is_count(name)}
        yield from (Place(f"irq:{number}:affinity", None) for number in sorted(numbers.difference(owners.banned_irqs)))


def read_crash_handlers(host: Host) -> Iterator[Place]:
    """Yield the key by which a collector of crashes has itself started."""
    if any(map(host.exists, CRASH_HANDLERS)):
        yield Place("sysctl:kernel.core_pattern", None)


def read_command_line(host: Host) -> Iterator[Place]:
    """Yield what the kernel's command line sets: sysctl.KEY=VALUE, and transparent huge pages."""
    for word in host.read_or_empty("/proc/cmdline").split():
        name, equals, value = word.partition("=")
        if equals and name.startswith("sysctl."):
            yield Place(f"sysctl:{name.removeprefix('sysctl.')}", value, "/proc/cmdline", 1)
        elif name == "transparent_hugepage":
            yield Place("thp:enabled", value, "/proc/cmdline", 1)


def only_known_keys(path: str, text: str) -> str:
    """Return of a program's configuration what is read here, and nothing else: it may hold passwords."""
    if path in _KNOWN:
        return ",\n".join(re.findall(_KNOWN[path], text)).join(("{", "}") if path == DOCKER_CONFIG else ("", ""))
    rows = {str(number): row for number, row in enumerate(ovs_ports(text))}
    return json.dumps({"Interface": rows}) if rows else ""
