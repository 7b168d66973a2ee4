"""Writes docs/profiles/*.md, docs/schemas/*.json, docs/tunables.md, docs/rules.md, docs/contradictions.md,
docs/systems/*-cases.md, docs/api.md, docs/commands.md, docs/picture.svg and advisor/cli/tables/*.py from what they
describe.

python docs/generate.py            writes what has changed
python docs/generate.py --check    writes nothing; exit code 1 if a page is stale
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from advisor.errors import UsageError  # noqa: E402
from advisor.planning.devices import only_words  # noqa: E402
from advisor.profiles.profile import Profile, Wanted, load, profile_paths, shipped_directory  # noqa: E402
from advisor.proof.workloads import WORKLOADS  # noqa: E402
from advisor.report.profile_words import (  # noqa: E402
    GUARDS,
    condition_words,
    fill_template,
    parameter_words,
    proof_words,
    wanted_value,
)
from advisor.report.terms import EFFECTS  # noqa: E402
from advisor.report.tunable_docs import Handling, describe_handling, form_words, kind_words, list_examples, more_words  # noqa: E402
from advisor.rules.contradictions import CONTRADICTIONS, Contradiction  # noqa: E402
from advisor.rules.registry import RULES  # noqa: E402
from advisor.tunables import parse_tunable  # noqa: E402
from docs.api_page import api_page  # noqa: E402
from docs.command_page import MORE, command_page  # noqa: E402
from docs.command_tables import tables as command_tables  # noqa: E402
from docs.fact_paths import fact_table  # noqa: E402
from docs.schemas import files as schema_files  # noqa: E402
from tests.articles.table import SYSTEMS, Case, cases  # noqa: E402
from tests.rules.table import Row, grounds, profiles, severities  # noqa: E402
from tests.rules.table import table as rule_table  # noqa: E402

GENERATED = "<!-- Written by docs/generate.py: change the source and run it again. -->\n"

LONG_ANSWER = 400
"""Characters of an answer that a table shows whole."""

# What for-each fills into an id, so that the id of a profile's line is one that can be looked up.
PLACES = {
    **{"{link}": "LINK", "{unit}": "UNIT.service", "{irq}": "42", "{disk}": "DISK", "{array}": "ARRAY"},
    "{instance}": "/etc/beegfs/INSTANCE.d/beegfs-storage.conf",
    "{cpf}": "/usr/irissys/iris.cpf",
    "{map}": "/etc/multipath.conf:defaults",
    "{rr_min_io}": "rr_min_io_rq",
    "{record}": "/etc/iscsi/nodes/TARGET/PORTAL/INTERFACE",
    "{shared_link}": "LINK",
}


def pages() -> dict[Path, str]:
    """Every generated page by its path."""
    shipped = shipped_directory()
    paths = profile_paths(local=shipped)
    profiles = [load(name, paths) for name in paths]
    found = {DOCS / "profiles" / f"{profile.name}.md": profile_page(profile) for profile in profiles}
    found[DOCS / "profiles" / "README.md"] = profiles_page(profiles)
    found[DOCS / "tunables.md"] = tunables_page()
    found[DOCS / "picture.svg"] = example_picture()
    found[DOCS / "contradictions.md"] = contradictions_page()
    found[DOCS / "rules.md"] = rules_page()
    found[DOCS / "api.md"] = api_page(GENERATED)
    found[DOCS / "commands.md"] = command_page(GENERATED, {page: heading(DOCS / page, found) for page in MORE.values()})
    found.update({DOCS / "systems" / f"{system}-cases.md": cases_page(system) for system in SYSTEMS})
    found.update(command_tables())
    found.update(fact_table())
    found.update({DOCS / "schemas" / name: text for name, text in schema_files().items()})
    return found


def heading(page: Path, made: Mapping[Path, str]) -> str:
    """The first heading of a page, generated or not."""
    text = made[page] if page in made else page.read_text("utf-8")
    return next(line[2:] for line in text.splitlines() if line.startswith("# "))


def example_picture() -> str:
    """The picture of a server of the tests, with what the rules of placement and PCIe say about it."""
    from advisor.report.picture.page import picture_svg
    from tests.report.pictures import beegfs, judged

    facts, findings, services = judged(beegfs())
    shown = [one for one in findings if one.id.startswith(("arrays.", "numa.", "pcie."))]
    return picture_svg(facts, shown, services)


def main(arguments: Sequence[str]) -> int:
    if set(arguments) - {"--check"}:
        print(__doc__)
        return 2
    wanted = pages()
    stale = stale_pages(wanted)
    for path in stale:
        done = "is stale" if arguments else "written" if path in wanted else "removed"
        print(f"{path.relative_to(DOCS.parent)}: {done}")
    if arguments:
        return 1 if stale else 0
    write(stale, wanted)
    return 0


def stale_pages(wanted: Mapping[Path, str]) -> list[Path]:
    """Pages that differ or are missing, and those of profiles and documents that are no more."""
    changed = [path for path, text in wanted.items() if not path.is_file() or path.read_text("utf-8") != text]
    there = (*(DOCS / "profiles").glob("*.md"), *(DOCS / "schemas").glob("*.json"))
    return sorted((*changed, *(path for path in there if path not in wanted)))


def write(stale: Iterable[Path], wanted: Mapping[Path, str]) -> None:
    for path in stale:
        if path in wanted:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted[path], "utf-8")
        else:
            path.unlink()


def profiles_page(profiles: Sequence[Profile]) -> str:
    rows = [(f"[{one.name}]({one.name}.md)", one.title, one.helps_when, one.hurts_when) for one in profiles]
    return "\n".join(
        (
            GENERATED,
            "# Profiles\n",
            "Each profile is a file of wanted values with conditions, reasons and sources. `advisor plan NAME` shows"
            " what one means on a host; [the format](../profile-format.md) is one page.\n",
            *table(("profile", "what", "helps when", "hurts when"), rows),
            "",
        )
    )


def profile_page(profile: Profile) -> str:
    parts = [
        GENERATED,
        f"# {profile.name}\n",
        f"**{profile.title}.** {profile.summary}\n",
        f"**Helps when:** {profile.helps_when}\n",
        f"**Hurts when:** {profile.hurts_when}\n",
        *section("What it sets", _sets(profile)),
        *section("Why, and when each value hurts", _reasons(profile)),
        *section("Parameters", _parameters(profile)),
        *section("Where it does not apply", _limits(profile)),
        *section("How it is proven", _proof(profile)),
        *section("Notes", [profile.notes] if profile.notes else []),
        *section("Sources", [f"- {source}" for source in profile.sources]),
        *section("On a host", _commands(profile)),
    ]
    return "\n".join(parts)


def section(title: str, lines: Iterable[str]) -> list[str]:
    listed = list(lines)
    return [f"## {title}\n", *listed, ""] if listed else []


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def handled(profile: Profile, wanted: Wanted) -> Handling:
    identity = re.sub(r"\{\w+\}", lambda place: PLACES.get(place[0], "X"), wanted.tunable)
    value = fill_template(profile, wanted.value) if isinstance(wanted.value, str) else None
    return describe_handling(identity, profile=profile.name, value=value)


def _sets(profile: Profile) -> list[str]:
    rows = []
    for wanted in profile.tunables:
        one = handled(profile, wanted)
        bounds = only_words(wanted.only)
        each = f" for each of the {wanted.for_each}{bounds and f' ({bounds})'}" if wanted.for_each else ""
        persists = f"`{one.persists_in}`" if one.persists_in else f"not: {one.persist_note}"
        rows.append((f"`{wanted.tunable}`{each}", wanted_value(profile, wanted), one.takes_effect, persists))
    return table(("tunable", "wanted", "takes effect", "persists in"), rows) if rows else []


def _reasons(profile: Profile) -> list[str]:
    return [
        f"- `{one.tunable}`: {one.why}  \n  Hurts when: {one.hurts_when}  \n  Sources: {'; '.join(one.sources)}."
        for one in profile.tunables
    ]


def _parameters(profile: Profile) -> list[str]:
    rows = [(f"`{name}`", parameter_words(one), one.about) for name, one in profile.parameters.items()]
    return table(("`--set`", "takes", "meaning"), rows) if rows else []


def _limits(profile: Profile) -> list[str]:
    conditions = [f"- {one.reason} (needs `{condition_words(one)}`)." for one in profile.conditions]
    conditions += [
        f"- `{wanted.tunable}`: {wanted.condition.reason} (needs `{condition_words(wanted.condition)}`)."
        for wanted in profile.tunables
        if wanted.condition is not None
    ]
    return conditions + [f"- {GUARDS[guard]}" for guard in profile.guards]


def _proof(profile: Profile) -> list[str]:
    if profile.proof is None:
        return ["No workload is declared: name one with `advisor prove --workload`."]
    claims = [
        f"- `{name}`" + (f": {WORKLOADS[name].title}" if name in WORKLOADS else "") for name in profile.proof.claims
    ]
    return [f"{profile.proof.where} {proof_words(profile.proof)}", "", *claims]


def _commands(profile: Profile) -> list[str]:
    lines = (
        (f"advisor plan {profile.name}", "what it means here; changes nothing, needs no root"),
        (f"advisor apply {profile.name}", "one transaction, journalled and read back"),
        ("advisor verify", "is it still as it was set?"),
        ("advisor rollback", "as it was before"),
    )
    size = max(len(command) for command, _ in lines)
    return ["```", *(f"{command:{size}}  # {about}" for command, about in lines), "```"]


def tunables_page() -> str:
    kinds = list_examples()
    parts = [
        GENERATED,
        "# Tunables\n",
        "A tunable is one thing that can be set. Its id is stable: plans, journals and rollback scripts name it so. It"
        " is read back after it is set; what cannot be read back cannot be planned. `advisor explain ID` describes any"
        " one.\n",
        *table(("id", "what", "takes effect", "persists in"), [_kind_row(*example) for example in kinds]),
        "",
        *(part for example in kinds for part in _kind_section(*example)),
        *section("How a value is kept", KEPT),
    ]
    return "\n".join(parts)


KEPT = (
    "- Live values are set first and files are written last, so a host that loses power in between boots as before.",
    "- A file that exists already is edited: only the lines of this key change, the rest stays byte for byte. What the"
    " file was before is in the journal, and a rollback restores it.",
    "- A sysctl that a later file sets to something else at boot is not planned, as ours would lose; the plan names"
    " that file and line. `--runtime-only` sets the live value alone.",
    "- A value that the host has by itself, at boot too, is left alone and gets no file.",
)


def _kind_row(identity: str, value: str) -> tuple[str, ...]:
    form = form_words(parse_tunable(identity))
    one = describe_handling(form if _is_tunable(form) else identity, value=value)
    kept = f"`{one.persists_in}`" if one.persists_in else f"not: {one.persist_note}"
    return f"`{form}`", one.what, effect_words(identity), kept


def _is_tunable(form: str) -> bool:
    """Whether the form's capital words could be names themselves, so that paths can be recognised by them."""
    try:
        parse_tunable(form)
    except UsageError:
        return False
    return True


