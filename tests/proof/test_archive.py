"""Saved proofs: whole or not at all, and not trusted when they are read."""

from __future__ import annotations

import gzip
import math
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from advisor.errors import CommandError, InvalidInputError, PermissionDeniedError, UsageError
from advisor.proof.archive import (
    Saved,
    SavedBench,
    check_place,
    load_any,
    load_proof,
    preserve_result,
    reanalyse_proof,
    save_result,
)
from advisor.proof.command_runner import KEPT_RESULTS, results_directory, store_result
from advisor.proof.records import Claim, FioRun
from advisor.proof.verdict import decide_session

from .benches import saved, speeds
from .sessions import WORKLOAD, pair, session

PROOF = decide_session(session([pair(index, 1000, 1200 + index) for index in range(8)]))


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    place = tmp_path / "x.proof"
    save_result(place, PROOF, {3: "{}", 0: '{"jobs": []}'})
    found = load_proof(place)
    assert found == Saved(msgspec.structs.replace(PROOF, saved_to=str(place)), {3: "{}", 0: '{"jobs": []}'})
    assert reanalyse_proof(place).verdict == PROOF.verdict == "gain"
    (tmp_path / "link").symlink_to(place)
    assert load_proof(tmp_path / "link").proof.session == PROOF.session
    # the same proof gives the same bytes
    before = place.read_bytes()
    save_result(place, PROOF, {3: "{}", 0: '{"jobs": []}'})
    assert place.read_bytes() == before


def test_a_session_that_could_end_after_any_pair_is_judged_by_its_looks(tmp_path: Path) -> None:
    """Such a proof was saved with the level of the whole session, which each of its looks would have had."""
    source = random.Random(4)
    pairs = [pair(index, 1000, 1000 * math.exp(source.gauss(0.05, 0.08))) for index in range(12)]
    plan = msgspec.structs.replace(session([]).schedule, pairs=24, looks=tuple(range(8, 25)), alpha=0.05)
    proof = decide_session(msgspec.structs.replace(session(pairs), schedule=plan, ended="settled"))
    place = tmp_path / "x.proof"
    text = msgspec.json.encode(Saved(proof, {})).replace(b'"alpha":0.05', b'"test":"any-time","alpha":0.05')
    assert b"any-time" in text
    place.write_bytes(compressed(text))
    found = reanalyse_proof(place)
    assert (proof.tendency, found.tendency) == ("gain", "inconclusive")
    assert found.alpha == pytest.approx(0.05 / 17)
    assert any("looked at 17 times, so significance is judged at 0.00294" in note for note in found.notes)


def test_a_failed_save_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        save_result(tmp_path / "missing/x.proof", PROOF, {})
    place = tmp_path / "directory"
    place.mkdir()
    with pytest.raises(CommandError):
        save_result(place, PROOF, {})
    assert os.listdir(tmp_path) == ["directory"]


