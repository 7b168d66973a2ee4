"""``advisor probe``."""

from __future__ import annotations

from typing import Annotated, Final

from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.parameters import Argument, Option
from advisor.cli.scan import Json


def probe(
    names: Annotated[
        list[str] | None,
        Argument(metavar="[PEER…]", help="Addresses or names; without any, everybody whom this host talks to."),
    ] = None,
    mtu: Annotated[
        int | None, Option("--mtu", metavar="N", help="Exit 1 if a peer does not carry packets of N bytes.")
    ] = None,
    count: Annotated[int, Option("--count", metavar="N", help="Small echoes for the round-trip time.")] = 5,
    as_json: Json = False,
) -> int:
    """Round-trip time and path MTU to peers, by ICMP echoes that must not be fragmented. Changes nothing."""
    from advisor.host import live_host
    from advisor.reach.survey import survey

    found = survey(live_host(), names or [], mtu=mtu, count=count, progress=say)
    if as_json:
        from advisor.report.reach import probe_document

        print_json(probe_document(found))
    else:
        from advisor.report.reach import probe_text

        print_text(probe_text(found, width=terminal_width(), color=wants_color()))
    return 0 if found.is_carried else 1


COMMANDS: Final = {"probe": probe}
