from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

import pytest

from advisor.fleet.runs.status import FleetStanding, HostStanding
from advisor.report.monitoring import MAX_LINES, MAX_SERIES, NAGIOS_CODES, VerifyState, fleet_states, nagios_text
from advisor.transaction.status import Drift, Status
from tests.golden import assert_golden
from tests.report.exposition import metrics_text, samples
from tests.report.test_change import change, plan, record

LIVE = Drift("0007", "sysctl:vm.swappiness", "10", "60", "is as before the transaction")
FILE = Drift("0007", "/etc/sysctl.d/90-advisor-p.conf", "its content", None, "was removed")
UNREAD = Drift("0007", "link:eth1:mtu", "9000", None, "cannot be read: no such file")
HOSTILE = 'sysctl:net.a"b\\c\nd} 7 # |x\x1b[31m\udcff'
TIME = 1_772_374_500.25


def state(*drift: Drift, **parts: Any) -> VerifyState:
    return VerifyState(TIME, Status((record(plan(change()), **parts),), drift))


def failed(why: str = "only root can read it") -> VerifyState:
    return VerifyState(TIME, None, why)


def nagios(hosts: Mapping[str | None, VerifyState]) -> tuple[str, list[str], int]:
    """The first line, the others, and the code; the form of each is looked at on the way."""
    text, code = nagios_text(hosts)
    first, *rest = text.split("\n")[:-1]
    words, bar, figures = first.partition(" | ")
    assert bar
    assert "|" not in words + "".join(rest)
    assert (words + "".join(rest)).isprintable()
    assert NAGIOS_CODES[words.split(" - ")[0].removeprefix("ADVISOR ")] == code  # type: ignore[index]
    for figure in shlex.split(figures):
        assert re.fullmatch(r"[a-z_]+=([0-9]+|U);;;0", figure)
    return words, rest, code


# -- Prometheus ----------------------------------------------------------------------------------------------------


def test_a_host_that_is_as_set() -> None:
    found = samples(metrics_text({None: state()}))
    assert found["advisor_verify_success", ()] == 1
    assert found["advisor_verify_timestamp_seconds", ()] == TIME
    assert found["advisor_transactions_in_force", ()] == 1
    assert found["advisor_values_in_force", ()] == 1
    assert found["advisor_waiting_for_confirmation", ()] == 0
    assert found["advisor_drift_items", (("kind", "live"),)] == 0
    assert found["advisor_profile_info", (("profile", "p"), ("transaction", "0007"))] == 1
    assert not [name for name, _ in found if name in ("advisor_drift", "advisor_unknown")]


def test_each_thing_that_drifted_has_a_series_of_its_kind() -> None:
    found = samples(metrics_text({None: state(LIVE, FILE, UNREAD)}))
    drift = {labels for name, labels in found if name == "advisor_drift"}
    assert drift == {
        (("kind", "live"), ("transaction", "0007"), ("tunable", LIVE.what)),
        (("kind", "persisted"), ("transaction", "0007"), ("tunable", FILE.what)),
    }
    assert found["advisor_unknown", (("kind", "live"), ("transaction", "0007"), ("tunable", UNREAD.what))] == 1
    assert found["advisor_drift_items", (("kind", "live"),)] == 1
    assert found["advisor_unknown_items", (("kind", "live"),)] == 1


def test_waiting_and_unfinished_transactions_are_counted() -> None:
    waiting = samples(metrics_text({None: state(state="awaiting-confirmation", seconds_left=7.0)}))
    assert waiting["advisor_waiting_for_confirmation", ()] == 1
    assert waiting["advisor_transactions_in_force", ()] == 1
    broken = samples(metrics_text({None: state(state="applying")}))
    assert broken["advisor_transactions_unfinished", ()] == 1
    assert broken["advisor_transactions_in_force", ()] == 0


def test_a_failure_leaves_nothing_that_could_pass_for_a_state() -> None:
    found = samples(metrics_text({None: failed()}))
    assert found["advisor_verify_success", ()] == 0
    assert {name for name, _ in found} == {
        "advisor_build_info",
        "advisor_verify_success",
        "advisor_verify_timestamp_seconds",
    }


def test_what_a_hostile_name_holds_stays_inside_its_label() -> None:
    one = Drift("0007", HOSTILE, "1", "2", "modified externally")
    text = metrics_text({HOSTILE: state(one)})
    found = samples(text)
    shown = HOSTILE.replace("\x1b", "\\x1b").replace("\udcff", "\\udcff")
    labels = (("host", shown), ("kind", "live"), ("transaction", "0007"), ("tunable", shown))
    assert found["advisor_drift", labels] == 1
    assert all(char.isprintable() or char == "\n" for char in text)


