"""advisor: inspects a Linux storage or cluster host, tunes it, proves the gain, and rolls back.

For other programs: ``advisor.scan()``, ``plan``, ``apply`` and the other verbs of `advisor.operations` (docs/api.md).
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes half as long to import as Python to start
if TYPE_CHECKING:
    from typing import Any

    from advisor.operations import *  # noqa: F403 - all that is in its __all__


def __getattr__(name: str) -> Any:
    # Loaded when it is asked for: `advisor --version` needs nothing of it. `api` is what `operations` was called.
    if name != "operations" and not name.startswith("_"):
        import advisor.operations as operations

        if name == "api" or name in operations.__all__:
            return operations if name == "api" else getattr(operations, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
