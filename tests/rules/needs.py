"""The facts that each rule reads, as its code names them: ``python -m tests.rules.needs`` writes tables/rule-facts.csv.

A rule reads ``links.rings`` where its function, or a function of advisor that it calls, names both the field of the
facts and a field of their records. Only fields that a scan may note as unknown are kept.
"""

from __future__ import annotations

import ast
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.record_types import field_types
from advisor.facts.settings.sysctl import KEYS
from advisor.rules.judged import RULES

_WHOLE_TABLE: Final = 24
"""A larger table is of everything: it does not say what a rule reads."""
ROOT: Final = Path(__file__).parents[2]
TABLE: Final = ROOT / "tables" / "rule-facts.csv"


def all_needs() -> dict[str, dict[str, str]]:
    """Return by module, and then by rule, the facts that it reads, with blanks between."""
    fields, kept = _record_fields(), _noted_words()
    found: dict[str, dict[str, str]] = {}
    for rule in sorted(RULES, key=lambda one: one.id):
        words = _words_of(rule.function)
        read = [
            f"{subject}.{field}" if field else subject
            for subject, records in sorted(fields.items())
            if subject in words
            for field in ("", *sorted(({*KEYS} if subject == "sysctl" else kept & records) & words))
        ]
        found.setdefault(rule.module.removeprefix("advisor.rules."), {})[rule.id] = " ".join(read)
    return dict(sorted(found.items()))


def _record_fields() -> dict[str, set[str]]:
    """Return by field of the facts the names that its records have; of arrays also the managers."""
    found = {
        name: {field for record in _records(kind) for field in record.__struct_fields__}
        for name, kind in field_types(Facts).items()
        if name != "unknown"
    }
    found["arrays"].add("vxvm")
    return found


def _records(kind: Any) -> set[type[msgspec.Struct]]:
    found: set[type[msgspec.Struct]] = set()
    todo = [kind]
    while todo:
        one = todo.pop()
        todo += typing.get_args(one)
        if isinstance(one, type) and issubclass(one, msgspec.Struct) and one not in found:
            found.add(one)
            todo += typing.get_type_hints(one).values()
    return found


@cache
def _noted_words() -> frozenset[str]:
    """Return the words in what readers note as unknown, and the names of fields that may be None."""
    calls = (
        node
        for path in (ROOT / "advisor" / "facts").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    )
    found = {
        one.value.rpartition(".")[2]
        for call in calls
        if getattr(call.func, "attr", "") in ("note", "value") or "unknown" in {getattr(a, "id", "") for a in call.args}
        for one in ast.walk(call)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }
    for record in (one for kind in field_types(Facts).values() for one in _records(kind)):
        found |= {name for name, kind in typing.get_type_hints(record).items() if type(None) in typing.get_args(kind)}
    return frozenset(found)


@cache
def _record_functions() -> Mapping[str, tuple[types.FunctionType, ...]]:
    """Return the properties and methods of records by name."""
    found: dict[str, list[types.FunctionType]] = {}
    for kind in field_types(Facts).values():
        for record in _records(kind):
            for name, one in vars(record).items():
                function = one.fget if isinstance(one, property) else one
                if isinstance(function, types.FunctionType):
                    found.setdefault(name, []).append(function)
    return {name: tuple(functions) for name, functions in found.items()}


def _words_of(judge: Any) -> frozenset[str]:
    """Return the names and texts in the code of a function and of all of advisor's functions that it may call."""
    words: set[str] = set()
    todo, seen = [judge], set[int]()
    while todo:
        one = todo.pop()
        if isinstance(one, partial):
            todo += [one.func, *one.args]
        if isinstance(one, msgspec.Struct):
            todo += [getattr(one, name) for name in one.__struct_fields__]
        if isinstance(one, tuple | list | frozenset | Mapping) and len(one) <= _WHOLE_TABLE:
            words.update(text for text in one if isinstance(text, str))
        one = getattr(one, "__wrapped__", one)
        if not isinstance(one, types.FunctionType) or id(one) in seen or not one.__module__.startswith("advisor."):
            continue
        seen.add(id(one))
        todo += [cell.cell_contents for cell in one.__closure__ or ()]
        for code in _codes(one.__code__):
            words.update(code.co_names, (text for text in code.co_consts if isinstance(text, str)))
            for name in code.co_names:
                todo += [one.__globals__.get(name), *_record_functions().get(name, ())]
    return frozenset(words)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _codes(one)


def table_text() -> str:
    """Return the table: module, rule, and the facts that it reads with blanks between; last, without a rule, those that
    no rule reads."""
    needs = all_needs()
    rows = [f"{module},{identity},{read}\n" for module, rules in needs.items() for identity, read in rules.items()]
    read = {fact for rules in needs.values() for one in rules.values() for fact in one.split()}
    noted = {
        f"{subject}.{field}" for subject, records in _record_fields().items() for field in records & _noted_words()
    }
    return "".join(["module,rule,facts\n", *rows, f",,{' '.join(sorted(noted - read))}\n"])


if __name__ == "__main__":
    TABLE.write_text(table_text(), "utf-8")
