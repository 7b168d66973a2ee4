"""A host after its tunables have been set: the facts that a next scan would read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.settings.sysctl import SysctlOrigin, SysctlSource
from advisor.rules.rule import SetTunable
from advisor.tunables.sysctl_group import twin_of
from tests.cases import read_cases

OWN_FILE = "/etc/sysctl.d/90-advisor-values.conf"


def with_values(facts: Facts, values: Iterable[SetTunable]) -> Facts:
    for one in values:
        kind, _, rest = one.tunable.partition(":")
        facts = _SET[kind](facts, rest, one.value)
    return facts


def _each(records: tuple[Any, ...], name: object, field: str, **changed: Any) -> tuple[Any, ...]:
    """Those whose ``field`` is the name, changed; fails where there is none."""
    assert any(getattr(one, field) == name for one in records), name
    return tuple(msgspec.structs.replace(one, **changed) if getattr(one, field) == name else one for one in records)


Record = TypeVar("Record")


def _changed(facts: Record, **changed: Any) -> Record:
    assert isinstance(facts, msgspec.Struct)
    return msgspec.structs.replace(facts, **changed)


def _sysctl(facts: Facts, key: str, value: str) -> Facts:
    """The live value, and advisor's own file, which is read last."""
    before = facts.sysctl_origin.get(key)
    lines = (before.winner, *before.losers) if before else ()
    origin = SysctlOrigin(SysctlSource(key, value, OWN_FILE, 3), lines)
    live = {**facts.sysctl, key: value, **({twin: "0"} if (twin := twin_of(key)) else {})}
    facts = _changed(facts, sysctl=live, sysctl_origin={**facts.sysctl_origin, key: origin})
    if key == "vm.nr_hugepages":
        size = facts.memory.default_hugepage_bytes or facts.memory.hugepages[0].size_bytes
        used = {one.size_bytes: one.total - (one.free or 0) for one in facts.memory.hugepages}[size]
        pools = _each(facts.memory.hugepages, size, "size_bytes", total=int(value), free=int(value) - used)
        return _memory(facts, hugepages=pools)
    return _arp(facts, key, value)


def _arp(facts: Facts, key: str, value: str) -> Facts:
    """Settings of a link are part of what is known of BeeGFS's subnets."""
    words = key.split(".")
    if words[:3] != ["net", "ipv4", "conf"] or not facts.beegfs:
        return facts
    subnets = tuple(
        _changed(
            net,
            links=tuple(_changed(one, **{words[4]: int(value)}) if one.link == words[3] else one for one in net.links),
        )
        for net in facts.beegfs.shared_subnets
    )
    return _changed(facts, beegfs=_changed(facts.beegfs, shared_subnets=subnets))


def _memory(facts: Facts, **changed: Any) -> Facts:
    return _changed(facts, memory=_changed(facts.memory, **changed))


def _power(facts: Facts, **changed: Any) -> Facts:
    return _changed(facts, cpu=_changed(facts.cpu, power=_changed(facts.cpu.power, **changed)))


def _pm_qos(facts: Facts, _: str, value: str) -> Facts:
    return _power(facts, wakeup_limit_us=int(value))


def _cpufreq(facts: Facts, rest: str, value: str) -> Facts:
    """One policy, here of a group that is set alike; or turbo."""
    if rest == "boost":
        return _power(facts, turbo=value == "1")
    _, _, attribute = rest.partition(":")
    frequency = facts.cpu.frequency
    assert frequency is not None
    groups = tuple(_changed(one, **{attribute: value}) for one in frequency.groups)
    return _changed(facts, cpu=_changed(facts.cpu, frequency=_changed(frequency, groups=groups)))


def _intel_pstate(facts: Facts, name: str, value: str) -> Facts:
    assert name == "no_turbo"
    return _power(facts, turbo=value == "0")


def _sysfs(facts: Facts, path: str, value: str) -> Facts:
    if path.endswith("/current_clocksource"):
        return _power(facts, clock_source=value)
    size = int(path.split("hugepages-")[1].partition("kB")[0]) << 10
    return _memory(
        facts, hugepages=_each(facts.memory.hugepages, size, "size_bytes", total=int(value), free=int(value))
    )


def _thp(facts: Facts, name: str, value: str) -> Facts:
    return _memory(facts, **{f"thp_{name}": value})


