"""``advisor recommend``."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from advisor import operations
from advisor.cli.complete import recommendable_workloads
from advisor.cli.output import print_json, print_text, terminal_width, wants_color
from advisor.cli.scan import Json, Root, Snapshot


def recommend(
    workload: Annotated[
        list[str] | None,
        Option(
            "--workload",
            metavar="NAME|FILE|K=V,…",
            help="Declare what runs here: oltp, batch, backup, fss-udp …, a pattern of `advisor bench`, a file, or "
            "read=70%,block=8k, access=random, transport=tcp, rtt=1.16ms, replication=sync.",
            autocompletion=recommendable_workloads,
        ),
    ] = None,
    whole: Annotated[bool, Option("--all", help="Print each profile that does not apply, with the reason.")] = False,
    as_json: Json = False,
    root: Root = None,
    snapshot: Snapshot = None,
) -> int:
    """List which profiles fit this host and workload, and why. Names those that do not apply in one line. Changes
    nothing and needs no root."""
    from advisor.operations.severity import has_severity
    from advisor.report.recommend import recommendation_document, recommendation_text

    # Given several times it says as much as once, with commas.
    declared = ",".join(workload) if workload else None
    found = operations.recommend(operations.open_host(root, snapshot), workload=declared)
    asked = found.workload, found.recommendations, found.recognised
    if as_json:
        print_json(recommendation_document(*asked))
    else:
        others = [one for one in found.active if one.profile is None and has_severity([one], "advice")]
        text = recommendation_text(
            *asked,
            width=terminal_width(),
            color=wants_color(),
            findings=len(others),
            is_live=root is None and snapshot is None,
            everything=whole,
        )
        print_text(text)
    return 0


COMMANDS = {"recommend": recommend}
