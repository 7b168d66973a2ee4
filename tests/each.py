"""One test for many cases: where a case takes a millisecond, an item of pytest of its own takes ten times that."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


def for_each(
    arguments: str, cases: Iterable[Any], name: Callable[[Any], object] = repr
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like pytest.mark.parametrize, in one item: every case is tried, and each that fails is named.

    Fixtures are those of the one item. ``name`` gets the whole case, which is a tuple where there are more arguments.
    """
    names = arguments.replace(",", " ").split()
    listed = list(cases)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def try_all(**fixtures: Any) -> None:
            assert listed, "no case"
            failed = []
            for case in listed:
                try:
                    test(**dict(zip(names, case if len(names) > 1 else (case,), strict=True)), **fixtures)
                except (AssertionError, ExceptionGroup) as error:
                    error.add_note(f"case: {name(case)}")
                    failed.append(error)
                except BaseException as error:
                    error.add_note(f"case: {name(case)}")
                    raise
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(listed)} cases fail", failed)

        signature = inspect.signature(test)
        others = [one for one in signature.parameters.values() if one.name not in names]
        try_all.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return try_all

    return decorate
