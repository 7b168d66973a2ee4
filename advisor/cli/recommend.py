"""``advisor recommend``."""

from __future__ import annotations

from typing import Annotated, Final

from advisor.cli.output import print_json, print_text, terminal_width, the_host, wants_color
from advisor.cli.parameters import Option
from advisor.cli.scan import Json, Root, Snapshot


def recommend(
    workload: Annotated[
        str | None,
        Option(
            "--workload",
            metavar="NAME|K=V,…",
            help="Declare what runs here: oltp, batch, backup, fss-udp …, a pattern of `advisor bench`, or "
            "read=70%,block=8k, access=random, transport=tcp, rtt=1.16ms, replication=sync.",
        ),
    ] = None,
    as_json: Json = False,
    root: Root = None,
    snapshot: Snapshot = None,
) -> int:
    """List which profiles fit this host and workload, and why. Gives the reason of each that does not fit. Changes
    nothing and needs no root."""
    from advisor.facts.host_facts import scan
    from advisor.recommend import declared, outlooks
    from advisor.recommend import recommend as judged
    from advisor.report.recommend import recommendation_document, recommendation_text
    from advisor.rules.finding import at_or_above
    from advisor.rules.infoscale import recognition
    from advisor.rules.registry import judge

    wanted = declared(workload) if workload is not None else None
    host = the_host(root, snapshot)
    facts = scan(host)
    found = judged(facts, wanted, outlooks(host, facts))
    recognised = recognition(facts, wanted)
    if as_json:
        print_json(recommendation_document(wanted, found, recognised))
    else:
        others = [one for one in judge(facts, wanted) if one.profile is None and at_or_above(one.severity, "advice")]
        print_text(
            recommendation_text(
                wanted, found, recognised, width=terminal_width(), color=wants_color(), findings=len(others)
            )
        )
    return 0


COMMANDS: Final = {"recommend": recommend}
