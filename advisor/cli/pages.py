"""The page of ``prove --html`` and ``compare --html``: its place is looked at beforehand, and it is written last."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli.output import say

if TYPE_CHECKING:
    from advisor.facts.host_facts import Facts
    from advisor.facts.system.services import Service
    from advisor.host.provenance import Provenance
    from advisor.limits.records import HostCeiling
    from advisor.proof.records import Proof
    from advisor.rules.rule import Finding

UNWRITTEN = 4
"""The exit code where the result was printed and the page was not written."""


def check_page(path: Path, option: str = "--html", *, others: Iterable[Path | None] = ()) -> None:
    """Raise UsageError where no page can be written there, before anything is done; ``others`` are files of the same
    call, which the page must not replace."""
    from advisor.errors import UsageError

    if os.path.realpath(path) in [os.path.realpath(other) for other in others if other is not None]:
        raise UsageError(f"{option} {path}: is named for something else already", hint="name a file that is new")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{option} {path}: there is no such directory", hint="make it first")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UsageError(f"{option} {path}: is there and is no regular file", hint="name a file that is new")
    if not _is_replaceable(path):
        raise UsageError(f"{option} {path}: is there and is no page or picture", hint="name a file that is new")


def _is_replaceable(path: Path) -> bool:
    """Whether nothing is there, or something empty, or mark-up as we write it: a saved series is gone for good."""
    try:
        with path.open("rb") as file:
            return file.read(1) in (b"", b"<")
    except FileNotFoundError:
        return True
    except OSError:
        return False


def write_page(path: Path, proof: Proof) -> bool:
    """Write the page, whole or not at all; whether that succeeded. A fault is reported on standard error."""
    from advisor.report.proof.page import proof_page

    return write_text(path, proof_page(proof), "page")


def write_picture(path: Path, proof: Proof) -> bool:
    """Write the picture, whole or not at all; whether that succeeded. A fault is reported on standard error."""
    from advisor.report.proof.page import proof_svg

    return write_text(path, proof_svg(proof), "picture")


def write_text(path: Path, text: str, noun: str) -> bool:
    """Write a page or picture, whole or not at all; whether that succeeded. A fault is reported on standard error."""
    from advisor.errors import AdvisorError
    from advisor.operations.files import write_output

    try:
        write_output(path, text)
    except (AdvisorError, OSError) as error:
        say(f"advisor: the {noun} was not written: {error}")
        return False
    say(f"{path}: the result as a {noun}")
    return True


# The files of ``scan --svg`` and ``scan --html``: their places are looked at before the scan, written after it.

STANDARD_OUTPUT = Path("-")


def check_files(files: Mapping[str, Path | None], *, printing: str | None) -> None:
    """Raise UsageError where one of the files cannot be written, before the scan.

    ``files`` are by their option; ``printing`` is the option that has standard output for itself, if one does.
    """

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
