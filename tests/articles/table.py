"""The articles' cases: a whole host as the article describes it, what the article says, what advisor answers.

Each system has a module ``cases_SYSTEM.py`` with ``CASES``, one `Case` a row. `tests/articles/test_table.py` checks
every row, and docs/generate.py writes docs/systems/SYSTEM-cases.md from the same answers. No answer is written down
here: it is computed from the host, and a case names the fragments that it must and must not hold.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from advisor import operations as api
from advisor.errors import AdvisorError
from advisor.facts.host_facts import scan
from advisor.host import Host
from advisor.limits.cluster import cluster_of
from advisor.limits.declared import Declared, parse_declared
from advisor.limits.host_ceiling import with_host
from advisor.limits.links import read_pci_and_network
from advisor.limits.paths import limits_of, with_purchases
from advisor.limits.records import HostCeiling
from advisor.limits.storage_use import parse_measured, read_front, with_measured
from advisor.limits.what_if import Scene, limits_of_scene, parse_changes, with_what_if
from advisor.report.host_ceiling import add_ceiling, add_what_if
from advisor.report.layout import Page
from advisor.report.limits import limits_document, size_text
from advisor.rules.judged import judge
from advisor.rules.remote.ebs_purchase import unusable
from advisor.sizing.records import parse_demand
from advisor.sizing.search import SizeQuestion, parse_layouts
from advisor.sizing.search import answer as size
from tests.cases import read_cases

DATA = read_cases(__file__)

SYSTEMS: Final[Mapping[str, str]] = DATA["SYSTEMS"]


class Ask(NamedTuple):
    """A question to advisor: the command line that a person types, and the answer as one line of text."""

    command: str
    answer: Callable[[Host], str]


class Case(NamedTuple):
    """A row. ``article`` is what the source says, with its key (S000 to S004); ``says`` are fragments of the answer,
    ``never`` are fragments that it must not hold."""

    case: str
    article: str
    host: Callable[[], Host]
    ask: Ask
    says: tuple[str, ...]
    never: tuple[str, ...] = ()


def cases(system: str) -> tuple[Case, ...]:
    """The rows of one system, in their order."""
    found: tuple[Case, ...] = importlib.import_module(f"tests.articles.cases_{system}").CASES
    return found


def recommended(profile: str, workload: str | None = None) -> Ask:
    """What ``advisor recommend`` judges of one profile: whether it fits, on what ground, the summary, the command."""

    def answer(host: Host) -> str:
        document = api.document(api.recommend(host, workload=workload))
        (found,) = [one for one in document["recommendations"] if one["profile"] == profile]
        reported = f"{profile}: {found['fits']} ({found['standing']}). {found['summary']}"
        return f"{reported} {found['command']}" if found["command"] else reported

    return Ask(f"advisor recommend{_workload(workload)}", answer)


def reasons(profile: str, workload: str | None = None) -> Ask:
    """Why ``advisor recommend`` judges so of one profile."""

    def answer(host: Host) -> str:
        document = api.document(api.recommend(host, workload=workload))
        (found,) = [one for one in document["recommendations"] if one["profile"] == profile]
        return " ".join(one["text"] for one in found["why"]) or "no reason"

    return Ask(f"advisor recommend{_workload(workload)}", answer)


def planned(*profiles: str, **settings: str) -> Ask:
    """The changes of ``advisor plan``, and what it skips with the reason; the message of a plan that is refused."""

    def answer(host: Host) -> str:
        try:
            document = api.document(api.plan(*profiles, host=host, settings=settings))
        except AdvisorError as error:
            return f"refused: {error.message}" + (f" ({error.hint})" if error.hint else "")
        changes = [f"{one['tunable']} {one['before']} → {one['after']}" for one in document["changes"]]
        skipped = [f"{one['tunable']}: {one['reason']}" for one in document["skipped"]]
        return "; ".join((*changes, *skipped, *document.get("notes", ()))) or "nothing to do"

    given = "".join(f" --set {name}={value}" for name, value in settings.items())
    return Ask(f"advisor plan {' '.join(profiles)}{given}", answer)


def planned_of(kinds: tuple[str, ...], *profiles: str, **settings: str) -> Ask:
    """`planned`, shown for the tunables whose ids begin with one of ``kinds`` alone, and the notes of the plan."""
    whole = planned(*profiles, **settings)

    def answer(host: Host) -> str:
        listed = whole.answer(host).split("; ")
        others = ("sysctl:", "irq:", "unit:", "file:", "block:", "link:", "thp:", "md:", "llt:")
        return "; ".join(one for one in listed if one.startswith(kinds) or not one.startswith(others))

    return Ask(whole.command, answer)


def found(rule: str, workload: str | None = None) -> Ask:
    """What ``advisor scan`` finds by one rule, or that it finds nothing."""

    def answer(host: Host) -> str:
        document = api.document(api.scan(host, workload=workload))
        findings = [one for one in document["findings"] if one["id"] == rule]
        return "; ".join(_finding(one) for one in findings) or f"no finding {rule}"

    return Ask(f"advisor scan{_workload(workload)}", answer)


def reasoned(rule: str, workload: str | None = None) -> Ask:
    """Why ``advisor scan`` has a finding by one rule, with its severity; or that it finds nothing."""

    def answer(host: Host) -> str:
        document = api.document(api.scan(host, workload=workload))
        findings = [one for one in document["findings"] if one["id"] == rule]
        reported = (f"{one['id']} ({one['severity']}): {one['why']} {one['advice']}" for one in findings)
        return "; ".join(reported) or f"no finding {rule}"

    return Ask(f"advisor scan{_workload(workload)}", answer)


def _finding(one: Mapping[str, Any]) -> str:
    return f"{one['id']} ({one['severity']}): {one['title']}. {one['advice']}"


def limited_host(volumes: str = "", measured: str = "") -> Ask:
    """How ``advisor limits`` ends: the ceiling of the whole host. ``volumes`` is the text of the file."""

    def answer(host: Host) -> str:
        return _ceiling_words(_ceiling(host, volumes), measured, "The whole host")

    return Ask(f"advisor limits{_options(volumes, measured)}", answer)


def limited_what_if(*changes: str, volumes: str = "") -> Ask:
    """What ``advisor limits --what-if`` sets side by side."""

    def answer(host: Host) -> str:
        facts = scan(host)
        declared = parse_declared(volumes.encode(), "FILE") if volumes else Declared()
        scene = Scene(facts, read_pci_and_network(host, facts), declared, read_front(host, facts))
        try:
            found = with_what_if(limits_of_scene(scene), scene, parse_changes(changes))
        except AdvisorError as error:
            return f"refused: {error.message}" + (f" ({error.hint})" if error.hint else "")
        assert found.host is not None
        assert found.what_if is not None
        page = Page(4000, color=False)
        add_what_if(page, found.host, found.what_if)
        return "; ".join(" ".join(line.split()) for line in page.text.splitlines()[1:] if line)

    return Ask(f"advisor limits{_options(volumes, '')} --what-if {' '.join(changes)}", answer)


def purchased(volumes: str) -> Ask:
    """What ``advisor scan --volumes`` finds of what was bought of volumes."""

    def answer(host: Host) -> str:
        facts = with_purchases(scan(host), parse_declared(volumes.encode(), "FILE"))
        findings = [one for one in judge(facts) if one.id == unusable.id]
        return (
            "; ".join(
                f"{one.id} ({one.severity}): {one.title}. {'; '.join(map(str, one.evidence['detail'] or ()))}"  # type: ignore[arg-type]
                for one in findings
            )
            or f"no finding {unusable.id}"
        )

    return Ask("advisor scan --volumes FILE", answer)


def limited_cluster(others: Mapping[str, Callable[[], Host]], volumes: str = "", measured: str = "") -> Ask:
    """The same of ``advisor fleet limits`` over the case's host and others."""

    def answer(host: Host) -> str:
        named = {"this": host, **{name: make() for name, make in others.items()}}
        found = cluster_of((name, _ceiling(one, volumes)) for name, one in named.items()).cluster
        return _ceiling_words(found, measured, "The whole cluster")

    return Ask(f"advisor fleet limits CAPTURE…{_options(volumes, measured)}", answer)