def compressed(data: bytes) -> bytes:
    """Without the time of day in it: a parameter must be the same in every process that collects this test."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        compressed(b""),
        compressed(b"{}"),
        compressed(b'{"proof": 1, "fio": {}}'),
        compressed(b"[" * 100_000),
        compressed(msgspec.json.encode(Saved(PROOF, {})))[:-20],
        compressed(msgspec.json.encode(Saved(PROOF, {})).replace(b'"A"', b'"C"')),
    ],
)
def test_a_broken_file_is_invalid_input_with_its_name(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "broken.proof"
    place.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"broken\.proof: not a saved proof") as caught:
        load_proof(place)
    assert caught.value.exit_code == 2


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    place = tmp_path / "bomb.proof"
    with gzip.open(place, "wb", compresslevel=1) as file:
        for _ in range(260):
            file.write(bytes(1 << 20))
    with pytest.raises(InvalidInputError, match="larger"):
        load_proof(place)
    with pytest.raises(InvalidInputError, match="nowhere"):
        load_proof(tmp_path / "nowhere")


# -- what is no regular file -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fifo", "directory", "device", "link to a fifo"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "odd"
    os.mkfifo(tmp_path / "fifo")
    match kind:
        case "fifo":
            place = tmp_path / "fifo"
        case "directory":
            place.mkdir()
        case "device":
            place = Path("/dev/zero")
        case _:
            place.symlink_to(tmp_path / "fifo")
    with pytest.raises(InvalidInputError, match=f"{place.name}: not a saved proof or series: (no|Is a)"):
        load_proof(place)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_of_somebody_else_is_not_permitted(tmp_path: Path) -> None:
    save_result(tmp_path / "x", PROOF, {})
    (tmp_path / "x").chmod(0)
    with pytest.raises(PermissionDeniedError, match="x: Permission denied"):
        load_proof(tmp_path / "x")


def test_a_new_file_is_its_owner_s_and_an_old_one_keeps_mode_and_owner(tmp_path: Path) -> None:
    place = tmp_path / "x"
    before = os.umask(0)
    try:
        save_result(place, PROOF, {})
    finally:
        os.umask(before)
    assert place.stat().st_mode & 0o7777 == 0o600
    place.chmod(0o664)
    owner = (65534, 65534) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(place, *owner)
    save_result(place, PROOF, {1: "{}"})
    found = place.stat()
    assert (found.st_mode & 0o7777, found.st_uid, found.st_gid) == (0o664, *owner)
    assert load_proof(place).fio == {1: "{}"}


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_nothing_but_a_regular_file_is_replaced(tmp_path: Path, kind: str) -> None:
    place, precious = tmp_path / "there", tmp_path / "precious"
    precious.write_text("precious")
    match kind:
        case "fifo":
            os.mkfifo(place)
        case "link":
            place.symlink_to(precious)
        case _:
            place.mkdir()
    mode = place.lstat().st_mode
    with pytest.raises(UsageError, match="no regular file"):
        check_place(place)
    with pytest.raises(CommandError, match="no regular file"):
        save_result(place, PROOF, {})
    assert (place.lstat().st_mode, precious.read_text()) == (mode, "precious")


# -- what no session writes --------------------------------------------------------------------------------------------

SERIES = saved(speeds(8))
RUN = SERIES.bench.series.rounds[0].runs[0]
change = msgspec.structs.replace


def with_run(run: FioRun) -> SavedBench:
    one = change(SERIES.bench.series.rounds[0], runs=(run,))
    return SavedBench(change(SERIES.bench, series=change(SERIES.bench.series, rounds=(one,))), {})


def with_session(**changes: object) -> Saved:
    return Saved(change(PROOF, session=change(PROOF.session, **changes)), {})


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (with_run(change(RUN, figures=change(RUN.figures, iops=-5.0))), "iops -5"),
        (with_run(change(RUN, figures=change(RUN.figures, iops=1e-300))), "iops 1e-300"),
        (with_run(change(RUN, figures=change(RUN.figures, latency_p99_us=1e300))), "latency_p99_us 1e\\+300"),
        (with_run(change(RUN, workload="nonsense")), "no workload is named 'nonsense'"),
        (SavedBench(change(SERIES.bench, series=change(SERIES.bench.series, started="yesterday")), {}), "yesterday"),
        (saved(speeds(81)), "81 rounds are more"),
        (Saved(decide_session(session([pair(index, 1.0, 1.0) for index in range(81)])), {}), "81 pairs are more"),
        (with_session(schedule=change(PROOF.session.schedule, alpha=0.0)), "0 is no level"),
        (with_session(schedule=change(PROOF.session.schedule, alpha=1e-320)), "is no level"),
        (with_session(subject=change(PROOF.session.subject, claims=())), "0 claims"),
        (Saved(change(PROOF, workloads=()), {}), "holds no claim"),
        (Saved(change(PROOF, workloads=(change(PROOF.workloads[0], confidence=-1e308),)), {}), "is no confidence"),
        (Saved(change(PROOF, workloads=(change(PROOF.workloads[0], ci95=(0.0, 1.0)),)), {}), "is no interval"),
        (with_session(subject=change(PROOF.session.subject, guardrails=(), claims=(Claim(WORKLOAD),))), "its claims"),
    ],
)
def test_what_no_session_writes_is_invalid_input(tmp_path: Path, odd: Saved | SavedBench, words: str) -> None:
    (tmp_path / "odd").write_bytes(compressed(msgspec.json.encode(odd)))
    with pytest.raises(InvalidInputError, match=f"odd: .*{words}"):
        load_any(tmp_path / "odd")


def test_a_series_is_no_proof_and_says_what_it_is(tmp_path: Path) -> None:
    save_result(tmp_path / "series", SERIES.bench, {})
    place = str(tmp_path / "series")
    assert load_any(place) == SavedBench(change(SERIES.bench, saved_to=place), {})
    with pytest.raises(InvalidInputError, match=r"series: not a saved proof but a saved series \(advisor bench\)"):
        load_proof(tmp_path / "series")


# -- what is kept unasked ----------------------------------------------------------------------------------------------


def test_a_result_is_kept_for_its_owner_alone_and_says_where(state: Path) -> None:
    found, problem = preserve_result(PROOF, {0: "{}"}, save_to=None, keep_result=True)
    assert problem is None
    assert found.saved_to == str(state / "proofs/20240517T120000Z-storage.json.gz")
    assert load_proof(found.saved_to).proof == found
    for place, mode in ((state, 0o700), (state / "proofs", 0o700), (Path(found.saved_to), 0o600)):
        assert place.stat().st_mode & 0o7777 == mode


def test_results_are_kept_where_and_as_they_are_asked_for(state: Path, tmp_path: Path) -> None:
    found, _ = preserve_result(PROOF, {}, save_to=str(tmp_path / "x"), keep_result=True)
    assert found.saved_to == str(tmp_path / "x")
    assert preserve_result(PROOF, {}, save_to=None, keep_result=False) == (PROOF, None)
    assert not state.exists()
    places = [
        preserve_result(SERIES.bench, {index: "{}"}, save_to=None, keep_result=True)[0].saved_to for index in range(3)
    ]
    assert len(set(places)) == 3
    kept = [load_any(place).fio for place in places if place is not None]
    assert kept == [{0: "{}"}, {1: "{}"}, {2: "{}"}]


def test_the_newest_are_kept_and_what_is_not_ours_stays(state: Path) -> None:
    def moment(day: int) -> datetime:
        return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=day)

    first = store_result(b"", "first", moment(0))
    (results_directory() / "mine.txt").write_text("precious")
    others = [store_result(b"", "later", moment(day)) for day in range(1, KEPT_RESULTS + 3)]
    names = set(os.listdir(results_directory()))
    assert "mine.txt" in names
    assert len(names) == KEPT_RESULTS + 1
    assert first.name not in names
    assert {place.name for place in others[3:]} <= names
    # a clock that was set back: what was just written is not what goes
    assert store_result(b"", "old clock", moment(-400)).exists()


@pytest.mark.parametrize("what", ["../../etc/passwd", "a/b", "Größe\n", "." * 300, ""])
def test_no_name_of_a_profile_leads_elsewhere(state: Path, what: str) -> None:
    place = store_result(b"", what, datetime(2024, 1, 1, tzinfo=UTC))
    assert place.parent == state / "proofs"
    assert os.listdir(state / "proofs") == [place.name]


def test_a_state_directory_that_others_can_write_to_is_not_used_and_the_result_stays(state: Path) -> None:
    state.mkdir()
    (state / "proofs").mkdir()
    (state / "proofs").chmod(0o777)
    found, problem = preserve_result(PROOF, {}, save_to=None, keep_result=True)
    assert found == PROOF
    assert problem is not None
    assert "not a directory that only its owner can write to" in problem
    assert "--save" in problem
    assert os.listdir(state / "proofs") == []
