"""The arms of a session: what activates one, makes it act, and undoes it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Generic, Literal, Protocol, TypeVar, runtime_checkable

import msgspec

from advisor.errors import AdvisorError, CommandError, RefusedError
from advisor.proof.archive import Result, preserve_result
from advisor.proof.covariates import CalmGate
from advisor.proof.measurer import Measurer
from advisor.proof.process import Stop, StoppedError
from advisor.proof.records import Arm, Session, ToggleClass
from advisor.proof.schedule import Schedule
from advisor.proof.series import Series

# What stands in the way of a session: all of it at once, before anything is changed.


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


class Toggle(Protocol):
    """The change under test. ``settle_seconds`` is waited after each ``place``."""

    @property
    def toggle_class(self) -> ToggleClass: ...

    @property
    def settle_seconds(self) -> float: ...

    def place(self, arm: Arm) -> None:
        """Activate the arm and read every tunable back. Raises AdvisorError on a mismatch."""


@runtime_checkable
class PlacesFio(Protocol):
    """A toggle that also, or only, changes where fio runs: for what a profile does to a service's placement."""

    def fio_options(self, arm: Arm) -> tuple[str, ...]:
        """fio options of the arm, such as ``--numa_cpu_nodes=1``. Not given to the negative control."""


@runtime_checkable
class ChecksPath(Protocol):
    """A toggle that interrupts the measured path, and reports whether that path carries the arm just placed."""

    def check(self, arm: Arm) -> None:
        """Before an arm is measured, not when the host is restored. Raises AdvisorError where it does not carry."""


@runtime_checkable
class ChecksValues(Protocol):
    """A toggle that notices when what it switches is modified externally."""

    def require_unchanged(self) -> None:
        """Before the next arm is activated. Raises AdvisorError where a value is not what the last arm made it."""


Reconnect = Callable[[Arm], None]
"""Makes new sockets, sessions or mounts, so that the arm just placed acts. Raises AdvisorError if it cannot."""


class ToggleError(CommandError):
    """An arm could not be activated, or did not read back."""

    kind = "toggle"


class Arms:
    """Places arms. ``placed`` is the last one that was asked for, None before the first."""

    def __init__(self, toggle: Toggle, reconnect: Reconnect | None, measurer: Measurer, stop: Stop) -> None:
        self._toggle = toggle
        self._reconnect = reconnect
        self._measurer = measurer
        self._stop = stop
        self.placed: Arm | None = None

    @property
    def toggle_class(self) -> ToggleClass:
        return self._toggle.toggle_class

    @property
    def is_reconnecting(self) -> bool:
        """Whether a command runs after each toggle, which may remount the target."""
        return self._reconnect is not None

    def place(self, arm: Arm) -> None:
        """Activate an arm and let it settle. Raises ToggleError, ScratchChangedError, StoppedError, and CommandError
        where a value was modified externally since the last arm."""
        if self.placed is not None and isinstance(self._toggle, ChecksValues):
            self._toggle.require_unchanged()
        self.placed = arm
        try:
            self._toggle.place(arm)
            if isinstance(self._toggle, ChecksPath):
                self._toggle.check(arm)
            self._make_anew(arm)
        except AdvisorError as error:
            raise ToggleError(f"arm {arm} could not be applied: {error.message}") from error
        if self.is_reconnecting:
            self._measurer.find_scratch_again()
        self._stop.sleep(self._toggle.settle_seconds)

    def put_back(self, arm: Arm) -> None:
        """The host as it was, however the session ended: nothing is asked of the path, and no signal is heeded."""
        self._toggle.place(arm)
        self._make_anew(arm)

    def _make_anew(self, arm: Arm) -> None:
        if self._reconnect is not None:
            self._reconnect(arm)

    def fio_options(self, arm: Arm) -> tuple[str, ...]:
        """How the arm places fio."""
        return self._toggle.fio_options(arm) if isinstance(self._toggle, PlacesFio) else ()


# The record of a session or a series while it grows: what its conductor notes, and what the measurer counted.

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