def _options(volumes: str, measured: str) -> str:
    return f"{' --volumes FILE' if volumes else ''}{f' --measured {measured}' if measured else ''}"


def _ceiling(host: Host, volumes: str) -> HostCeiling:
    facts = scan(host)
    around = read_pci_and_network(host, facts)
    declared = parse_declared(volumes.encode(), "FILE") if volumes else Declared()
    found = with_host(limits_of(facts, around, declared), facts, around, declared, read_front(host, facts)).host
    assert found is not None
    return found


def _ceiling_words(found: HostCeiling, measured: str, title: str) -> str:
    page = Page(4000, color=False)
    add_ceiling(page, with_measured(found, parse_measured(measured)) if measured else found, title)
    lines = [" ".join(line.split()) for line in page.text.splitlines()]
    return "; ".join(line for line in lines[3:] if line)


def sized(*, volumes: str = "", **options: str) -> Ask:
    """What ``advisor size`` answers of the case's own machine. ``volumes`` is the TOML of a ``--volumes`` file."""

    def answer(host: Host) -> str:
        cloud = scan(host).host.cloud
        assert cloud is not None
        assert cloud.instance_type is not None
        demand = parse_demand(**{name: value for name, value in options.items() if name != "layout"})
        layouts = parse_layouts(options["layout"]) if "layout" in options else ()
        declared = parse_declared(volumes.encode(), "FILE") if volumes else Declared()
        question = SizeQuestion(demand, instances=(cloud.instance_type,), layouts=layouts, declared=declared)
        lines = [" ".join(line.split()) for line in size_text(size(question), width=4000, color=False).splitlines()]
        return "; ".join(line for line in lines[: lines.index("Sources") if "Sources" in lines else None] if line)

    given = "".join(f" --{name} {value}" for name, value in options.items())
    return Ask(f"advisor size{given}{' --volumes FILE' if volumes else ''} --instance TYPE", answer)


