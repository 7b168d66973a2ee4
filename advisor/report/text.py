"""The page of a scan for the terminal."""

from __future__ import annotations

from advisor.facts.host_facts import Facts
from advisor.host.provenance import Provenance
from advisor.i18n import english_page
from advisor.rules.finding import Finding

LINKS_SHOWN = 24
"""Links that are shown per node before the rest is counted; one that a finding names is always shown."""


@english_page
def scan_text(
    facts: Facts, findings: tuple[Finding, ...], *, width: int, color: bool, provenance: Provenance | None = None
) -> str:
    """The page of ``advisor scan --all``: the host, each node, sysctls, LLT, what is unknown, findings.

    ``width`` in columns. Without ``color`` the text holds no escape codes at all, in either case none of the host's.
    """
    from advisor.report.page import render
    from advisor.report.scan_page import scan_page

    return render(scan_page(facts, findings, links_shown=LINKS_SHOWN, provenance=provenance), width=width, color=color)
