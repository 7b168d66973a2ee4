"""Repetitions of a proof: what the sequence says, in what cases it refuses, and that it does not cry wolf."""

from __future__ import annotations

import math
import random
from pathlib import Path

import msgspec
import pytest

from advisor.errors import InvalidInputError, RefusedError, UsageError
from advisor.operations.again import why_not_counted
from advisor.proof.archive import load_proof, save_result
from advisor.proof.gain_history import (
    GainHistory,
    Repetition,
    begin_history,
    find_history,
    judge_history,
    recorded_facts,
    require_room,
    save_history,
)
from advisor.proof.gain_sequence import LEVEL, REPETITIONS, weigh_repetitions
from advisor.proof.identity import HostIdentity
from advisor.proof.records import Proof
from advisor.proof.result_store import results_directory
from advisor.proof.series import Bench
from advisor.proof.verdict import decide_session
from advisor.report.gain import gain_text
from benchmarks.gain_sequence import GAIN, LAWS, VANISHES, WEEKS, proven_least, week_found
from tests.golden import assert_golden

from .benches import saved as saved_bench
from .sessions import pair, session

LEAST = math.log(1.08)


def proof(gain: float = 1.12) -> Proof:
    """A proof of a gain, made on a host with the kernel 6.8."""
    source = random.Random(3)
    pairs = [pair(at, 1000.0, 1000.0 * gain * math.exp(source.gauss(0, 0.01))) for at in range(24)]
    host = HostIdentity("one", "0" * 32, "6.8.0", "1.0")
    return decide_session(msgspec.structs.replace(session(pairs), host=host, started="2026-03-03T10:00:00+00:00"))


def history(*weeks: tuple[float, str], gain: float = 1.12) -> GainHistory:
    """Of weekly repetitions, each with its effect as a fraction and its kernel."""
    made = begin_history("one", proof(gain))
    source = random.Random(4)
    repeated = tuple(
        Repetition(
            f"2026-{4 + at // 28:02}-{1 + at % 28:02}T10:00:00+00:00",
            {made.gains[0].key: tuple(math.log1p(effect) + source.gauss(0, 0.01) for _ in range(3))},
            {"kernel": kernel, "advisor": "1.0"},
        )
        for at, (effect, kernel) in enumerate(weeks)
    )
    return msgspec.structs.replace(made, repetitions=repeated)


def test_a_gain_that_stays_is_there_however_often_it_is_repeated() -> None:
    found = judge_history(history(*[(0.12, "6.8.0")] * REPETITIONS))
    assert judge_history(begin_history("one", proof())).is_there
    assert (found.is_there, found.repetitions) == (True, REPETITIONS)
    assert found.gains[0].evidence == 1
    assert_golden("gain-there", gain_text(found, width=80, color=False))


def test_a_gain_that_goes_with_a_kernel_is_said_to_with_date_and_kernel() -> None:
    found = judge_history(history(*[(0.12, "6.8.0")] * 9, *[(0.0, "6.11.0")] * 9))
    [gain] = found.gains
    assert (gain.state, gain.since) == ("gone", "2026-04-10T10:00:00+00:00")
    assert gain.differences == (("kernel", "6.8.0", "6.11.0"),)
    assert_golden("gain-gone", gain_text(found, width=80, color=False))


def test_a_gain_that_is_gone_from_the_first_repetition_is_compared_with_the_proof() -> None:
    [gain] = judge_history(history(*[(-0.02, "6.11.0")] * 9)).gains
    assert (gain.state, gain.differences) == ("gone", (("kernel", "6.8.0", "6.11.0"),))


def test_a_gain_of_which_most_is_left_has_become_smaller() -> None:
    found = judge_history(history(*[(0.09, "6.8.0")] * 20))
    [gain] = found.gains
    assert (gain.state, gain.differences) == ("smaller", ())
    assert_golden("gain-smaller", gain_text(found, width=80, color=False))


def test_the_side_of_a_difference_alone_decides_what_is_won() -> None:
    assert weigh_repetitions([[LEAST]] * 9, LEAST).stake == 1
    below, above = ([[LEAST + side]] * 9 for side in (-0.05, 0.05))
    assert weigh_repetitions(above, LEAST).stake == 1
    stakes = [weigh_repetitions(below[:at], LEAST).stake for at in range(1, 10)]
    assert stakes == sorted(stakes)
    assert weigh_repetitions(below, LEAST).since == 0


@pytest.mark.repeats(2)
@pytest.mark.parametrize("law", LAWS)
def test_a_gain_at_the_lower_end_is_hardly_ever_called_gone_in_a_year(law: str) -> None:
    source, wrong, histories = random.Random(law), 0, 60
    for _ in range(histories):
        weeks = LAWS[law](source, 0.11 / math.sqrt(2))
        wrong += week_found(weeks, [LEAST] * WEEKS, LEAST) is not None
    # 5 % of 60 are 3; by chance 8 or more of a level of 5 % in less than one run in a hundred.
    assert wrong < 8


def test_a_gain_that_vanishes_is_found_within_months() -> None:
    source, found = random.Random(9), []
    for _ in range(20):
        least = proven_least(source, 0.05 / math.sqrt(2))
        gains = [GAIN] * VANISHES + [0.0] * (WEEKS - VANISHES)
        found.append(week_found(LAWS["calm"](source, 0.05 / math.sqrt(2)), gains, least))
    assert all(week is not None and VANISHES < week <= VANISHES + 20 for week in found)
    assert 1 / LEVEL == 20


