"""The span of counters that a snapshot may hold."""

from __future__ import annotations

from pathlib import Path

import msgspec

from advisor.errors import InvalidInputError
from advisor.observe.recording import decode_span
from advisor.observe.span import CounterSpan
from advisor.snapshot.archive import read_attachment, read_attachment_of

SPAN = "advisor-span.json"


def read_span(path: Path, archive: bytes | None = None) -> tuple[CounterSpan, float]:
    """The span of an archive and when it was taken, in seconds since the epoch; of ``archive`` where that is given,
    which ``path`` then only names.

    Raises InvalidInputError for what is no archive, one without a span, and a span that is none.
    """
    data = read_attachment(path, SPAN) if archive is None else read_attachment_of(archive, str(path), SPAN)
    if data is None:
        raise InvalidInputError(
            f"{path}: holds no counters over time", hint="advisor snapshot --seconds 30 -o FILE records them"
        )
    try:
        return decode_span(data)
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        raise InvalidInputError(f"{path}: {SPAN}: {error}") from error
