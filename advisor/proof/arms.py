"""The arms of a session: what activates one, makes it act, and undoes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from advisor.errors import AdvisorError, CommandError
from advisor.proof.interrupt import Stop
from advisor.proof.measurer import Measurer
from advisor.proof.records import Arm, ToggleClass


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
