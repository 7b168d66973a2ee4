"""advisor: inspects a Linux storage or cluster host, tunes it, proves the gain, and rolls back.

For other programs: ``advisor.scan()``, ``plan``, ``apply`` and the other verbs of `advisor.operations` (docs/api.md).
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes half as long to import as Python to start
if TYPE_CHECKING:
    from typing import Any, Final

    from advisor.operations import apply as apply
    from advisor.operations import confirm as confirm
    from advisor.operations import document as document
    from advisor.operations import open_host as open_host
    from advisor.operations import plan as plan
    from advisor.operations import rollback as rollback
    from advisor.operations import rollback_script as rollback_script
    from advisor.operations import scan as scan
    from advisor.operations import status as status
    from advisor.operations import verify as verify


_VERBS: Final = frozenset(
    {"apply", "confirm", "document", "open_host", "plan", "rollback", "rollback_script", "scan", "status", "verify"}
)


def __getattr__(name: str) -> Any:
    # Loaded when it is asked for: `advisor --version` needs nothing of it. `api` is what `operations` was called.
    if name in _VERBS or name == "api":
        from advisor import operations

        return operations if name == "api" else getattr(operations, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
