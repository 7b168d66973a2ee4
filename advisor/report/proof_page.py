"""A proof as one HTML page that needs nothing else: no script, nothing from outside, its style sheet named by hash.

The words and figures are those of the text; the picture has a table that says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advisor.proof.records import Proof
from advisor.report.charts.changes import CHART_WIDTH, chart_svg, draw_forest
from advisor.report.html import render_page
from advisor.report.layout import Piece, Span
from advisor.report.proof_rows import by_workload, cells_of, groups_of, table_head
from advisor.report.proof_words import (
    AGAIN,
    KEPT,
    arms_words,
    class_words,
    command_again,
    command_kept,
    gate_words,
    host_rows,
    level_words,
    looks_words,
    notes_of,
    reasons_of,
    session_rows,
    subject_words,
    values_of,
    verdict_words,
    workload_title,
    write_headlines,
)
from advisor.shell.quote import shell_quote


def proof_page(proof: Proof) -> str:
    """The whole page. All text is escaped, and spelt out where it is not printable."""
    host = proof.session.host
    name, kernel = (None, None) if host is None else (host.name, host.kernel)
    return render_page(
        "proof",
        **_verdict_dict(proof),
        forest=draw_forest(proof),
        columns=("metric", *table_head()[1:], "result"),
        groups=[
            {
                "title": group.title,
                "note": group.note,
                "workloads": [
                    {
                        "name": name,
                        "title": workload_title(name),
                        "rows": [
                            {"cells": cells_of(row), "says": row.says.text, "style": row.says.style} for row in rows
                        ],
                    }
                    for name, rows in by_workload(group.rows)
                ],
            }
            for group in groups_of(proof)
        ],
        arms=arms_words(proof),
        level=level_words(proof),
        notes=notes_of(proof),
        settings=values_of(proof),
        is_self_test=proof.session.self_test,
        host=pieces_of([("name", (name or "unknown",)), ("kernel", (kernel or "unknown",)), *host_rows(proof)]),
        session=pieces_of(
            [
                *session_rows(proof),
                ("looks", (looks_words(proof),)),
                ("gate", (gate_words(proof),)),
                ("class", (class_words(proof),)),
            ]
        ),
        kept=command_kept(proof),
        kept_words=KEPT,
        again=AGAIN,
        command=command_again(proof),
        reanalyse=None if proof.saved_to is None else f"advisor compare {shell_quote(proof.saved_to)}",
    )


def proof_svg(proof: Proof) -> str:
    """The forest as a file of its own, which says by itself what was compared and how far it can be relied on."""
    what, where = subject_words(proof)
    words, style = verdict_words(proof)
    first, *others = write_headlines(proof)
    said = [f"{where}, {proof.session.started[:10]}", *others]
    return chart_svg(draw_forest(proof, width=CHART_WIDTH), what, said, f"{words}: {first}", style)


def _verdict_dict(proof: Proof) -> dict[str, object]:
    words, style = verdict_words(proof)
    what, where = subject_words(proof)
    return {
        "verdict": words,
        "verdict_style": style,
        "headlines": write_headlines(proof),
        "reasons": reasons_of(proof),
        "what": what,
        "where": where,
    }


def pieces_of(rows: Iterable[tuple[str, Sequence[Piece]]]) -> list[tuple[str, list[Span]]]:
    return [(label, [piece if isinstance(piece, Span) else Span(piece) for piece in pieces]) for label, pieces in rows]
