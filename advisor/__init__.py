"""advisor: inspects a Linux storage or cluster host, tunes it, proves the gain, and puts it all back.

For other programs: ``advisor.scan()``, ``plan``, ``apply`` and the other verbs of `advisor.api` (docs/api.md).
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes half as long to import as Python to start
if TYPE_CHECKING:
    from typing import Any, Final

    from advisor.api import apply as apply
    from advisor.api import confirm as confirm
    from advisor.api import document as document
    from advisor.api import open_host as open_host
    from advisor.api import plan as plan
    from advisor.api import rollback as rollback
    from advisor.api import rollback_script as rollback_script
    from advisor.api import scan as scan
    from advisor.api import status as status
    from advisor.api import verify as verify

__version__ = "0.1.0"

_VERBS: Final = frozenset(
    {"apply", "confirm", "document", "open_host", "plan", "rollback", "rollback_script", "scan", "status", "verify"}
)


def __getattr__(name: str) -> Any:
    # Loaded when it is asked for: `advisor --version` needs nothing of it.
    if name in _VERBS:
        from advisor import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
