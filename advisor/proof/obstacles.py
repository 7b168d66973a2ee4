"""What stands in the way of a session: all of it at once, before anything is changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Literal

import msgspec

from advisor.errors import AdvisorError, RefusedError
from advisor.proof.covariates import CalmGate
from advisor.proof.interrupt import StoppedError
from advisor.proof.schedule import Schedule


class ProofCheck(msgspec.Struct, frozen=True):
    """What a session would measure, where nothing stands in the way; its JSON is ``advisor.proof-check/1``."""

    profile: str
    workloads: tuple[str, ...]
    target: str
    layout: Schedule
    gate: CalmGate
    notes: tuple[str, ...] = ()
    schema: Literal["advisor.proof-check/1"] = "advisor.proof-check/1"


class CheckedError(AdvisorError):
    """Nothing stands in the way, and nothing more was asked."""

    exit_code = 0
    kind = "checked"

    def __init__(self, check: ProofCheck) -> None:
        super().__init__("nothing stands in the way")
        self.check = check


class Obstacles:
    """Collects errors of checks that do not depend on each other."""

    def __init__(self) -> None:
        self._found: list[AdvisorError] = []

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Note an error of the block, and go on behind it."""
        try:
            yield
        except StoppedError:
            raise
        except AdvisorError as error:
            self._found.append(error)

    def require_none(self) -> None:
        """Raise what was noted: one error as it is, several as a RefusedError that names each with its hint."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            lines = [f"{number}. {one.message}" for number, one in enumerate(self._found, 1)]
            hints = [f"{number}. {one.hint}" for number, one in enumerate(self._found, 1) if one.hint]
            raise RefusedError(f"{len(lines)} obstacles: {'; '.join(lines)}", hint="; ".join(hints) or None)
