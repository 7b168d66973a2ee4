"""The commands as functions: what the command line and other programs call (docs/api.md is generated from it).

`advisor.operations.verbs` holds the functions that are stable for other programs; they are loaded when one of them is
asked for. The other modules hold what only the command line needs. Nothing here prints or prompts.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes half as long to import as Python to start
if TYPE_CHECKING:
    from typing import Any

    from advisor.operations.verbs import Advice as Advice
    from advisor.operations.verbs import AdvisorError as AdvisorError
    from advisor.operations.verbs import Scan as Scan
    from advisor.operations.verbs import apply as apply
    from advisor.operations.verbs import confirm as confirm
    from advisor.operations.verbs import document as document
    from advisor.operations.verbs import open_host as open_host
    from advisor.operations.verbs import plan as plan
    from advisor.operations.verbs import recommend as recommend
    from advisor.operations.verbs import rollback as rollback
    from advisor.operations.verbs import rollback_script as rollback_script
    from advisor.operations.verbs import scan as scan
    from advisor.operations.verbs import status as status
    from advisor.operations.verbs import verify as verify

__all__ = [
    "Advice",
    "AdvisorError",
    "Scan",
    "apply",
    "confirm",
    "document",
    "open_host",
    "plan",
    "recommend",
    "rollback",
    "rollback_script",
    "scan",
    "status",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from advisor.operations import verbs

        return getattr(verbs, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
