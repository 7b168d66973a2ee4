"""Services as a fleet compares them: LLT and InfoScale, iSCSI, BeeGFS, IRIS."""

from __future__ import annotations

from advisor.facts.host_facts import Facts
from advisor.facts.iris import Iris
from advisor.facts.iscsi import Iscsi
from advisor.facts.llt import Llt
from advisor.fleet.compare.collected import Collected
from advisor.host.numbers import is_count

# What names this host, its addresses or its places.
_OWN_DIRECTIVES = ("set-node", "set-addr", "link", "set-cluster")
_OWN_BEEGFS = frozenset({"connInterfacesFile", "connNetFilterFile", "connTcpOnlyFilterFile", "connAuthFile"})
_OWN_NODE = ("iface.", "node.name", "node.tpgt", "node.conn[0].address", "node.discovery")
_SESSION = (
    *("recovery_seconds", "first_burst_bytes", "max_burst_bytes", "immediate_data", "initial_r2t", "can_queue"),
    "state",
)


def llt_cluster(facts: Facts) -> str | None:
    """The id of the host's LLT cluster, by /etc/llttab."""
    return facts.llt.llttab.cluster if facts.llt and facts.llt.llttab else None


def llt_node(facts: Facts) -> str | None:
    """The host's id in its LLT cluster: as LLT itself says, or by /etc/llttab and /etc/llthosts."""
    if facts.llt is None:
        return None
    own = next((str(node.id) for node in facts.llt.nodes if node.is_self), None)
    name = facts.llt.llttab.node if facts.llt.llttab else None
    if own or name is None or is_count(name):
        return own or name
    hosts = facts.infoscale.hosts if facts.infoscale else ()
    return next((str(one.id) for one in hosts if one.name == name), None)


def collect_services(facts: Facts, found: Collected) -> None:
    found.put("llt.present", "yes" if facts.llt else None)
    if facts.llt:
        _collect_llt(facts.llt, found)
    if facts.infoscale:
        infoscale = facts.infoscale
        found.fields("infoscale", infoscale, "configuration", "seed_nodes")
        hosts = sorted((one.id, one.name) for one in infoscale.hosts)
        found.put("infoscale.llthosts", "; ".join(f"{number} {name}" for number, name in hosts) or None)
        if infoscale.vcs:
            found.put("infoscale.systems", ", ".join(sorted(infoscale.vcs.systems)) or None)
            found.put("infoscale.resources", len(infoscale.vcs.resources))
        if infoscale.disks is None:
            found.unknown("infoscale.disks")
        elif infoscale.disks:
            found.several("infoscale.disks", [" ".join((one.type, *sorted(one.status))) for one in infoscale.disks])
    if facts.iscsi:
        _collect_iscsi(facts.iscsi, found)
    if facts.beegfs:
        for service in facts.beegfs.services:
            base = f"beegfs.{service.kind}" + (f".{service.instance}" if service.instance else "")
            found.put(f"{base}.targets", len(service.targets))
            found.several(f"{base}.level", [target.level for target in service.targets])
            found.several(f"{base}.filesystem", [target.filesystem for target in service.targets])
            for name, value in service.settings.items():
                if name not in _OWN_BEEGFS and not name.startswith("store"):
                    found.put(f"{base}.{name}", value)
            if service.service:
                found.put(f"{base}.numa_policy", service.service.numa_policy)
        found.several(
            "beegfs.stripe", [f"{one.entry.chunk_bytes}×{one.entry.targets}" for one in facts.beegfs.patterns]
        )
    for number, instance in enumerate(facts.iris, 1):
        _collect_iris(instance, f"iris.{instance.name or number}", found)


def _collect_llt(llt: Llt, found: Collected) -> None:
    found.flag("llt.running", llt.running)
    if llt.running is None:
        found.unknown("llt.running")
    if not llt.running:
        found.unknown("llt.flow.*", "llt.timer.*", "llt.nodes")
    found.entries("llt.flow", llt.flow_control)
    found.entries("llt.timer", llt.timers)
    found.put("llt.links", sum(not one.low_priority for one in llt.links))
    found.put("llt.links_low_priority", sum(one.low_priority for one in llt.links))
    found.several("llt.link_type", [one.type for one in llt.links if not one.low_priority])
    found.several("llt.link_mtu", ["default" if one.mtu is None else one.mtu for one in llt.links])
    found.put("llt.nodes", len(llt.nodes) or None)
    if llt.llttab:
        found.entries("llt.file.flow", llt.llttab.flow)
        found.entries("llt.file.timer", llt.llttab.timers)
        words = sorted(line for line in llt.llttab.other if not line.startswith(_OWN_DIRECTIVES))
        found.put("llt.file.other", "; ".join(words) or None)


def _collect_iscsi(iscsi: Iscsi, found: Collected) -> None:
    found.put("iscsi.sessions", len(iscsi.sessions))
    found.put("iscsi.disks_with_multipath", len(iscsi.multipath_disks))
    found.entries("iscsi.file", iscsi.settings)
    for name in _SESSION:
        found.several(f"iscsi.session.{name}", [_text_or_none(getattr(session, name)) for session in iscsi.sessions])
    connections = [one for session in iscsi.sessions for one in session.connections]
    for name in ("header_digest", "data_digest", "max_recv_bytes"):
        found.several(f"iscsi.connection.{name}", [_text_or_none(getattr(one, name)) for one in connections])
    names = sorted({name for node in iscsi.nodes for name in node.settings if not name.startswith(_OWN_NODE)})
    for name in names:
        found.several(f"iscsi.node.{name}", [node.settings.get(name) for node in iscsi.nodes])


def _text_or_none(value: str | int | bool | None) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return None if value is None else str(value)


def _collect_iris(instance: Iris, base: str, found: Collected) -> None:
    found.put(f"{base}.version", instance.version)
    found.flag(f"{base}.running", instance.running)
    if instance.settings is None:
        found.unknown(f"{base}.cpf.*")
        return
    for name in instance.settings.__struct_fields__:
        value = getattr(instance.settings, name)
        if name == "databases":
            continue
        found.put(f"{base}.cpf.{name}", ", ".join(map(str, value)) or None if isinstance(value, tuple) else value)
