"""The table of `advisor.profiles.fact_paths`: which facts a condition of a profile may name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import msgspec

from advisor.facts.host_facts import Facts
from docs.schema_records import field_types

HERE = Path(__file__).parents[1] / "advisor/profiles/fact_paths.py"
HEAD = '''"""The facts that a condition of a profile may name, and what each is. Written by docs/generate.py from the
records of `advisor.facts`: change those and run it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

FactForm = Literal["number", "text", "truth", "list", "table", "record"]

'''


def fact_table() -> dict[Path, str]:
    """The module, with a line for each fact."""
    lines = [f'    "{path}": "{form}",\n' for path, form in _walk(Facts, "")]
    text = f"{HEAD}FACT_FORMS: Final[Mapping[str, FactForm]] = {{\n{''.join(lines)}}}\n"
    return {HERE: text + '"""No path goes into a list. One goes into a table by any key."""\n'}


def _walk(record: type, start: str) -> Iterator[tuple[str, str]]:
    for name, kind in field_types(record).items():
        if name.startswith("_") or name not in record.__struct_fields__:  # type: ignore[attr-defined]
            continue
        form, inner = _form_of(kind)
        yield f"{start}{name}", form
        if inner is not None:
            yield from _walk(inner, f"{start}{name}.")


def _form_of(kind: Any) -> tuple[str, type | None]:
    """What a field holds, and the record whose fields it has."""
    if get_origin(kind) is not None and get_origin(kind) not in (tuple, dict, list, Mapping):
        held = [one for one in get_args(kind) if one is not NoneType]
        first = held[0]
        return _form_of(first) if isinstance(first, type) or get_origin(first) else ("text", None)
    origin = get_origin(kind) or kind
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        return "record", origin
    if origin in (tuple, list, frozenset):
        return "list", None
    if origin in (dict, Mapping):
        return "table", None
    if origin is bool:
        return "truth", None
    return ("number", None) if origin in (int, float) else ("text", None)
