"""``advisor schema``."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from advisor.cli.complete import schema_names
from advisor.cli.output import print_json, print_text
from advisor.cli.scan import Json
from advisor.operations import schemas


def schema(
    name: Annotated[
        str | None, Argument(metavar="[NAME]", help="A document: scan, or advisor.scan/1.", autocompletion=schema_names)
    ] = None,
    as_json: Json = False,
) -> int:
    """Print the JSON Schema of a document of --json. Without a name, the names of all documents."""
    if name is not None:
        print_json(schemas.read_schema(name))
    elif as_json:
        print_json({"schema": "advisor.schemas/1", "schemas": schemas.list_schemas()})
    else:
        print_text("\n".join(schemas.list_schemas()))
    return 0


COMMANDS = {"schema": schema}