def effect_words(identity: str) -> str:
    """When values of this kind take effect; of sysctls, those of sockets differ from the rest."""
    if identity.startswith("sysctl:"):
        return f"{EFFECTS['now']}; socket buffer sizes {EFFECTS['new-sockets']}"
    return describe_handling(identity).takes_effect


def _kind_section(identity: str, value: str) -> list[str]:
    one = describe_handling(identity, value=value)
    line = f"with the line `{one.line}`" if one.line else "by what sets it"
    kept = f"in `{one.persists_in}`, {line}" if one.persists_in else f"nowhere: {one.persist_note}"
    lines = [
        f"{kind_words(parse_tunable(identity))} For example `{identity}` = `{value}`:\n",
        f"- read by `{one.read_by}`",
        f"- set by {one.setting('`')}",
        f"- takes effect {effect_words(identity)}" + (f"; {one.risk}" if one.risk else ""),
        f"- persists {kept}",
    ]
    more = more_words(parse_tunable(identity))
    return section(f"`{form_words(parse_tunable(identity))}`", [*lines, *([f"\n{more}"] if more else [])])


def rules_page() -> str:
    rows = rule_table()
    topics = dict.fromkeys(row.rule.id.partition(".")[0] for row in rows)
    parts = [
        GENERATED,
        "# Rules\n",
        f"A scan judges a host by {len(rows)} rules. Each fires on hosts that need it and is silent on hosts that look"
        " alike and do not: the tests hold both, and what this page says about a rule is what it"
        " does on them. `advisor explain ID` says why, when it helps and when it hurts.\n",
        *RULE_WORDS,
        "",
        "*Not seen live*: no host with what it judges was at hand. It is tested with hosts that are built from the"
        " structures of its sources.\n",
        *(line for topic in topics for line in section(topic, _rules(topic, rows))),
    ]
    return "\n".join(parts)


