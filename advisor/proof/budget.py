"""Budgets of time as ``--budget`` takes them."""

from __future__ import annotations

import math

_STEP_SECONDS = 5
_SECONDS_BELOW = 120


def write_budget(seconds: float) -> str:
    """The time as it is typed: ``90s``, ``30m`` or ``2h``."""
    if seconds >= 3600 and seconds % 3600 == 0:
        return f"{seconds / 3600:.0f}h"
    if seconds >= _SECONDS_BELOW and seconds % 60 == 0:
        return f"{seconds / 60:.0f}m"
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def enough_budget(seconds: float) -> str:
    """The same, rounded up to 5 s, from two minutes on to minutes: a budget of so much has room for ``seconds``."""
    step = _STEP_SECONDS if seconds <= _SECONDS_BELOW - _STEP_SECONDS else 60
    # what is just enough might not be, in the last digit
    rounded = math.ceil((seconds + 0.001) / step) * step
    return f"{rounded // 60}m" if step == 60 else f"{rounded}s"
