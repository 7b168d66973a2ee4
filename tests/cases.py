"""Tables of cases that are data: test_NAME.yaml beside test_NAME.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from yaml import SafeLoader
else:
    # Every process that collects the tests reads all tables: the parser in C takes an eighth of the time.
    SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def cases(of: str) -> Any:
    """What the YAML file beside the module ``of`` holds."""
    return yaml.load(Path(of).with_suffix(".yaml").read_text("utf-8"), SafeLoader)


class _Cases(SafeLoader):
    """YAML with tuples for sequences, and ``<<`` for mappings that are joined in their order."""

    builders: Mapping[str, Any]

    def sequence(self, node: yaml.SequenceNode) -> tuple[Any, ...]:
        return tuple(self.construct_object(value, deep=True) for value in node.value)

    def mapping(self, node: yaml.MappingNode) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, value in node.value:
            content = self.construct_object(value, deep=True)
            if key.tag == "tag:yaml.org,2002:merge":
                for part in content:
                    made.update(part)
            else:
                made[self.construct_object(key, deep=True)] = content
        return made

    def built(self, name: str, node: yaml.Node) -> Any:
        builder = self.builders[name]
        if isinstance(node, yaml.SequenceNode):
            return builder(*self.sequence(node))
        if isinstance(node, yaml.MappingNode):
            given = self.mapping(node)
            return builder(*given.pop("*", ()), **given)
        return builder


def _collected(made: Callable[[Any], Any], loader: _Cases, node: yaml.SequenceNode) -> Any:
    return made(loader.sequence(node))


_Cases.add_constructor("tag:yaml.org,2002:seq", _Cases.sequence)
_Cases.add_constructor("tag:yaml.org,2002:map", _Cases.mapping)
for _made in (list, set, frozenset):
    _Cases.add_constructor(f"!{_made.__name__}", partial(_collected, _made))
_Cases.add_constructor("!bytes", lambda loader, node: str(node.value).encode())
_Cases.add_multi_constructor("!", _Cases.built)


def read_cases(of: str, *builders: Any, **constants: Any) -> Any:
    """The same as tables of tuples; the tag ``!NAME`` calls the builder of this name, ``*`` are its positions.

    A module, or a module's ``globals()``, stands for all that it names.
    """
    named: dict[str, Any] = {}
    for builder in builders:
        named |= builder if isinstance(builder, dict) else {builder.__name__: builder}
        named |= vars(builder) if isinstance(builder, ModuleType) else {}
    loader = type("Loader", (_Cases,), {"builders": named | constants})
    return yaml.load(Path(of).with_suffix(".yaml").read_text("utf-8"), loader)