def _block(facts: Facts, rest: str, value: str) -> Facts:
    device, _, attribute = rest.rpartition(":")
    changed = False
    found: dict[str, tuple[Any, ...]] = {}
    for records, field in ((facts.disks, "name"), (facts.arrays, "device")):
        made = []
        for one in records:
            more: dict[str, Any] = {"queue": {**one.queue, attribute: value}} if getattr(one, field) == device else {}
            if more and field == "name":
                more |= {"scheduler": value} if attribute == "scheduler" else {}
                more |= {"rotational": value == "1"} if attribute == "rotational" else {}
            changed = changed or bool(more)
            made.append(_changed(one, **more))
        found[field] = tuple(made)
    assert changed, device
    return _changed(facts, disks=found["name"], arrays=found["device"])


def _md(facts: Facts, rest: str, value: str) -> Facts:
    device, _, attribute = rest.rpartition(":")
    (array,) = (one for one in facts.arrays if one.device == device)
    detail = {**array.detail, attribute: value}
    return _changed(facts, arrays=_each(facts.arrays, device, "device", detail=detail))


def _link(facts: Facts, rest: str, value: str) -> Facts:
    name, _, attribute = rest.rpartition(":")
    word, _, key = attribute.partition(".")
    link = next((one for one in facts.links if one.name == name), None)
    if link is None:  # A script may name a link that the host does not have.
        return facts
    match word:
        case "mtu":
            changed: Mapping[str, Any] = {"mtu": int(value)}
        case "ring":
            changed = {"rings": _changed(link.rings, **{key: int(value)})}
        case "channels":
            changed = {"channels": _changed(link.channels, **{key: int(value)})}
        case "feature":
            changed = {"features": {**(link.features or {}), key: value == "on"}}
        case _:
            assert word == "rps"
            changed = {"rps_cpus": "0" if value == "none" else "f"} if key == "rx-0" else {}
    return _changed(facts, links=_each(facts.links, name, "name", **changed))


def _irq(facts: Facts, rest: str, value: str) -> Facts:
    number, _, _ = rest.partition(":")
    return _changed(facts, irqs=_each(facts.irqs, int(number), "number", affinity=value, effective=value))


def _llt(facts: Facts, rest: str, value: str) -> Facts:
    """The live value and the line in /etc/llttab."""
    prefix, _, name = rest.rpartition(".")
    live, line = ("timers", "timers") if prefix else ("flow_control", "flow")
    llt = facts.llt
    assert llt is not None
    table = llt.llttab and _changed(llt.llttab, **{line: {**getattr(llt.llttab, line), name: int(value)}})
    return _changed(facts, llt=_changed(llt, llttab=table, **{live: {**getattr(llt, live), name: int(value)}}))


def _file(facts: Facts, rest: str, value: str) -> Facts:
    path, _, key = rest.rpartition(":")
    if path.endswith("/iris.cpf"):
        assert key == "config/globals"
        (one,) = (one for one in facts.iris if one.cpf == path)
        settings = _changed(one.settings, globals_mb=tuple(map(int, value.split(","))))
        return _changed(facts, iris=_each(facts.iris, path, "cpf", settings=settings))
    if path == "/etc/llttab":
        assert facts.llt is not None
        if key.startswith("link."):
            own = tuple(
                _changed(one, mtu=int(value)) if one.tag == key.split(".")[1] else one for one in facts.llt.links
            )
            return _changed(facts, llt=_changed(facts.llt, links=own))
        assert facts.llt.llttab is not None
        other = (*(one for one in facts.llt.llttab.other if key not in one), f"{key} {value}")
        return _changed(facts, llt=_changed(facts.llt, llttab=_changed(facts.llt.llttab, other=other)))
    if path.startswith("/etc/beegfs/"):
        sites = tuple(
            _changed(one, value=value) if (one.path, one.key) == (path, key) else one for one in facts.site_settings
        )
        facts = _changed(facts, site_settings=sites)
        if facts.beegfs is None:
            return facts
        services = facts.beegfs.services
        given = {one.path: one.settings for one in services}[path]
        services = _each(services, path, "path", settings={**given, key: value})
        return _changed(facts, beegfs=_changed(facts.beegfs, services=services))
    iscsi = facts.iscsi
    assert iscsi is not None
    if path == "/etc/iscsi/iscsid.conf":
        return _changed(facts, iscsi=_changed(iscsi, settings={**iscsi.settings, key: value}))
    given = {one.path: one.settings for one in iscsi.nodes}[path]
    return _changed(
        facts, iscsi=_changed(iscsi, nodes=_each(iscsi.nodes, path, "path", settings={**given, key: value}))
    )


DATA = read_cases(
    __file__, _block, _cpufreq, _file, _intel_pstate, _irq, _link, _llt, _md, _pm_qos, _sysctl, _sysfs, _thp
)

_SET = DATA["_SET"]
