"""The record of a session or a series while it grows: what its conductor notes, and what the measurer counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from advisor.proof.archive import Result, preserve_result
from advisor.proof.measurer import Measurer
from advisor.proof.records import Session
from advisor.proof.series import Series

Record = TypeVar("Record", Session, Series)


class Recorder(Generic[Record, Result]):
    """``conclude`` leads from the record to the result; ``save_to`` and ``keep_result`` are those of the settings."""

    def __init__(
        self,
        record: Record,
        measurer: Measurer,
        conclude: Callable[[Record], Result],
        *,
        save_to: str | None,
        keep_result: bool,
    ) -> None:
        self._record: Record = record
        self._measurer = measurer
        self._conclude: Callable[[Record], Result] = conclude
        self._save_to = save_to
        self._keep_result = keep_result

    @property
    def record(self) -> Record:
        """All that is recorded so far."""
        done = self._measurer
        return msgspec.structs.replace(
            self._record, warm_up=tuple(done.warm_up), notes=tuple(done.notes), bytes_written=done.bytes_written
        )

    def update(self, **changes: object) -> None:
        """Set fields of the record."""
        self._record = msgspec.structs.replace(self._record, **changes)

    def result(self) -> Result:
        """What follows from the record so far."""
        return self._conclude(self.record)

    def finish(self, *, is_worth_keeping: bool) -> Result:
        """The result at the end, saved or kept where it is to be; if that fails, a note says so."""
        self.update(seconds=time.monotonic() - self._measurer.began)
        if not is_worth_keeping:
            return self.result()
        found, problem = preserve_result(
            self.result(), self._measurer.raw, save_to=self._save_to, keep_result=self._keep_result
        )
        if problem is None:
            return found
        self._measurer.note(problem)
        return self.result()
