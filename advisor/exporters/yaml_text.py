"""YAML as a person would write it, and as ansible-lint wants it: lists indented, texts of several lines as they are."""

from __future__ import annotations

from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Other line ends of Unicode would be folded unless they are escaped; blanks at a line's end cannot be said in a
    # literal block, and PyYAML then quotes the text by itself.
    plain = text.replace("\n", "")
    style = "|" if "\n" in text and plain.isprintable() else None if plain.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump_yaml(document: object) -> str:
    """The document's text, keys in their own order."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)
