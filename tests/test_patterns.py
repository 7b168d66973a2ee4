"""A lazy expression does the same as the compiled one, and every expression of the package compiles."""

from __future__ import annotations

import copy
import importlib
import pkgutil
import re

import pytest

import advisor
from advisor.host.patterns import lazy_regex
from tests.each import for_each


@for_each(
    "method arguments",
    [
        ("match", ("ab12",)),
        ("fullmatch", ("ab",)),
        ("search", ("..AB1",)),
        ("findall", ("ab1 cd2",)),
        ("split", ("1ab2",)),
        ("sub", ("-", "ab1cd")),
        ("subn", ("-", "ab1cd")),
    ],
)
def test_a_method_answers_as_the_compiled_one(method: str, arguments: tuple[str, ...]) -> None:
    lazy, compiled = lazy_regex("[a-z]+", re.IGNORECASE), re.compile("[a-z]+", re.IGNORECASE)
    for expression in (copy.copy(lazy), lazy, lazy, copy.copy(lazy)):
        assert repr(getattr(expression, method)(*arguments)) == repr(getattr(compiled, method)(*arguments))
    assert (lazy.pattern, lazy.flags, lazy.groups) == (compiled.pattern, compiled.flags, compiled.groups)


def test_every_expression_of_the_package_compiles() -> None:
    with pytest.raises(re.error):
        lazy_regex("(").search("x")
    expressions = []
    for module in pkgutil.walk_packages(advisor.__path__, "advisor."):
        if ".ansible" not in module.name and not module.name.endswith("__main__"):
            values = vars(importlib.import_module(module.name)).values()
            expressions += [value for value in values if type(value) is lazy_regex]
    assert len(expressions) > 100
    assert all(expression.pattern is not None for expression in expressions)
