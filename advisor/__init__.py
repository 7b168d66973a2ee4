"""advisor: inspects a Linux storage or cluster host, tunes it, proves the gain, and rolls back.

For other programs: ``advisor.scan()``, ``plan``, ``apply`` and the other verbs of `advisor.operations` (docs/api.md).
"""

# Every Python since 2.7 can read this file, too (see __main__): it has no annotations and no formatted strings.

TYPE_CHECKING = False  # Python 2.7 has no typing
if TYPE_CHECKING:
    from typing import Any  # noqa: F401 - in a comment, as 2.7 needs it

    from advisor.operations import *  # noqa: F403 - all that is in its __all__


def __getattr__(name):  # type: (str) -> Any
    # Loaded when it is asked for: `advisor --version` needs nothing of it. `api` is what `operations` was called.
    if name != "operations" and not name.startswith("_"):
        import advisor.operations as operations

        if name == "api" or name in operations.__all__:
            return operations if name == "api" else getattr(operations, name)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))  # noqa: UP031
