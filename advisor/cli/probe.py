"""``advisor probe``."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.scan import Json


def probe(
    names: Annotated[
        list[str] | None,
        Argument(metavar="[PEER…]", help="Addresses or names. Default: every host that this one is connected to."),
    ] = None,
    mtu: Annotated[
        int | None, Option("--mtu", metavar="BYTES", help="Exit with 1 if packets of this size do not reach a peer.")
    ] = None,
    count: Annotated[
        int, Option("--count", metavar="N", help="Send so many small echoes for the round-trip time.")
    ] = 5,
    as_json: Json = False,
) -> int:
    """Measure the round-trip time and path MTU to peers. Sends ICMP echoes that must not be fragmented. Changes
    nothing."""
    from advisor.operations.probing import probe_peers

    found = probe_peers(names or (), mtu=mtu, count=count, progress=say)
    if as_json:
        from advisor.report.reach import probe_document

        print_json(probe_document(found))
    else:
        from advisor.report.reach import probe_text

        print_text(probe_text(found, width=terminal_width(), color=wants_color()))
    return 0 if found.is_carried else 1


COMMANDS = {"probe": probe}
