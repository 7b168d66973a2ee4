"""Regular expressions that are compiled where they are first used: a call uses few of those that its modules hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import compile as lazy_regex
else:

    class lazy_regex:  # noqa: N801 - stands for re.compile
        """Stands for ``re.compile`` with the same arguments."""

        def __init__(self, text: str | bytes, flags: int = 0) -> None:
            self._given = text, flags

        def __getattr__(self, name: str) -> Any:
            # Asked only for what is not there yet: from then on a method is the compiled expression's own.
            if name.startswith("__"):
                raise AttributeError(name)
            compiled = re.compile(*self._given)
            for one in ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"):
                setattr(self, one, getattr(compiled, one))
            return getattr(compiled, name)


__all__ = ["lazy_regex"]
