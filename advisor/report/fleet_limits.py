"""The ceiling of a cluster and of its hosts: as text for a person, and as the document of ``advisor fleet limits``."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from advisor.limits.cluster import Cluster, ClusterHost
from advisor.report.host_ceiling import add_ceiling, figure_piece, stage_words
from advisor.report.layout import Page, Piece, Span

SCHEMA = "advisor.fleet-limits/1"
_PARTS = {"server": "server", "client": "client", "other": "not counted"}


def fleet_limits_document(cluster: Cluster, failed: Mapping[str, str]) -> dict[str, object]:
    """``advisor.fleet-limits/1``."""
    return {"schema": SCHEMA, **msgspec.to_builtins(cluster), "failed": dict(failed)}


def fleet_limits_text(cluster: Cluster, failed: Mapping[str, str], *, width: int, color: bool) -> str:
    """Each host with what binds it, then the cluster."""
    page = Page(width, color=color)
    count = len(cluster.hosts)
    page.add(Span((f"Ceilings of {count} host" if count == 1 else f"Ceilings of {count} hosts"), "bold"))
    words = ("host", "role", "reads MB/s", "writes MB/s", "bound by")
    page.table([tuple(Span(word, "dim") for word in words), *map(_host_row, cluster.hosts)], indent=2)
    if failed:
        page.heading("Hosts that could not be read")
        page.labelled([(name, (why,)) for name, why in failed.items()])
    add_ceiling(page, cluster.cluster, "The whole cluster")
    return page.text


def _host_row(one: ClusterHost) -> tuple[Piece, ...]:
    bindings = (one.host.binds, one.host.write_binds)
    stages = tuple(dict.fromkeys(stage_words(each.stage, one.host.machine) for each in bindings if each))
    if not one.host.paths:
        return one.name, _PARTS[one.part], "-", "-", "no storage"
    return (
        one.name,
        _PARTS[one.part],
        figure_piece(one.host.read_mb_s),
        figure_piece(one.host.write_mb_s),
        " / ".join(stages),
    )
