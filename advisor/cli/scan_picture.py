"""The files of ``scan --svg`` and ``scan --html``: their places are looked at before the scan, written after it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.cli.output import say
from advisor.i18n import msg

if TYPE_CHECKING:
    from advisor.facts.host_facts import Facts
    from advisor.facts.services import Service
    from advisor.host import Host
    from advisor.host.provenance import Provenance
    from advisor.limits.declared import Declared
    from advisor.limits.host_records import HostCeiling
    from advisor.rules.finding import Finding

STANDARD_OUTPUT: Final = Path("-")


def with_services(host: Host, facts: Facts) -> tuple[Facts, tuple[Service, ...]]:
    """What a picture needs beyond the facts, read only where one is asked for; with what of it is unknown."""
    import msgspec

    from advisor.facts.storage_services import read_storage_services
    from advisor.facts.unknown import Unknowns

    unknown = Unknowns()
    services = read_storage_services(host, unknown)
    return msgspec.structs.replace(facts, unknown=(*facts.unknown, *unknown.listed())), services


def host_ceiling(host: Host, facts: Facts, declared: Declared | None) -> HostCeiling | None:
    """The ceiling of the host, with what is declared of its volumes."""
    from advisor.limits.declared import Declared
    from advisor.limits.pci_and_network import read_surroundings
    from advisor.limits.storage_use import read_front
    from advisor.limits.what_if import Scene, limits_of_scene

    scene = Scene(facts, read_surroundings(host, facts), declared or Declared(), read_front(host, facts))
    return limits_of_scene(scene).host


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
            raise UsageError(
                msg("{option} -: {printing} prints there", option=option, printing=printing), hint="name a file"
            )
    if len({path.absolute() for path in given.values()}) < len(given):
        raise UsageError(msg("{given} name the same file", given=" and ".join(given)), hint="name two")


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
    from advisor.host.putfile import save_output
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
            save_output(str(path), text.encode(), mode=0o644)
            say(f"{path}: the host as a picture")
    return any(path == STANDARD_OUTPUT for path, _ in made)