RULE_WORDS = (
    "| fires on | means |",
    "| --- | --- |",
    "| a counter | the kernel or the device has counted that it is needed; without the count it is silent, or says that"
    " it is a matter of intent |",
    "| what is seen | a state, a limit or a mismatch of this host |",
    "| a declared workload | `--workload` says that the host is for something that needs it |",
    "| a matter of intent | nothing shows that it is needed: the owner decides; never more than information |",
)


def _rules(topic: str, rows: Sequence[Row]) -> list[str]:
    """A table of four columns, and below it the sources and profiles by rule."""
    own = [row for row in rows if row.rule.id.partition(".")[0] == topic]
    sources = dict.fromkeys(source for row in own for source in row.rule.sources)
    numbers = {source: str(number) for number, source in enumerate(sources, 1)}
    return [
        *table(("rule", "fires when", "severity, fires on", "sources"), [_rule(row, numbers) for row in own]),
        "",
        "Sources:",
        "",
        *(f"{number}. {source}" for source, number in numbers.items()),
    ]


def _rule(row: Row, numbers: Mapping[str, str]) -> tuple[str, ...]:
    linked = [f"fixed by [{name}](profiles/{name}.md)" for name in profiles(row)]
    disputed = ["[disputed](contradictions.md)"] if row.rule.contradictions else []
    severity = " to ".join(dict.fromkeys(severities(row)[:1] + severities(row)[-1:]))
    return (
        f"`{row.rule.id}`",
        "; ".join((row.rule.title, *linked, *([] if row.rule.seen_live else ["*not seen live*"]))),
        f"{severity}: {', '.join(grounds(row))}",
        ", ".join((*(numbers[source] for source in row.rule.sources), *disputed)),
    )


