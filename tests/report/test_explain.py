from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from advisor.diagnosis.cause import Cause
from advisor.diagnosis.diagnose import list_causes
from advisor.errors import UsageError
from advisor.profiles.profile import profile_paths
from advisor.report.explain import (
    Explanation,
    describe_handling,
    explain_id,
    explanation_text,
    form_words,
    list_examples,
)
from advisor.report.terms import EFFECTS, RISKS
from advisor.rules.judged import RULES
from advisor.tunables import Kind, all_kinds, parse_tunable
from advisor.tunables.kind import kind_words
from tests.each import for_each
from tests.golden import assert_golden
from tests.report.pasted import lines_too_wide
from tests.trees import host_of, make_tree

IDS = (*(rule.id for rule in RULES), *profile_paths(), *(identity for identity, _ in list_examples()))


@for_each("cause", list_causes())
def test_a_cause_of_why_is_said_to_be_one_and_where_it_is_described(cause: Cause) -> None:
    found = explain_id(cause.id)
    assert (found.kind, found.what, found.sources) == ("cause", cause.what, cause.sources)
    text = explanation_text(found, width=80, color=False)
    assert "A cause of advisor why" in text
    assert "docs/why.md" in text
    assert lines_too_wide(text, 80) == []


@for_each("identity", IDS)
def test_everything_that_has_an_id_can_be_explained(identity: str) -> None:
    found = explain_id(identity)
    assert found.id == identity
    assert found.title
    # What no profile sets has no reason, no harm and no source yet.
    assert found.why == "No profile of this host sets it." or all((found.why, found.hurts_when, found.sources))
    for width in (40, 80, 160):
        text = explanation_text(found, width=width, color=False)
        assert lines_too_wide(text, width) == []
    assert msgspec.json.decode(msgspec.json.encode(found), type=Explanation) == found


@for_each("identity", IDS)
def test_an_explanation_says_all_that_it_holds(identity: str) -> None:
    found = explain_id(identity)
    text = " ".join(explanation_text(found, width=100, color=False).split())
    texts = (found.title, found.what, found.why, found.helps_when, found.hurts_when, *found.sources)
    assert [part for part in (*texts, *(text for _, text in found.details)) if " ".join(part.split()) not in text] == []


EXPLAINED = (
    *("arrays.degraded", "socket-buffers-8m", "sysctl:net.core.rmem_max", "sysctl:net.core.default_qdisc"),
    *("link:bond0.7:mtu", "unit:a@b.service:numa", "irq:7:affinity", "llt:highwater", "sysctl:net.core.rmem_mxa"),
    *("sysctl:vm.foo", "sysctl:vm.swappiness", "sysctl:net.ipv4.tcp_rmem"),
)


def test_the_pages_of_explanations() -> None:
    explained = {identity: explain_id(identity) for identity in EXPLAINED}
    assert {found.kind for found in explained.values()} == {"rule", "profile", "tunable"}
    pages = (f"== {name}\n{explanation_text(found, width=80, color=False)}" for name, found in explained.items())
    assert_golden("explain", "\n".join(pages))


@pytest.mark.parametrize(
    ("identity", "hint"),
    [
        ("socket-bufers-8m", "did you mean socket-buffers-8m?"),
        ("vm.swapiness", "did you mean sysctl:vm.swappiness"),
        ("buffers", "did you mean buffers."),
        ("mdadm-scrubbing", "a tunable begins with one of sysctl:"),
        (RULES[0].id + "x", RULES[0].id),
        ("systcl:net.core.rmem_max", "sysctl:net.core.rmem_max"),
        ("zzzzzz", "a tunable begins with one of sysctl:"),
        ("", "a tunable begins with one of sysctl:"),
        ("link:eth1:speed", "write link:eth1:mtu"),
    ],
)
def test_what_is_unknown_is_a_usage_error_with_the_closest_ids(identity: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        explain_id(identity)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.name)
def test_every_kind_of_tunable_is_described(kind: Kind) -> None:
    """A new kind needs an example, and a module that begins: id in double backticks, dash, what it is."""
    identity, value = kind.examples[0]
    one = parse_tunable(identity)
    assert one.check_value(value) is None
    assert re.fullmatch(rf"{kind.name}:[A-Z]\S*", form_words(one))
    assert kind_words(one)
    reported = describe_handling(identity, value=value)
    assert reported.read_by
    assert reported.setting()
    assert bool(reported.persists_in) != bool(reported.persist_note)
    assert one.takes_effect in EFFECTS
    assert one.risk in RISKS


@pytest.mark.parametrize(
    ("identity", "shown"),
    [
        ("sysctl:net.ipv4.neigh.default.gc_thresh3", "gc_thresh3 = VALUE"),
        ("sysctl:fs.nr_open", "fs.nr_open = VALUE"),
        ("sysctl:net.ipv4.tcp_fack", "tcp_fack = 1"),
        ("link:eth1:ring.rx", 'ATTR{address}=="ADDRESS"'),
    ],
)
def test_an_example_is_no_number_of_another_key_and_no_address_of_another_host(identity: str, shown: str) -> None:
    found = describe_handling(identity)
    assert shown in (found.line or "")
    assert "8388608" not in found.set_by


def test_the_handling_on_a_host_is_with_its_own_address(tmp_path: Path) -> None:
    device = "/sys/class/net/eth1"
    files = {f"{device}/address": "0a:00:00:00:02:02\n", f"{device}/addr_assign_type": "0\n"}
    files |= {
        f"{device}/device/uevent": "",
        f"{device}/tx_queue_len": "1000\n",
        "/usr/bin/sh": "",
        "/run/udev/control": "",
    }
    files["/run/udev/control"] = ""
    host = host_of(make_tree(tmp_path, files))
    assert "0a:00:00:00:02:02" in dict(explain_id("link:eth1:txqueuelen", host).details)["persists"]
    assert "ADDRESS" in dict(explain_id("link:eth2:txqueuelen", host).details)["persists"]


@pytest.mark.parametrize("width", [80, 97, 98, 100, 103, 160])
def test_the_addresses_of_sources_stand_in_one_column(width: int) -> None:
    text = explanation_text(explain_id("sysctl:vm.swappiness"), width=width, color=False)
    begins = {len(line) - len(line.lstrip()) for line in text.splitlines() if line.lstrip().startswith("https://")}
    assert len(begins) == 1
