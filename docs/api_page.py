"""docs/api.md: the functions of `advisor.operations` and its modules, with signatures, docstrings and examples."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, get_args

import msgspec

from advisor import operations

LONGEST_SIGNATURE: Final = 100
EXAMPLES: Final = Path(__file__).parent / "api"
"""One short program for each module; tests/test_api.py runs them."""

HEAD: Final = """# For other programs

`advisor.scan()`, `advisor.plan()`, `advisor.apply()` and the other functions of `advisor.operations` do what the
commands of their names do. They print nothing, never prompt, and return records. `advisor.recommend` is a package:
call `advisor.operations.recommend`.

```python
import advisor

found = advisor.scan()  # this host; advisor.scan(advisor.open_host(snapshot=path)) for a captured one
for finding in found.findings:
    print(finding.severity, finding.title)

plan = advisor.plan("jumbo-frames", settings={"links": "eth1"})
print(plan.fingerprint, [change.tunable for change in plan.changes])

done = advisor.apply(
    "jumbo-frames",
    settings={"links": "eth1"},
    agree=lambda made: made.fingerprint == plan.fingerprint,  # the reviewed plan is the applied one
    confirm_within=60,
)
print(done.record.id, done.record.state)  # 0001 awaiting-confirmation
advisor.confirm(done.record.id, same_session=True)

if not advisor.verify().is_as_set:
    advisor.rollback()
```

Errors are exceptions of `advisor.errors`; each has `message`, `hint` and the `exit_code` of the command. `apply` raises
`RefusedError` if nothing was changed, `RestoredError` if a failed change was rolled back, and `NotRestoredError` (with
`items`, and the command to run by hand for each) if a value could not be restored. If the program ends during an apply,
a watchdog outside the process rolls the transaction back, as it does for the command.

Records are frozen [msgspec](https://jcristharif.com/msgspec/) structs with type hints. The names on this page are
stable; more may be added.
"""


def api_page(generated: str) -> str:
    """The page; ``generated`` is the comment that stands above generated pages."""
    found = facade()
    records = _records(found.values())
    return "\n".join(
        (
            generated,
            HEAD,
            *(line for name, module in found.items() for line in _group(name, module)),
            "## Records\n",
            "| record | what | fields |",
            "| --- | --- | --- |",
            *(f"| `{name}` | {first_paragraph(one)} | {_fields(one)} |" for name, one in records.items()),
            "",
        )
    )


def facade() -> dict[str, ModuleType]:
    """The package with the verbs, then its modules, by name."""
    names = sorted(one.name for one in pkgutil.iter_modules(operations.__path__))
    return {"": operations, **{name: importlib.import_module(f"{operations.__name__}.{name}") for name in names}}


def public_functions(module: ModuleType) -> dict[str, FunctionType]:
    """The functions that a module of the facade itself defines for others, in the order of its source."""
    return {
        name: one
        for name, one in vars(module).items()
        if isinstance(one, FunctionType) and one.__module__ == module.__name__ and not name.startswith("_")
    }


def _group(name: str, module: ModuleType) -> Iterator[str]:
    """A heading, what the module is for, an example (a test runs it), and the functions."""
    yield f"## `{module.__name__}`\n"
    yield first_paragraph(module) + "\n" if name else "The verbs; `advisor.scan` is `advisor.operations.scan`.\n"
    example = EXAMPLES / f"{name}.py"
    if example.is_file():
        yield f"```python\n{example.read_text('utf-8').rstrip()}\n```\n"
    for function, one in public_functions(module).items():
        yield f"### `{name}{'.' if name else ''}{function}`\n"
        yield f"```python\n{signature(function, one)}\n```\n"
        yield "\n\n".join(" ".join(part.split()).replace("``", "`") for part in _paragraphs(one)) + "\n"


def _paragraphs(documented: object) -> list[str]:
    text = inspect.getdoc(documented)
    if not text:
        raise ValueError(f"{documented} has no docstring")
    return text.split("\n\n")


def first_paragraph(documented: object) -> str:
    """The first paragraph of a docstring on one line, as Markdown: names of other functions stay code."""
    return " ".join(_paragraphs(documented)[0].split()).replace("``", "`")


def signature(name: str, function: Callable[..., Any]) -> str:
    """As written in the source, with named defaults as values; one parameter a line where it is long."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    listed = list(_parameters(function, node.args))
    whole = f"{name}({', '.join(listed)}){returns}"
    if len(whole) <= LONGEST_SIGNATURE:
        return whole
    return "\n".join((f"{name}(", *(f"    {one}," for one in listed), f"){returns}"))


def _value(function: Callable[..., Any], default: ast.expr) -> ast.expr:
    if isinstance(default, ast.Name):
        return ast.parse(repr(function.__globals__[default.id]), mode="eval").body
    return default


def _parameters(function: Callable[..., Any], arguments: ast.arguments) -> Iterator[str]:
    def with_default(argument: ast.arg, default: ast.expr | None) -> str:
        written = ast.unparse(argument)
        return f"{written} = {ast.unparse(_value(function, default))}" if default is not None else written

    missing = len(arguments.args) - len(arguments.defaults)
    yield from map(with_default, arguments.args, (*(None for _ in range(missing)), *arguments.defaults))
    if arguments.vararg:
        yield "*" + ast.unparse(arguments.vararg)
    elif arguments.kwonlyargs:
        yield "*"
    yield from map(with_default, arguments.kwonlyargs, arguments.kw_defaults)


def _records(modules: Iterable[ModuleType]) -> dict[str, type[msgspec.Struct]]:
    """The records that the functions return, alone or in a tuple."""
    found: dict[str, type[msgspec.Struct]] = {}
    for module in modules:
        names = {**vars(module), **_types_of(module)}
        for function in public_functions(module).values():
            for one in _classes_in(eval(function.__annotations__["return"], names)):
                if issubclass(one, msgspec.Struct):
                    found[one.__name__] = one
    return dict(sorted(found.items()))


def _types_of(module: ModuleType) -> dict[str, Any]:
    """What a module imports for type checkers alone."""
    found: dict[str, Any] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module.__name__, "exec"), found)
    return found


def _classes_in(annotation: Any) -> Iterator[type]:
    if inspect.isclass(annotation) and not get_args(annotation):
        yield annotation
    for one in get_args(annotation):
        yield from _classes_in(one)


def _fields(record: type[msgspec.Struct]) -> str:
    return ", ".join(f"`{field}`" for field in record.__struct_fields__)