def cases_page(system: str) -> str:
    """What advisor answers on hosts built from an article, computed now; the tests hold every row."""
    rows = [_case(case) for case in cases(system)]
    parts = [
        GENERATED,
        f"# {SYSTEMS[system]}: case, article, advisor\n",
        "Each row is a host built from the article's text, with the answer of this version. "
        f"[What the system needs, and what is not known]({system}.md). "
        "S000 and S001: InfoScale. S002: IRIS and EBS. S003: iSCSI. S004: BeeGFS.\n",
        *table(("case", "what the article says", "command", "what advisor says"), rows),
        "",
    ]
    return "\n".join(parts)


def _case(case: Case) -> tuple[str, ...]:
    answer = case.ask.answer(case.host()).replace("\n", " ")
    return (case.case, case.article, f"`{case.ask.command}`", _shown(answer, case.says))


def _shown(answer: str, says: Iterable[str]) -> str:
    """The answer; of a long one the parts that the case is about, and how many others there are."""
    parts = answer.split("; ")
    if len(answer) <= LONG_ANSWER or len(parts) < 2:
        return answer
    kept = [part for part in parts if any(fragment in part for fragment in says)]
    spanning = [fragment for fragment in says if not any(fragment in part for part in parts)]
    if spanning or not kept:
        return answer
    others = len(parts) - len(kept)
    return "; ".join(kept) + (f" (and {others} more)" if others else "")


def contradictions_page() -> str:
    parts = [
        GENERATED,
        "# Where the sources contradict each other\n",
        "No source is taken for the truth. Where they differ, `advisor explain ID` shows every side, and a finding on"
        " which it bears carries them, also in `--json` (`contradictions`). `advisor explain contradictions` lists"
        " all.\n",
        *(line for one in CONTRADICTIONS for line in section(one.topic, _contradiction(one))),
    ]
    return "\n".join(parts)


def _contradiction(one: Contradiction) -> list[str]:
    rules = [f"`{rule.id}`" for rule in RULES if one.id in rule.contradictions]
    return [
        f"`{one.id}`\n",
        *table(("says", "source"), [(side.says, side.source) for side in one.sides]),
        f"\n**What is done about it:** {one.what_we_do}",
        *([f"\nShown by {', '.join(rules)}."] if rules else []),
    ]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
