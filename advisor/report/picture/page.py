"""The picture as a file: an SVG that stands alone, and an HTML page with the findings and what is unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from advisor.facts.host_facts import Facts
from advisor.facts.services import Service
from advisor.facts.unknown import Unknown
from advisor.host.patterns import lazy_regex
from advisor.host.provenance import Provenance
from advisor.limits.host_records import HostCeiling
from advisor.report.finding_blocks import value_text
from advisor.report.format import format_minute
from advisor.report.html import Raw, html_environment, render_page
from advisor.report.picture.content import host_picture
from advisor.report.picture.described import describe_blocks, describe_picture
from advisor.report.picture.drawing import Sheet, draw_sheet, write_legend
from advisor.report.picture.records import HostPicture
from advisor.report.picture.scene import by_key
from advisor.report.scan_summary import NEED, devices_text, host_roles, provenance_text, whose_commands
from advisor.report.severities import LOOKS
from advisor.report.units import format_binary, times
from advisor.rules.finding import Finding
from advisor.rules.numbering import number_findings

if TYPE_CHECKING:
    from jinja2 import Environment

PHONE_WIDTH = 328.0
"""A phone of 360 pixels less its margins."""

PAPER_WIDTH = 668.0
SCREEN_WIDTH = 1184.0
_MAX_LINES = 40
_MAX_FACTS = 3
SHEETS = (Sheet("narrow", PHONE_WIDTH), Sheet("medium", PAPER_WIDTH), Sheet("wide", SCREEN_WIDTH))
"""A drawing for a phone, one for paper, and one for a screen."""
_VARIABLE = lazy_regex(r"var\((--\w+)\)")


def picture_svg(
    facts: Facts, findings: Sequence[Finding], services: Sequence[Service] = (), ceiling: HostCeiling | None = None
) -> str:
    """The host as one SVG file: with its name, the titles of the findings, and what the lines mean."""
    picture = host_picture(facts, findings, services, ceiling)
    sheet = Sheet("host-picture", SCREEN_WIDTH if len(picture.panels) > 2 else PAPER_WIDTH, whole=True)
    made = html_environment()
    drawn = made.get_template("host.svg.j2").module.drawn  # type: ignore[attr-defined]
    style = Raw(_own_style(made))
    return f"{drawn(draw_sheet(picture, sheet), _page_title(picture), describe_picture(picture), style)}\n".lstrip()


def picture_page(
    facts: Facts,
    findings: Sequence[Finding],
    services: Sequence[Service] = (),
    ceiling: HostCeiling | None = None,
    *,
    provenance: Provenance | None = None,
    muted: Sequence[Finding] = (),
) -> str:
    """The page: when and of what it is, the facts of the machine, the findings in short, the picture as it fits a
    phone, paper or a screen, the findings with their reasons, what is muted, and the unknown."""
    picture = host_picture(facts, findings, services, ceiling)
    # Findings with the numbers of the scan page, and whether each is the first of its number; the gravest first.
    numbered = [(group, at == 0, one) for group in number_findings(findings) for at, one in enumerate(group.findings)]
    groups = (
        (look, [(group.number, first, one) for group, first, one in numbered if group.severity == look.name])
        for look in LOOKS
    )
    return render_page(
        "host",
        "proof",
        "host-page",
        picture=picture,
        title=_page_title(picture),
        description=describe_picture(picture),
        drawings=[draw_sheet(picture, sheet) for sheet in SHEETS],
        provenance=provenance_text(provenance) if provenance else "",
        whose=_whose_host(provenance) if provenance else None,
        facts_table=list(_facts_table(facts)),
        muted=muted,
        legend=write_legend(picture).pieces,
        groups=[(look, found) for look, found in groups if found],
        evidence=evidence_rows,
        unknown=_unknown_rows(facts.unknown),
        count_unknown=len(facts.unknown),
        described=describe_blocks(picture),
    )


def _whose_host(provenance: Provenance) -> tuple[str, str] | None:
    """That the page is of a captured host and of when; and the words that advisor's commands need here. None for this
    host as it is."""
    words = whose_commands(provenance, 1000)
    if not words:
        return None
    if provenance.source == "live" or provenance.is_this_host:
        text = words
    else:
        when = format_minute(provenance.captured_at)
        taken = f"captured on {when}" if when else "captured at a time that is not known"
        text = f"The host of this page was {taken}; the commands are for it, and {words.partition(': ')[2]}"
    before, sign, options = text.partition(f"{NEED} ")
    return (f"{before}{sign}", options) if sign else (f"{text}.", "")


def _page_title(picture: HostPicture) -> str:
    # A host without a name is called just that: "host of unknown name".
    return f"The {'' if picture.title.startswith('host ') else 'host '}{picture.title}, drawn by its NUMA nodes"


def _own_style(made: Environment) -> str:
    """The style sheet of a file of its own: colours written out, for viewers that know no variables."""
    style = made.get_template("host.css.j2").render()
    blocks = re.findall(r":root \{([^}]*)\}", made.get_template("colours.css.j2").render() + style)
    light, dark, *_, more, dark_more = (dict(re.findall(r"(--\w+): ([^;]+);", block)) for block in blocks)
    rules = [line for line in style.splitlines() if ":root" not in line and "@media" not in line]

    def filled(lines: Iterable[str], colours: Mapping[str, str]) -> str:
        return _VARIABLE.sub(lambda name: colours[name[1]], "\n".join(lines))

    in_dark = filled((line for line in rules if "var(" in line), dark | dark_more)
    return f"{filled(rules, light | more).strip()}\n@media (prefers-color-scheme: dark) {{\n{in_dark}\n}}"


def _facts_table(facts: Facts) -> Iterator[tuple[str, str]]:
    """What the machine is, a row for each thing that is known."""
    host, cpu, memory = facts.host, facts.cpu, facts.memory
    counts = ((cpu.packages, "socket"), (cpu.cores, "core"), (cpu.threads, "thread"))
    virtual = "" if host.virtualization in (None, "", "none") else f"{host.virtualization} virtual machine"
    virtual = facts.container.words.removeprefix("a ") if facts.container.is_inside else virtual
    machine = " ".join(filter(None, (host.vendor, host.product)))
    sizes = [times(count, what) for count, what in counts if count is not None]
    rows = {
        "role": ", ".join(host_roles(facts)),
        "system": host.os,
        "kernel": " ".join(filter(None, (host.kernel, host.architecture))),
        "machine": ", ".join(filter(None, (machine, virtual))),
        "cloud": host.cloud and f"{host.cloud.provider} {host.cloud.instance_type or 'instance type unknown'}",
        "cpu": ", ".join(filter(None, (cpu.model, *sizes))),
        "memory": None if memory.total_bytes is None else format_binary(memory.total_bytes),
        "nodes": str(len(facts.numa.nodes) or ""),
        "devices": devices_text(facts.links, facts.disks, facts.arrays, (), facts.accelerators),
    }
    return ((name, text) for name, text in rows.items() if text)


def evidence_rows(finding: Finding) -> list[str]:
    """What was seen: the sentences of ``detail`` where there are some, else every name with its value."""
    detail = finding.evidence.get("detail")
    if isinstance(detail, tuple):
        more = [f"and {len(detail) - _MAX_LINES} more; --json lists all"] if len(detail) > _MAX_LINES else []
        return [*detail[:_MAX_LINES], *more]
    return [f"{key} {value_text(value)}" for key, value in finding.evidence.items() if value not in (None, ())]


def _unknown_rows(unknown: Sequence[Unknown]) -> list[tuple[str, str]]:
    """Facts and why they are unknown; those of one kind and for one reason in one row."""
    rows = by_key(unknown, lambda entry: (entry.fact.partition(".")[0], entry.why))
    return [
        (
            ", ".join(entry.fact for entry in group[:_MAX_FACTS])
            + (f" and {len(group) - _MAX_FACTS} more" if len(group) > _MAX_FACTS else ""),
            group[0].why,
        )
        for group in rows
    ]