def fact(name: str) -> Ask:
    """One part of the facts of ``advisor scan --json``, as JSON."""

    def answer(host: Host) -> str:
        return json.dumps(api.document(api.scan(host))[name], sort_keys=True, ensure_ascii=False)

    return Ask("advisor scan --json", answer)


def limited(place: str, volumes: str = "") -> Ask:
    """One path of ``advisor limits``: what binds it, what it leads through, and the notes. ``volumes`` is the TOML of a
    ``--volumes`` file."""

    def answer(host: Host) -> str:
        facts = scan(host)
        declared = parse_declared(volumes.encode(), "volumes.toml")
        document = limits_document(limits_of(facts, read_pci_and_network(host, facts), declared))
        paths: Any = document["paths"]
        here = [one for one in paths if place in (one["name"], one["device"])]
        return "; ".join(_path(one) for one in here) or f"no path {place}"

    return Ask(f"advisor limits{' --volumes FILE' if volumes else ''}", answer)


def limited_account(volumes: str = "") -> Ask:
    """What ``advisor limits`` prints for all volumes, against the instance and the account, and the unknown."""

    def answer(host: Host) -> str:
        facts = scan(host)
        declared = parse_declared(volumes.encode(), "volumes.toml")
        document = limits_document(limits_of(facts, read_pci_and_network(host, facts), declared))
        bought: Any = document["bought"]
        unknown: Any = document["unknown"]
        notes: Any = document["notes"]
        units = {"read_mb_per_s": "MB/s", "read_iops": "IOPS"}
        together = [
            f"volumes {one['volumes']:,.0f} {units[one['quantity']]}, instance {one['instance']:,.0f}: "
            f"{100 * one['unusable']:.0f} % not usable"
            for one in bought
        ]
        return "; ".join((*together, *notes, *(f"unknown: {one['what']} ({one['why']})" for one in unknown)))

    return Ask(f"advisor limits{' --volumes FILE' if volumes else ''}", answer)


def _path(one: Mapping[str, Any]) -> str:
    units = {"read_mb_per_s": "MB/s reading", "write_mb_per_s": "MB/s writing", "read_iops": "read IOPS"}
    units["write_iops"] = "write IOPS"
    bounds = [f"{bound['value']:,.0f} {units[bound['quantity']]} by {bound['what']}" for bound in one["sustained"]]
    bound = ", ".join(bounds) or "no ceiling of it is known"
    return ". ".join((f"{one['name']}: {bound}", *one["layers"], *one["notes"]))


def _workload(name: str | None) -> str:
    return f" --workload {name}" if name else ""
