"""Recommendations for the five InfoScale configurations: each tuning where the white paper says that it helps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from advisor.facts.clusters.infoscale_configuration import TITLES
from advisor.profiles.profile import load
from advisor.recommend import Outlook, Recommendation, declared, recommend
from advisor.recommend.infoscale import FIGURES, PARTS
from advisor.report.layout import columns
from advisor.report.recommend import recommendation_document, recommendation_text
from advisor.rules.clusters.infoscale import profile_of, recognition
from tests.report import plans
from tests.rules.build import SYSCTL, facts, replaced
from tests.rules.cases_infoscale import AWS, MIRRORED, NEAR, PORTS, SHARED, SINGLE, TCP, cluster, table

BUFFERS, JUMBO, LLT = "socket-buffers-8m", "jumbo-frames", "llt-highwater-doubled"
NARROW = tuple(replaced(one, {"mtu": 1500}) for one in PORTS)
DEFAULT: dict[str, Any] = {"sysctl": SYSCTL, "links": NARROW, "table": table(flow={})}
FSS_TCP = cluster(*TCP, disks=MIRRORED, **DEFAULT)
FSS_UDP = cluster(disks=MIRRORED, **{**DEFAULT, "table": replaced(NEAR, {"flow": {}}), "host": AWS})
SHARED_DISK = cluster(disks=SHARED, **DEFAULT)
OPEN = cluster(**DEFAULT)
ALONE = {**SINGLE, "sysctl": SYSCTL, "links": NARROW}
HOSTS = {"single-node": ALONE, "shared-disk": SHARED_DISK, "fss-tcp": FSS_TCP, "fss-udp": FSS_UDP}


def judged(root: Path, workload: str | None, parts: dict[str, Any], *names: str) -> dict[str, Recommendation]:
    """The judgement on these profiles, with the plans that they really have on a tree like these facts."""
    found = facts(**parts)
    files = plans.tree_files({**plans.SYSCTL, **found.sysctl}, **{one.name: one.mtu or 1500 for one in found.links})
    known = [Outlook(name, load(name), plans.make(root / name, name, files=files, facts=found)) for name in names]
    made = recommend(found, declared(workload) if workload else None, known)
    return {one.profile: one for one in made}


def of(root: Path, workload: str | None, parts: dict[str, Any], name: str) -> Recommendation:
    return judged(root, workload, parts, name)[name]


@pytest.mark.parametrize(
    ("name", "workload", "parts", "fits", "standing"),
    [
        # Each where the paper found it best, declared.
        ("infoscale-fss-tcp", "fss-tcp", FSS_TCP, "yes", "workload"),
        ("infoscale-fss-udp", "fss-udp", FSS_UDP, "yes", "symptom"),
        ("infoscale-fss-zones", "fss-cross-zone", cluster(disks=MIRRORED, **DEFAULT), "yes", "symptom"),
        # Recognised alone: whether the load is sequential, or writes, cannot be seen.
        ("infoscale-fss-tcp", None, FSS_TCP, "perhaps", "intent"),
        ("infoscale-fss-udp", None, FSS_UDP, "yes", "symptom"),
        # What is unknown is a matter of intent, whatever symptom there is.
        ("infoscale-fss-udp", None, OPEN, "perhaps", "intent"),
        ("infoscale-fss-zones", None, OPEN, "perhaps", "intent"),
        # The other configurations.
        ("infoscale-fss-zones", "fss-udp", OPEN, "no", "unfit"),
        ("infoscale-fss-udp", "fss-cross-zone", OPEN, "no", "unfit"),
        ("infoscale-fss-udp", "shared-disk", OPEN, "no", "unfit"),
        ("infoscale-fss-tcp", None, OPEN, "no", "not-applicable"),
        ("infoscale-fss-udp", None, SHARED_DISK, "no", "not-applicable"),
        ("infoscale-fss-udp", None, {}, "no", "not-applicable"),
        # Two that gain by nothing, on any host.
        ("infoscale-single-node", None, ALONE, "no", "not-applicable"),
        ("infoscale-shared-disk", None, SHARED_DISK, "no", "not-applicable"),
        ("infoscale-shared-disk", None, OPEN, "perhaps", "unknown"),
        ("infoscale-shared-disk", "fss-udp", OPEN, "no", "unfit"),
        # The tunings by themselves.
        (JUMBO, "fss-tcp", FSS_TCP, "yes", "workload"),
        (LLT, "fss-tcp", FSS_TCP, "perhaps", "workload"),
        (LLT, None, SHARED_DISK, "no", "unfit"),
        (LLT, "fss-cross-zone", OPEN, "yes", "workload"),
        (LLT, None, FSS_TCP, "perhaps", "intent"),
    ],
)
def test_the_judgement(
    name: str, workload: str | None, parts: dict[str, Any], fits: str, standing: str, tmp_path: Path
) -> None:
    made = of(tmp_path, workload, parts, name)
    assert (made.fits, made.standing) == (fits, standing), made.summary
    assert made.summary.endswith(".")


def test_a_configuration_that_sets_nothing_has_no_command_while_it_is_unknown(tmp_path: Path) -> None:
    assert of(tmp_path, None, OPEN, "infoscale-shared-disk").command is None
    assert of(tmp_path, None, OPEN, "infoscale-fss-udp").command is not None


@pytest.mark.parametrize("name", HOSTS)
def test_what_is_recognised_is_said_to_be_no_declaration(name: str, tmp_path: Path) -> None:
    made = of(tmp_path, None, HOSTS[name], profile_of(name))
    assert made.summary.startswith(f"Recognised, not declared: this host is {TITLES[name]}.")
    assert made.cases[0].holds is True
    assert {reason.rule for reason in made.why} >= {"infoscale.configuration"}


@pytest.mark.parametrize("name", ["single-node", "shared-disk"])
def test_two_say_that_nothing_helps(name: str, tmp_path: Path) -> None:
    made = of(tmp_path, None, HOSTS[name], profile_of(name))
    assert "It sets nothing: " in made.summary
    assert made.command is None
    plan = plans.make(tmp_path / "again", profile_of(name), facts=facts(**HOSTS[name]))
    assert plan.is_empty
    assert plan.cannot_apply
    assert plan.skipped[0].reason.startswith("Sets nothing: ")


def test_doubt_is_told_with_how_to_end_it(tmp_path: Path) -> None:
    made = of(tmp_path, None, OPEN, "infoscale-fss-udp")
    assert made.summary.startswith("It is unknown whether this host is ")
    assert "vxdisk -o alldgs list" in made.summary
    assert made.cases[0].holds is None
    assert any("advisor probe" in text for text in made.unknown)
    near = of(tmp_path / "near", None, FSS_UDP, "infoscale-fss-udp")
    assert not any("vxdisk" in text for text in near.unknown)


def test_what_is_recognised_takes_the_place_of_no_declaration_and_stays_a_matter_of_intent(tmp_path: Path) -> None:
    held = {**FSS_UDP, "sysctl": {**SYSCTL, "net.core.rmem_default": "851968"}}
    made = of(tmp_path, None, held, BUFFERS)
    assert (made.fits, made.standing) == ("perhaps", "intent")
    assert made.summary.startswith("Recognised, not declared: this host is a node of a cluster that mirrors its disks")
    assert {reason.kind for reason in made.why} == {"host"}
    open_ = of(tmp_path / "open", None, {**OPEN, "sysctl": held["sysctl"]}, BUFFERS)
    assert open_.summary.startswith("A matter of intent")


def test_a_tuning_names_the_profile_that_has_it(tmp_path: Path) -> None:
    made = judged(tmp_path, None, FSS_UDP, BUFFERS, "infoscale-fss-udp", LLT)
    assert any("infoscale-fss-udp has it" in reason.text for reason in made[BUFFERS].why)
    assert any("jumbo-frames, socket-buffers-8m" in reason.text for reason in made["infoscale-fss-udp"].why)
    assert not any("infoscale" in reason.text for reason in made[LLT].why)


def test_one_window_is_what_the_profile_sets_and_a_larger_one_asks_for_more(tmp_path: Path) -> None:
    made = of(tmp_path, "fss-udp", FSS_UDP, "infoscale-fss-udp")
    assert made.command == "advisor plan infoscale-fss-udp"
    wide = {"highwater": 1000, "rporthighwater": 1000, "window": 100}
    larger = of(tmp_path / "wide", "fss-udp", cluster(disks=MIRRORED, flow=wide, **DEFAULT), "infoscale-fss-udp")
    assert larger.command == f"advisor plan infoscale-fss-udp --set bytes={100 * 17_039}"
    far = of(tmp_path / "far", "fss-udp,rtt=5ms", cluster(disks=MIRRORED, **DEFAULT), "infoscale-fss-zones")
    assert far.command == "advisor plan infoscale-fss-zones --set bytes=33554432"


def test_the_size_of_a_path_is_its_cost(tmp_path: Path) -> None:
    made = of(tmp_path, "fss-cross-zone", cluster(disks=MIRRORED, **DEFAULT), "infoscale-fss-zones")
    assert "15.6 MiB for each peer once its queue is full." in made.hurts
    # Of the command that is offered: 2 × 25 Gbit/s × 1.16 ms, rounded up.
    assert str(made.command).endswith("--set bytes=8388608")
    assert any(text.startswith("6 UDP sockets could hold 96 MiB") for text in made.hurts)
    made = of(tmp_path, "infoscale.64k-seq-w100,rtt=1.16ms", OPEN, BUFFERS)
    size = int(str(made.command).rpartition("=")[2])
    assert made.hurts[-1].startswith(f"Every UDP and raw socket may take {size:,} bytes ")
    assert not [one for one in made.hurts if "8 MiB" in one]


@pytest.mark.parametrize("name", TITLES)
def test_figures_and_parts_are_those_of_the_profiles(name: str) -> None:
    profile = load(profile_of(name))
    assert profile.inherits == PARTS[name]
    assert bool(profile.tunables) == bool(PARTS[name]) == bool(profile.proof)
    assert all(each.text and each.workload and each.source for each in FIGURES[profile.name])


@pytest.mark.parametrize("workload", [None, "fss-udp"])
def test_page_and_document_tell_what_was_recognised(workload: str | None, tmp_path: Path) -> None:
    wanted = declared(workload) if workload else None
    for number, parts in enumerate((OPEN, FSS_UDP, {})):
        found, host = judged(tmp_path / str(number), workload, parts, "infoscale-fss-udp"), facts(**parts)
        seen = recognition(host, wanted)
        text = " ".join(recommendation_text(wanted, list(found.values()), seen, width=90, color=False).split())
        document = json.loads(recommendation_document(wanted, list(found.values()), seen))
        assert (document["recognised"] is None) == (parts == {}) == ("InfoScale: " not in text)
        if seen and seen.configuration:
            assert ("recognised, not declared" in text) == (workload is None)
            assert document["recognised"]["configuration"] == "fss-udp"
    lines = recommendation_text(None, [], recognition(facts(**OPEN), None), width=60, color=False).splitlines()
    assert max(map(columns, lines)) <= 60


@pytest.mark.parametrize("host", [SHARED_DISK, ALONE], ids=["shared", "single"])
@pytest.mark.parametrize(
    "workload", [None, "infoscale.4k-seq-rw50", "infoscale.64k-seq-w100", "fss-udp", "fss-cross-zone", "batch"]
)
def test_what_was_seen_outranks_what_is_declared(workload: str | None, host: dict[str, Any], tmp_path: Path) -> None:
    for name, made in judged(tmp_path, workload, host, BUFFERS, JUMBO, LLT).items():
        assert (made.fits, made.standing) in (("no", "unfit"), ("no", "not-applicable")), name
        if workload in ("fss-udp", "infoscale.4k-seq-rw50") and made.standing == "unfit":
            assert "contradicts" in made.summary


@pytest.mark.parametrize(
    ("workload", "fits"),
    [
        ("infoscale.4k-seq-r100,rtt=1.16ms", "no"),
        ("infoscale.64k-seq-r100,rtt=1.16ms", "no"),
        ("fss-cross-zone,read=100%", "no"),
        ("rtt=1.16ms", "perhaps"),
        ("replication=sync,rtt=1.16ms", "perhaps"),
        ("infoscale.4k-seq-rw50,rtt=1.16ms", "yes"),
        ("infoscale.4k-rand-w100,rtt=1.16ms", "yes"),
        ("replication=sync,write=30%,rtt=1.16ms", "yes"),
        ("replication=sync,write=30%,rtt=200us", "no"),
    ],
)
def test_reads_do_not_cross_and_a_round_trip_alone_is_no_reason(workload: str, fits: str, tmp_path: Path) -> None:
    """But where the mirror is seen, a long round trip is the configuration that the white paper names it for."""
    assert of(tmp_path, workload, OPEN, LLT).fits == fits
    seen = "yes" if fits == "perhaps" else fits
    assert of(tmp_path / "mirrored", workload, cluster(disks=MIRRORED, **DEFAULT), LLT).fits == seen


@pytest.mark.parametrize("rtt", ["1.16ms", "300us", "8ms"])
def test_one_path_has_one_size_and_its_formula(rtt: str, tmp_path: Path) -> None:
    asked = ("infoscale.64k-seq-w100", "infoscale.4k-seq-rw50", "fss-cross-zone", "fss-udp", "replication=sync,write=1")
    made = [of(tmp_path / str(at), f"{one},rtt={rtt}", OPEN, BUFFERS) for at, one in enumerate(asked)]
    assert len({one.command for one in made}) == 1
    formulas = {reason.text for one in made for reason in one.why if reason.text.startswith("The size of this path")}
    (formula,) = formulas
    assert "LLT window 50 packets × 17,039 bytes = 851,950" in formula
    assert f"2 × 25,000 Mbit/s of eth1 × {rtt.removesuffix('ms') if 'ms' in rtt else '0.3'} ms" in formula
    size = str(made[0].command).rpartition("=")[2]
    assert f"{int(size):,}" in formula
