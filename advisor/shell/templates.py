"""Jinja2, set up once for shell and once for HTML; imported only by what renders."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.host.origin import package_data
from advisor.host.patterns import lazy_regex

if TYPE_CHECKING:
    from jinja2 import Environment


def template_directory() -> Path:
    """Where the templates of this installation lie: inside the package, or at the top of a checkout."""
    return package_data("templates")


@cache
def make_environment(*, escape_html: bool) -> Environment:
    """The environment for HTML, or for shell, where every name goes through the ``sh`` filter instead."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from advisor.shell import state_table
    from advisor.shell.quote import shell_quote

    made = Environment(
        loader=FileSystemLoader(template_directory()),
        autoescape=escape_html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["sh"] = shell_quote
    made.globals["state_table"] = state_table
    return made


def render_shell(template: str, context: Mapping[str, object]) -> str:
    """A shell script from its template."""
    return make_environment(escape_html=False).get_template(template).render(context)


_FUNCTION = lazy_regex(r"([a-z_0-9]+)\(\) \{.*")
_WORD = lazy_regex(r"[a-z_0-9]+")
_COMMENT = lazy_regex(r"(?m)^ *#.*$")


def only_used(script: str, before: str = "") -> str:
    """A script without the functions that nothing in it, or in the text that comes ``before`` it, names, and without
    their comments. Text that is not the script's own is put into it later."""
    blocks: list[tuple[str, list[str]]] = [("", [])]
    comments: list[str] = []
    is_inside = False
    for line in script.splitlines(keepends=True):
        name, lines = blocks[-1]
        if is_inside:
            lines.append(line)
            is_inside = line != "}\n"
        elif line.startswith("#") and len(blocks) > 1:
            comments.append(line)
        elif found := _FUNCTION.fullmatch(line.rstrip("\n")):
            blocks.append((found[1], [*comments, line]))
            comments, is_inside = [], not line.endswith("; }\n")
        else:
            blocks += [("", [])] * bool(name)
            blocks[-1] = ("", [*blocks[-1][1], *comments, line])
            comments = []
    known = dict.fromkeys(name for name, _ in blocks if name)
    bodies = {name: " ".join(line for own, lines in blocks if own == name for line in lines) for name in ("", *known)}
    bodies[""] += before
    used, pending = set[str](), [""]
    while pending:
        words = set(_WORD.findall(_COMMENT.sub("", bodies[pending.pop()])))
        fresh = words & known.keys() - used
        used |= fresh
        pending += fresh
    kept: list[str] = []
    for name, lines in blocks:
        if not name and lines and kept and kept[-1] == "\n" == lines[0]:
            lines = lines[1:]
        kept += lines if not name or name in used else []
    return "".join(kept)
