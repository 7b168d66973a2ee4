"""Saved proofs: whole or not at all, and not trusted when they are read."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import msgspec
import pytest

from advisor.errors import CommandError, InvalidInputError
from advisor.proof.archive import Saved, load, reanalyse, save
from advisor.proof.verdict import decide

from .sessions import pair, session

PROOF = decide(session([pair(index, 1000, 1200 + index) for index in range(8)]))


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    place = tmp_path / "x.proof"
    save(place, PROOF, {3: "{}", 0: '{"jobs": []}'})
    found = load(place)
    assert found == Saved(PROOF, {3: "{}", 0: '{"jobs": []}'})
    assert reanalyse(place).verdict == PROOF.verdict == "gain"


def test_the_same_proof_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(tmp_path / name, PROOF, {0: "{}"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_failed_save_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        save(tmp_path / "missing/x.proof", PROOF, {})
    place = tmp_path / "directory"
    place.mkdir()
    with pytest.raises(CommandError):
        save(place, PROOF, {})
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
        load(place)
    assert caught.value.exit_code == 2


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    place = tmp_path / "bomb.proof"
    with gzip.open(place, "wb", compresslevel=1) as file:
        for _ in range(260):
            file.write(bytes(1 << 20))
    with pytest.raises(InvalidInputError, match="larger"):
        load(place)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="nowhere"):
        load(tmp_path / "nowhere")
