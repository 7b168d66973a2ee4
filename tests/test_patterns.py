"""A lazy expression does what the compiled one does, and is compiled when it is first used."""

from __future__ import annotations

import copy
import re

import pytest

from advisor.host.patterns import lazy_regex


@pytest.mark.parametrize(
    ("method", "arguments"),
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
    for _again in range(2):
        assert repr(getattr(lazy, method)(*arguments)) == repr(getattr(compiled, method)(*arguments))
    assert (lazy.pattern, lazy.flags, lazy.groups) == (compiled.pattern, compiled.flags, compiled.groups)


def test_a_fault_shows_where_it_is_first_used() -> None:
    broken = lazy_regex("(")
    with pytest.raises(re.error):
        broken.search("x")


def test_it_can_be_copied_before_and_after_its_first_use() -> None:
    lazy = lazy_regex(rb"\d+")
    assert (
        copy.copy(lazy).findall(b"1 22") == lazy.findall(b"1 22") == copy.copy(lazy).findall(b"1 22") == [b"1", b"22"]
    )


def test_every_expression_of_the_package_compiles() -> None:
    import importlib
    import pkgutil

    import advisor

    found = []
    for module in pkgutil.walk_packages(advisor.__path__, "advisor."):
        if ".ansible" not in module.name and not module.name.endswith("__main__"):
            found += [one for one in vars(importlib.import_module(module.name)).values() if type(one) is lazy_regex]
    assert len(found) > 100
    for one in found:
        assert one.pattern is not None
