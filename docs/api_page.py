"""docs/api.md: the functions of `advisor.operations`, with their signatures and first paragraphs of docstrings."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, get_type_hints

import msgspec

from advisor import operations

LONGEST_SIGNATURE: Final = 100

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
    public = [(name, getattr(operations, name)) for name in operations.__all__]
    functions = [(name, one) for name, one in public if inspect.isfunction(one)]
    records = _records(one for _, one in functions)
    return "\n".join(
        (
            generated,
            HEAD,
            "## Functions\n",
            *(line for name, one in functions for line in _function(name, one)),
            "## Records\n",
            "| record | what | fields |",
            "| --- | --- | --- |",
            *(f"| `{name}` | {first_paragraph(one)} | {_fields(one)} |" for name, one in records.items()),
            "",
        )
    )


def _function(name: str, function: Callable[..., Any]) -> Iterator[str]:
    yield f"### `{name}`\n"
    yield f"```python\n{signature(name, function)}\n```\n"
    yield first_paragraph(function) + "\n"


def first_paragraph(documented: object) -> str:
    """The first paragraph of a docstring on one line, as Markdown: names of other functions stay code."""
    text = inspect.getdoc(documented)
    if not text:
        raise ValueError(f"{documented} has no docstring")
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`")


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


def _records(functions: Iterable[Callable[..., Any]]) -> dict[str, type[msgspec.Struct]]:
    """The structs that the functions return, and the public ones of the module."""
    returned = (get_type_hints(one)["return"] for one in functions)
    public = (getattr(operations, name) for name in operations.__all__)
    found = [one for one in (*public, *returned) if inspect.isclass(one) and issubclass(one, msgspec.Struct)]
    return {one.__name__: one for one in sorted(found, key=lambda one: one.__name__)}


def _fields(record: type[msgspec.Struct]) -> str:
    return ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(record))
