"""The files of ``scan --svg`` and ``scan --html``: their places are looked at before the scan, written after it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli.output import say

if TYPE_CHECKING:
    from advisor.facts.host_facts import Facts
    from advisor.facts.services import Service
    from advisor.host.provenance import Provenance
    from advisor.limits.host_records import HostCeiling
    from advisor.rules.finding import Finding

STANDARD_OUTPUT = Path("-")


def check_files(files: Mapping[str, Path | None], *, printing: str | None) -> None:
    """Raise UsageError where one of the files cannot be written, before the scan.

    ``files`` are by their option; ``printing`` is the option that has standard output for itself, if one does.
    """
    from advisor.cli.prove_page import check_page
    from advisor.errors import UsageError

    given = {option: path for option, path in files.items() if path is not None}
    for option, path in given.items():
        if path != STANDARD_OUTPUT:
            check_page(path, option)
        elif printing:
            raise UsageError(f"{option} -: {printing} prints there", hint="name a file")
    if len({path.absolute() for path in given.values()}) < len(given):
        raise UsageError(f"{' and '.join(given)} name the same file", hint="name two")


def write_files(
    facts: Facts,
    findings: Sequence[Finding],
    services: Sequence[Service],
    *,
    ceiling: HostCeiling | None,
    svg: Path | None,
    html: Path | None,
    provenance: Provenance | None = None,
    muted: Sequence[Finding] = (),
) -> bool:
    """Write them, each whole or not at all; whether standard output is one of them. Raises UsageError."""
    from advisor.operations.files import write_output
    from advisor.report.picture.page import picture_page, picture_svg

    # Both are made before either is written.
    page = partial(picture_page, provenance=provenance, muted=muted)
    made = [
        (path, draw(facts, findings, services, ceiling))
        for path, draw in ((svg, picture_svg), (html, page))
        if path is not None
    ]
    for path, text in made:
        if path == STANDARD_OUTPUT:
            sys.stdout.buffer.write(text.encode())
        else:
            write_output(path, text)
            say(f"{path}: the host as a picture")
    return any(path == STANDARD_OUTPUT for path, _ in made)