def test_a_proof_without_a_gain_is_not_repeated() -> None:
    with pytest.raises(RefusedError, match="no gain that could go"):
        begin_history("one", proof(1.0))


def test_a_level_that_is_spent_is_said() -> None:
    with pytest.raises(RefusedError, match="104 times"):
        require_room(history(*[(0.12, "6.8.0")] * REPETITIONS))


def test_a_history_is_kept_and_found_by_the_beginning_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path / "state"))
    with pytest.raises(UsageError, match="no such proof"):
        find_history("last")
    first = msgspec.structs.replace(history((0.12, "6.8.0")), id="20260303T100000Z-one")
    path = save_history(first)
    assert path.stat().st_mode & 0o777 == 0o600
    assert find_history("20260303") == first == find_history("last")
    save_history(msgspec.structs.replace(first, id="20260304T100000Z-two"))
    with pytest.raises(UsageError, match="begins several proofs"):
        find_history("202603")
    for text in ("{", "[]", path.read_text().replace('"least":', '"least":1e300,"x":'), "\xff"):
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(InvalidInputError, match="20260303T100000Z-one"):
            find_history("20260303")


def test_a_history_is_that_of_one_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path / "state"))
    place, first = tmp_path / "mine.json.gz", proof()
    save_result(place, first, {})
    save_history(begin_history("mine", first))
    assert find_history(str(place)).id == "mine"
    save_result(place, msgspec.structs.replace(first, session=msgspec.structs.replace(first.session, seed=99)), {})
    with pytest.raises(UsageError, match="another proof of that name was repeated, made at 2026-03-03"):
        find_history(str(place))
    place.unlink()
    assert find_history(str(place)).id == "mine"


def test_a_history_without_a_gain_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path / "state"))
    save_history(msgspec.structs.replace(begin_history("one", proof()), gains=()))
    with pytest.raises(InvalidInputError, match="it holds no gain"):
        find_history("one")
    bare = msgspec.structs.replace(proof(), workloads=(msgspec.structs.replace(proof().workloads[0], verdict=None),))
    with pytest.raises(RefusedError, match="no claim in it shows a gain"):
        begin_history("two", bare)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"forced": True}, "measured on a busy host by --force"),
        ({"faults": ("fio was killed",)}, "fio was killed"),
        ({"ended": "interrupted"}, "interrupted"),
        ({"pairs": tuple(pair(at, 1000.0, 1120.0, contaminated=at < 16) for at in range(24))}, "contaminated"),
        ({}, None),
    ],
)
def test_a_repetition_that_is_no_measurement_is_not_counted(change: dict[str, object], why: str | None) -> None:
    found = why_not_counted(decide_session(msgspec.structs.replace(proof().session, **change)))
    assert (found is None) == (why is None)
    assert (why or "") in (found or "")


def keep(name: str, result: Proof | Bench) -> None:
    """In the state directory, under an id."""
    directory = results_directory()
    directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    save_result(directory / f"{name}.json.gz", result, {})


def test_last_is_the_last_session_that_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path / "state"))
    keep("20260301T000000Z-older", proof())
    keep("20260302T000000Z-jumbo", proof())
    keep("20260303T000000Z-nothing", proof(1.0))
    keep("20260304T000000Z-bench", saved_bench([1000.0] * 8).bench)
    (results_directory() / "20260305T000000Z-broken.json.gz").write_bytes(b"no proof")
    assert find_history("last").id == "20260302T000000Z-jumbo"
    # one that was repeated goes on to be found when the proof itself is gone
    save_history(begin_history("20260302T000000Z-jumbo", proof()))
    (results_directory() / "20260302T000000Z-jumbo.json.gz").unlink()
    assert find_history("last").id == "20260302T000000Z-jumbo"


def test_last_is_refused_with_the_reason_where_nothing_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path / "state"))
    with pytest.raises(UsageError, match="there is no such proof"):
        find_history("last")
    keep("20260303T000000Z-nothing", proof(1.0))
    keep("20260304T000000Z-bench", saved_bench([1000.0] * 8).bench)
    with pytest.raises(RefusedError, match="no kept session can be repeated; the newest of 2: ") as caught:
        find_history("last")
    assert "a saved series (advisor bench)" in caught.value.message


def test_a_proof_is_checked_by_the_same_open_file_that_is_read(tmp_path: Path) -> None:
    place = tmp_path / "shared.json.gz"
    save_result(place, proof(), {})
    place.chmod(0o666)
    assert load_proof(place).proof.verdict == "gain"
    with pytest.raises(RefusedError, match="only its owner can write"):
        load_proof(place, only_trusted=True)


def test_a_session_of_an_older_version_has_the_facts_that_it_has() -> None:
    assert recorded_facts(msgspec.structs.replace(proof().session, host=None)) == {"fio": "fio-3.33"}


def test_a_proof_that_others_can_write_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path / "state"))
    place = tmp_path / "shared.json.gz"
    save_result(place, proof(), {})
    assert find_history(str(place)).id == "shared"
    place.chmod(0o666)
    with pytest.raises(RefusedError, match="only its owner can write"):
        find_history(str(place))
