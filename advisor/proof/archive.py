"""A proof on disk: its record and fio's own JSON of every run, in one compressed file, to be analysed again."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from advisor.errors import CommandError, InvalidInputError
from advisor.proof.records import Proof
from advisor.proof.verdict import decide

MAX_BYTES = 256 << 20
"""A saved proof is a few hundred kB; more than this, unpacked, is a bomb or no proof."""


class Saved(msgspec.Struct, frozen=True):
    """A proof with what fio printed, by run number."""

    proof: Proof
    fio: Mapping[int, str]
    schema: Literal["advisor.proof-archive/1"] = "advisor.proof-archive/1"


def save(path: str | Path, proof: Proof, fio: Mapping[int, str]) -> None:
    """Write a proof, whole or not at all. Raises CommandError with the kernel's words."""
    content = gzip.compress(msgspec.json.encode(Saved(proof, fio)), mtime=0)
    place = Path(path)
    try:
        descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            os.replace(temporary, place)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise CommandError(f"{place}: {error.strerror or error}") from error


def load(path: str | Path) -> Saved:
    """A saved proof. Raises InvalidInputError that names the file and what is wrong with it."""
    try:
        with gzip.open(path) as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InvalidInputError(f"{path}: larger than a saved proof can be")
        return msgspec.json.decode(content, type=Saved)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(f"{path}: not a saved proof: {error}") from error


def reanalyse(saved: Saved | Proof | str | Path) -> Proof:
    """The proof that follows from a saved session: the verdict is identical to the one that was saved."""
    if isinstance(saved, str | Path):
        saved = load(saved)
    proof = saved.proof if isinstance(saved, Saved) else saved
    return decide(proof.session)