def test_the_number_of_series_is_bounded() -> None:
    many = [Drift("0007", f"sysctl:net.{number}", "1", "2", "modified externally") for number in range(5000)]
    unread = [Drift("0007", f"link:e{number}:mtu", "1", None, "cannot be read: gone") for number in range(5000)]
    profiles = plan(change(), profiles=tuple(f"p{number}" for number in range(5000)))
    found = samples(metrics_text({None: VerifyState(TIME, Status((record(profiles),), (*many, *unread)))}))
    assert len(found) <= 3 * MAX_SERIES + 12
    assert found["advisor_drift_items", (("kind", "live"),)] == 5000


def test_names_that_are_alike_once_they_are_cut_make_one_series() -> None:
    long = [Drift("0007", "sysctl:" + "a" * 500 + end, "1", "2", "modified externally") for end in ("x", "y")]
    found = samples(metrics_text({None: state(*long)}))
    assert len([name for name, _ in found if name == "advisor_drift"]) == 1


def test_hosts_of_a_fleet_have_a_label_and_the_failed_one_its_own_success() -> None:
    found = samples(metrics_text({"a": state(), "b": state(LIVE), "c": failed()}))
    success = {labels: value for (name, labels), value in found.items() if name == "advisor_verify_success"}
    assert success == {(("host", "a"),): 1, (("host", "b"),): 1, (("host", "c"),): 0}
    assert found["advisor_drift_items", (("host", "b"), ("kind", "live"))] == 1
    assert ("advisor_drift_items", (("host", "c"), ("kind", "live"))) not in found


def test_a_fleet_that_was_verified_host_by_host() -> None:
    one = record(plan(change()))
    found = FleetStanding(
        (
            HostStanding("a", "drifted", (one,), (LIVE,), taken=TIME),
            HostStanding("b", "failed", message="unreachable: no route", taken=TIME - 900),
            HostStanding("c", "nothing"),
        )
    )
    states = fleet_states(found, TIME + 5)
    assert {name: state.time - TIME for name, state in states.items()} == {"a": 0, "b": 5, "c": 5}
    _, rest, code = nagios(states)
    assert code == 2
    assert rest[-1] == "b: UNKNOWN: unreachable: no route"
    assert samples(metrics_text(states))["advisor_drift_items", (("host", "a"), ("kind", "live"))] == 1


# -- Nagios --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (state(LIVE), 2),
        (state(LIVE, UNREAD), 2),
        (state(state="rolling-back"), 2),
        (state(FILE), 1),
        (state(FILE, UNREAD), 1),
        (state(state="awaiting-confirmation"), 1),
        (state(UNREAD), 3),
        (failed(), 3),
    ],
)
def test_the_worst_counts(one: VerifyState, code: int) -> None:
    assert nagios({None: one})[2] == code


def test_the_answers_of_the_plugin() -> None:
    asked: dict[str, dict[str | None, VerifyState]] = {
        "as set": {None: state()},
        "nothing": {None: VerifyState(TIME, Status((), ()))},
        "drift": {None: state(LIVE, FILE, UNREAD)},
        "failed": {None: failed("/var/lib/advisor: only root can read it")},
        "a fleet": {"a": state(), "b": state(FILE), "c": failed("unreachable")},
        "a fleet as set": {"a": state(), "b": state()},
    }
    texts = []
    for name, hosts in asked.items():
        text, code = nagios_text(hosts)
        assert nagios(hosts)[2] == code
        texts.append(f"== {name}: {code}\n{text}")
    assert_golden("nagios", "".join(texts))


def test_hostile_names_break_neither_a_line_nor_the_figures() -> None:
    words, rest, _ = nagios({HOSTILE: state(Drift("0007", HOSTILE, "1|2", "3\n4", "modified externally"))})
    assert len(rest) == 1
    assert "advisor" not in rest[0]
    assert words.startswith("ADVISOR CRITICAL - ")


def test_the_long_output_is_bounded() -> None:
    many = [Drift("0007", f"sysctl:net.{number}", "1", "2", "modified externally") for number in range(5000)]
    _, rest, _ = nagios({None: state(*many)})
    assert len(rest) == MAX_LINES + 1
    assert rest[-1] == f"and {5000 - MAX_LINES} more"
