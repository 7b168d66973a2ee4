"""``advisor scan --json``: the contract's shape, the same bytes every time, and text that any JSON reader takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from advisor.errors import NotRestoredError, RefusedError
from advisor.facts.unknown import Unknown
from advisor.report.encode import error_document
from advisor.report.json import scan_document
from advisor.rules.judged import judge
from tests.rules.build import (
    SYSCTL,
    array,
    bond,
    disks,
    facts,
    link,
    llt,
    llt_link,
    nothing_known,
    numa,
    on_cloud,
    replaced,
)

SHAPE: dict[str, tuple[str, ...]] = {
    "host": ("hostname", "kernel", "os", "virtualization", "memory_bytes", "cloud"),
    "cpu": ("online", "threads", "cores", "packages"),
    "numa": ("nodes", "balancing"),
    "links": (
        *("name", "kind", "mtu", "mtu_min", "mtu_max", "speed_mbps", "state", "driver", "pci", "numa_node"),
        *("lower", "irqs", "rings", "channels"),
    ),
    "disks": ("name", "kind", "size_bytes", "rotational", "scheduler", "numa_node", "model", "mountpoints"),
    "arrays": ("name", "manager", "level", "chunk_bytes", "state", "members", "numa_nodes"),
    "llt": ("flow_control", "links"),
    "findings": (
        "id",
        "severity",
        "title",
        "why",
        "evidence",
        "profile",
        "hurts_when",
        "sources",
        "fix",
        "commands",
        "remedy",
    ),
    "unknown": ("fact", "why"),
}


def rich_host() -> Any:
    return facts(
        host=on_cloud("aws", "r5b.24xlarge"),
        numa=numa(2),
        links=(*bond("bond0", "eth1", "eth2", mtu=1500), link("eth0", default_route=True)),
        disks=disks(4),
        arrays=(array(),),
        sysctl=SYSCTL,
        llt=llt(llt_link("link1", "eth1")),
        unknown=(Unknown("disks.nvme0n1.serial", "Permission denied"),),
    )


def document(host: Any) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(scan_document(host, judge(host)))
    return loaded


def test_has_every_key_of_the_contract() -> None:
    found = document(rich_host())
    assert next(iter(found)) == "schema"
    assert found["schema"] == "advisor.scan/1"
    for key, wanted in SHAPE.items():
        records = found[key] if isinstance(found[key], list) else [found[key]]
        assert records, key
        for record in records:
            assert set(wanted) <= set(record), key
    assert {"id", "cpus", "memory_bytes", "distances"} <= set(found["numa"]["nodes"][0])
    assert {"provider", "instance_type"} <= set(found["host"]["cloud"])
    assert {"tag", "device", "type"} <= set(found["llt"]["links"][0])
    assert found["sysctl"]["net.core.rmem_max"] == "212992"


def test_the_whole_scan_is_in_it() -> None:
    found = document(rich_host())
    assert {"memory", "irqs", "filesystems", "sysctl_origin", "counters", "owners"} <= set(found)


def test_unknown_is_null() -> None:
    found = document(nothing_known())
    assert found["llt"] is None
    assert found["host"]["memory_bytes"] is None
    assert found["numa"]["nodes"] == []
    assert [entry["fact"] for entry in found["unknown"]] == ["links", "disks"]


def test_the_same_facts_give_the_same_bytes() -> None:
    host = rich_host()
    turned = replaced(host, {"sysctl": dict(reversed(host.sysctl.items()))})
    assert scan_document(host, judge(host)) == scan_document(turned, judge(turned))


def test_names_that_are_no_text_become_text() -> None:
    found = document(facts(links=(link("eth\udcff\x1b[31m"),)))
    assert found["links"][0]["name"] == "eth\ufffd\x1b[31m"


def test_ends_with_a_newline() -> None:
    assert scan_document(facts(), ()).endswith(b"}\n")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RefusedError("busy", hint="wait"), {"code": 3, "kind": "refused", "message": "busy", "hint": "wait"}),
        (RefusedError("x\udcff"), {"code": 3, "kind": "refused", "message": "x\ufffd", "hint": None}),
        (
            NotRestoredError("left", items=(("mtu", "ip link set dev eth0 mtu 1500"),)),
            {"code": 5, "kind": "failed-not-restored", "message": "left", "hint": None},
        ),
    ],
)
def test_errors_are_a_document(error: Any, expected: dict[str, Any]) -> None:
    found = json.loads(error_document(error))
    assert list(found) == ["error"]
    assert {key: found["error"][key] for key in expected} == expected


def test_what_could_not_be_restored_is_listed() -> None:
    error = NotRestoredError("left", items=(("mtu", "ip link set dev eth0 mtu 1500"),))
    assert json.loads(error_document(error))["error"]["items"] == [
        {"what": "mtu", "by_hand": "ip link set dev eth0 mtu 1500"}
    ]
