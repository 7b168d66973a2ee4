"""A tree with tunables of four kinds, profiles of any values for them, and what its files would bring at boot."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from advisor.facts.settings.sysctl import origins, read_sysctl_sources
from advisor.facts.unknown import Unknowns
from advisor.host import Host, observe
from advisor.planning.compute import make_plan
from advisor.planning.observations import observe_targets
from advisor.planning.records import Plan, PlanTarget
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Record, Store, first_seen
from advisor.transaction.layers import ownership_of
from advisor.transaction.rollback import finish_switches
from advisor.tunables import parse_tunable
from tests.cases import cases
from tests.transaction.system import LLTCONFIG, MACHINE, bare_facts
from tests.trees import host_of, make_command, make_tree

CASES = cases(__file__)

BASE = CASES["BASE"]
_PLACES = CASES["_PLACES"]
LLTTAB = "set-node a\n# flow control\nset-flow highwater:200\nlink eth1 eth1 - ether - -\nset-flow rporthighwater:100"


def build(where: Path) -> Host:
    files: dict[str, str | bytes] = {place: f"{BASE[name]}\n" for name, place in _PLACES.items()}
    files |= {
        "/etc/machine-id": MACHINE + "\n",
        "/etc/llttab": LLTTAB,
        "/etc/sysctl.d/50-site.conf": "kernel.pid_max = 99999\n",
        "/etc/tmpfiles.d/site.conf": "d /run/site 0755\n",
        "/proc/sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n",
        "/run/llt": "highwater 200\nrporthighwater 100\n",
    }
    make_tree(where / "root", files)
    return host_at(where)


def host_at(where: Path) -> Host:
    """The host whose tree is there already, or was copied there."""
    root = where / "root"
    make_command(where / "bin", "lltconfig", LLTCONFIG.format(root=root))
    return host_of(root, where / "bin")


def store_of(where: Path) -> Store:
    return Store(str(where / "state"))


def plan_of(
    host: Host, store: Store, profile: str, wanted: Mapping[str, str], *, instead_of: tuple[str, ...] = ()
) -> Plan:
    """The plan of a profile of these values, made as for the running host: with the active transactions."""
    targets = tuple(
        PlanTarget(name, value, "exactly", "why", "hurts", ("s",), profile) for name, value in wanted.items()
    )
    held = ownership_of(store.read_records(), instead_of)
    seen = observe_targets(host, targets, first_seen(store.read_records()), held)
    keys = [name.removeprefix("sysctl:") for name in wanted if name.startswith("sysctl:")]
    found = origins(read_sysctl_sources(host, Unknowns()), keys)
    facts = msgspec.structs.replace(bare_facts(), sysctl_origin=found)
    made = make_plan((profile,), targets, (), seen, facts, held=held)
    return msgspec.structs.replace(made, instead_of=instead_of)


def apply(
    host: Host, store: Store, profile: str, wanted: Mapping[str, str], *, instead_of: tuple[str, ...] = ()
) -> Record | None:
    """Apply a profile of these values, in the place of others where that is asked; None where nothing is to be done."""
    plan = plan_of(host, store, profile, wanted, instead_of=instead_of)
    assert plan.blocking == ()
    if plan.is_empty:
        return None
    with store.hold_lock():
        record = apply_plan(host, plan, store)
        finish_switches(host, store)
    return store.find_record(record.id)


def live(host: Host) -> dict[str, object]:
    return {name: observe(host, parse_tunable(name).probe) for name in BASE}


def at_boot(where: Path) -> dict[str, str]:
    """What the files would bring: this is a reading of sysctl.d(5), tmpfiles.d(5) and llttab(4) of its own."""
    found = dict(BASE)
    etc = where / "root/etc"
    for file in sorted((etc / "sysctl.d").iterdir(), key=lambda path: os.fsencode(path.name)):
        for line in file.read_text().splitlines():
            key, equals, value = line.partition("=")
            if equals and not line.startswith("#") and f"sysctl:{key.strip()}" in found:
                found[f"sysctl:{key.strip()}"] = value.strip()
    written: dict[str, str] = {}
    for file in sorted((etc / "tmpfiles.d").iterdir(), key=lambda path: os.fsencode(path.name)):
        for line in file.read_text().splitlines():
            words = line.split()
            if words[:1] == ["w"]:
                written.setdefault(words[1], words[6])
    for name, place in _PLACES.items():
        found[name] = written.get(place, found[name])
    for line in (etc / "llttab").read_text().splitlines():
        if line.startswith("set-flow "):
            key, _, value = line.removeprefix("set-flow ").partition(":")
            found[f"llt:{key}"] = value
    return found
