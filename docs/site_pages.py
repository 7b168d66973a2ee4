"""What only the built site has: the schema of each document, and the functions for other programs below api.md.

A hook of mkdocs (mkdocs.yml), which writes nothing into the checkout.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, get_args

import msgspec
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from advisor import operations
from advisor.operations import library

LONGEST_SIGNATURE: Final = 100


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add ``schemas/scan.1.json`` for ``advisor.scan/1``, and so for each document."""
    for name in library.list_schemas():
        path = f"schemas/{name.removeprefix('advisor.').replace('/', '.')}.json"
        files.append(File.generated(config, path, content=json.dumps(library.read_schema(name), indent=1) + "\n"))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Add the functions and records of `advisor.operations` to the page for other programs."""
    return f"{markdown}\n{api_reference()}" if page.file.src_uri == "api.md" else markdown


def api_reference() -> str:
    """Return each function with signature and docstring, and the records that the functions return."""
    modules = facade()
    records = _records(modules.values())
    rows = [f"| `{name}` | {_paragraphs(kind)[0]} | {_fields(kind)} |" for name, kind in records.items()]
    return "\n".join(
        (
            *(line for name, module in modules.items() for line in _group(name, module)),
            *("## Records\n", "| record | what | fields |", "| --- | --- | --- |", *rows, ""),
        )
    )


def facade() -> dict[str, ModuleType]:
    """Return the package with the verbs, then its modules, by name."""
    names = sorted(one.name for one in pkgutil.iter_modules(operations.__path__))
    return {"": operations, **{name: importlib.import_module(f"{operations.__name__}.{name}") for name in names}}


def public_functions(module: ModuleType) -> dict[str, FunctionType]:
    """Return the functions that a module of the facade itself defines for others, in the order of its source."""
    return {
        name: one
        for name, one in vars(module).items()
        if isinstance(one, FunctionType) and one.__module__ == module.__name__ and not name.startswith("_")
    }


def _group(name: str, module: ModuleType) -> Iterator[str]:
    yield f"## `{module.__name__}`\n"
    yield _paragraphs(module)[0] + "\n" if name else "The verbs; `advisor.scan` is `advisor.operations.scan`.\n"
    for function, one in public_functions(module).items():
        yield f"### `{name}{'.' if name else ''}{function}`\n"
        yield f"```python\n{_signature(function, one)}\n```\n"
        yield "\n\n".join(_paragraphs(one)) + "\n"


def _paragraphs(documented: object) -> list[str]:
    """Return the paragraphs of a docstring as Markdown, each on one line."""
    text = inspect.getdoc(documented)
    if not text:
        raise ValueError(f"{documented} has no docstring")
    return [" ".join(part.split()).replace("``", "`") for part in text.split("\n\n")]


def _signature(name: str, function: Callable[..., Any]) -> str:
    """Return a signature as its source has it, with one parameter a line if it is long."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    listed = list(_parameters(function, node.args))
    whole = f"{name}({', '.join(listed)}){returns}"
    if len(whole) <= LONGEST_SIGNATURE:
        return whole
    return "\n".join((f"{name}(", *(f"    {one}," for one in listed), f"){returns}"))


def _parameters(function: Callable[..., Any], arguments: ast.arguments) -> Iterator[str]:
    def with_default(argument: ast.arg, default: ast.expr | None) -> str:
        if isinstance(default, ast.Name):
            # The value of a plain constant says more than its name.
            value = function.__globals__[default.id]
            default = ast.Constant(value) if isinstance(value, int | float | str | None) else default
        return ast.unparse(argument) + (f" = {ast.unparse(default)}" if default else "")

    missing = len(arguments.args) - len(arguments.defaults)
    yield from map(with_default, arguments.args, (*(None for _ in range(missing)), *arguments.defaults))
    if arguments.vararg:
        yield "*" + ast.unparse(arguments.vararg)
    elif arguments.kwonlyargs:
        yield "*"
    yield from map(with_default, arguments.kwonlyargs, arguments.kw_defaults)


def _records(modules: Iterable[ModuleType]) -> dict[str, type[msgspec.Struct]]:
    """Return the records that the functions return, alone or in a tuple."""
    records: dict[str, type[msgspec.Struct]] = {}
    for module in modules:
        names = {**vars(module), **_types_of(module)}
        for function in public_functions(module).values():
            for kind in _classes_in(eval(function.__annotations__["return"], names)):
                if issubclass(kind, msgspec.Struct):
                    records[kind.__name__] = kind
    return dict(sorted(records.items()))


def _types_of(module: ModuleType) -> dict[str, Any]:
    """Return what a module imports for type checkers alone."""
    names: dict[str, Any] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module.__name__, "exec"), names)
    return names


def _classes_in(annotation: Any) -> Iterator[type]:
    if inspect.isclass(annotation) and not get_args(annotation):
        yield annotation
    for one in get_args(annotation):
        yield from _classes_in(one)


def _fields(record: type[msgspec.Struct]) -> str:
    return ", ".join(f"`{field}`" for field in record.__struct_fields__)
