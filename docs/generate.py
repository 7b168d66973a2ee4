"""Writes docs/profiles/*.md, docs/tunables.md, docs/rules.md, docs/contradictions.md, docs/systems/*-cases.md,
docs/commands.md and docs/picture.svg from what they describe.

python docs/generate.py            writes what has changed
python docs/generate.py --check    writes nothing; exit code 1 if a page is stale
"""

from __future__ import annotations

import importlib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from pkgutil import walk_packages

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from advisor import rules  # noqa: E402
from advisor.facts.settings import CAUTIONS  # noqa: E402
from advisor.host.origin import read_sections  # noqa: E402
from advisor.planning.devices import only_words  # noqa: E402
from advisor.profiles.profile import Profile, Wanted, load, profile_paths, shipped_directory  # noqa: E402
from advisor.report.explain import Handling, describe_handling, form_words, kind_words, list_examples, more_words  # noqa: E402
from advisor.report.profile_words import GUARDS, TOGGLES, fill_template, parameter_words, proof_words, wanted_value  # noqa: E402
from advisor.report.terms import EFFECTS  # noqa: E402
from advisor.rules.judged import RULES  # noqa: E402
from advisor.rules.rule import Contradiction, all_contradictions  # noqa: E402
from advisor.tunables import parse_tunable  # noqa: E402
from docs.command_page import MORE, command_page  # noqa: E402
from tests.articles.table import SYSTEMS, Case, cases  # noqa: E402
from tests.rules.table import COUNTER, INTENT, SEEN, WORKLOAD, Row, grounds, profiles, severities  # noqa: E402
from tests.rules.table import table as rule_table  # noqa: E402

GENERATED = "<!-- Written by docs/generate.py: change the source and run it again. -->\n"

SHORT_ANSWER = 60
"""Characters of an answer that a table always shows whole."""

SHORT_LINE = 80
"""Characters of a line of a file that the page of tunables shows; `advisor explain` prints every line."""

VERDICT = r"^[\w.-]+(?:: [a-z]+ \([a-z-]+\)| \([a-z]+\))"
"""The beginning of an answer of recommend or scan: the profile and whether it fits, the rule and its severity."""

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
    found[DOCS / "advice.md"] = advice_page()
    found[DOCS / "rules.md"] = rules_page()
    found[DOCS / "commands.md"] = command_page(GENERATED, {page: heading(DOCS / page, found) for page in MORE.values()})
    found.update({DOCS / "systems" / f"{system}-cases.md": cases_page(system) for system in SYSTEMS})
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
    """Pages that differ or are missing, and those of profiles that are no more."""
    changed = [path for path, text in wanted.items() if not path.is_file() or path.read_text("utf-8") != text]
    return sorted((*changed, *(path for path in (DOCS / "profiles").glob("*.md") if path not in wanted)))


def write(stale: Iterable[Path], wanted: Mapping[Path, str]) -> None:
    for path in stale:
        if path in wanted:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted[path], "utf-8")
        else:
            path.unlink()


def profiles_page(profiles: Sequence[Profile]) -> str:
    rows = [(f"[{one.name}]({one.name}.md)", one.title, one.helps_when) for one in profiles]
    return "\n".join(
        (
            GENERATED,
            "# Profiles\n",
            "Each profile is a file of wanted values with conditions, reasons and sources ([the format]"
            "(../profile-format.md)). `advisor plan NAME` shows the changes on a host and needs no root; `advisor apply"
            " NAME` makes them in one transaction, `advisor verify` checks them, `advisor rollback` restores the values"
            " of before.\n",
            *table(("profile", "title", "helps when"), rows),
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
        *section("Values", _values(profile)),
        *section("Parameters", _parameters(profile)),
        *section("Where it does not apply", _limits(profile)),
        *section("Proof", _proof(profile)),
        *section("Notes", [profile.notes] if profile.notes else []),
        *section("Sources", [f"{number}. {source}" for number, source in enumerate(_sources(profile), 1)]),
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


def _values(profile: Profile) -> list[str]:
    parents = _parents(profile)
    sources = {source: number for number, source in enumerate(_sources(profile), 1)}
    lines = []
    inherited: dict[str, list[str]] = {}
    for wanted in profile.tunables:
        handling = handled(profile, wanted)
        bounds = only_words(wanted.only)
        each = f" for each of the {wanted.for_each}{bounds and f' ({bounds})'}" if wanted.for_each else ""
        note = "" if handling.persist_note == "unknown" else handling.persist_note
        kept = "" if handling.persists_in or not note else f" (not persisted: {note})"
        later = (
            "" if handling.takes_effect in (EFFECTS["now"], EFFECTS["new-sockets"]) else f", {handling.takes_effect}"
        )
        value = f"`{wanted.tunable}`{each}: **{wanted_value(profile, wanted)}**{later}{kept}"
        parent = next((parent for parent in parents if any(_same(wanted, other) for other in parent.tunables)), None)
        if parent:
            inherited.setdefault(parent.name, []).append(value)
        else:
            cited = "; ".join(f"{sources[_base(source)]}{_detail(source)}" for source in wanted.sources)
            hurts = "" if wanted.sense == "keep" else f"  \n  Hurts when: {wanted.hurts_when}"
            lines.append(f"- {value}. {wanted.why}{hurts} [{cited}]")
    return [*(f"- As in [{name}]({name}.md): {'; '.join(values)}." for name, values in inherited.items()), *lines]


def _parents(profile: Profile) -> list[Profile]:
    paths = profile_paths(local=shipped_directory())
    return [load(name, paths) for name in profile.inherits]


def _same(one: Wanted, other: Wanted) -> bool:
    return (one.tunable, one.why, one.hurts_when) == (other.tunable, other.why, other.hurts_when)


def _base(source: str) -> str:
    """Return a source without its detail; an address is part of the source."""
    base, _, detail = source.partition(": ")
    return source if detail.startswith("http") else base


def _detail(source: str) -> str:
    return source.removeprefix(_base(source))


def _sources(profile: Profile) -> list[str]:
    """Return the sources without what each says: of values first, then those that only the profile names."""
    parents = _parents(profile)
    own = [
        one for one in profile.tunables if not any(_same(one, other) for parent in parents for other in parent.tunables)
    ]
    named = dict.fromkeys(_base(source) for wanted in own for source in wanted.sources)
    return [*named, *(source for source in profile.sources if _base(source) not in named)]


def _parameters(profile: Profile) -> list[str]:
    inherited: dict[str, list[str]] = {}
    rows = []
    for name, parameter in profile.parameters.items():
        parent = next((parent for parent in _parents(profile) if parent.parameters.get(name) == parameter), None)
        if parent:
            inherited.setdefault(parent.name, []).append(f"`{name}`")
        else:
            rows.append((f"`{name}`", parameter_words(parameter), parameter.about))
    lines = [f"As in [{parent}]({parent}.md#parameters): {', '.join(names)}." for parent, names in inherited.items()]
    return [*lines, *([""] if lines and rows else []), *(table(("`--set`", "takes", "meaning"), rows) if rows else [])]


def _limits(profile: Profile) -> list[str]:
    conditions = [f"- {condition.reason[0].upper()}{condition.reason[1:]}." for condition in profile.conditions]
    skipped: dict[str, dict[str, None]] = {}
    for wanted in profile.tunables:
        if wanted.condition is not None:
            skipped.setdefault(wanted.condition.reason, {})[f"`{wanted.tunable}`"] = None
    conditions += [f"- {', '.join(names)}: {reason}." for reason, names in skipped.items()]
    return conditions + [f"- {GUARDS[guard]}" for guard in profile.guards]


def _proof(profile: Profile) -> list[str]:
    if profile.proof is None:
        return ["No workload is declared: name one with `advisor prove --workload`."]
    claims = ", ".join(f"`{name}`" for name in profile.proof.claims)
    words = proof_words(profile.proof).removeprefix(TOGGLES["T0"]).strip()
    return [f"Measured with {claims}. {profile.proof.where} {words}".strip()]


def tunables_page() -> str:
    kinds = list_examples()
    parts = [
        GENERATED,
        "# Tunables\n",
        "A tunable is one thing that can be set. Its id is stable: plans, journals and rollback scripts name it so. It"
        " is read back after it is set; what cannot be read back cannot be planned. `advisor explain ID` describes any"
        " one.\n",
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


def effect_words(identity: str) -> str:
    """When values of this kind take effect; of sysctls, those of sockets differ from the rest."""
    if identity.startswith("sysctl:"):
        return f"{EFFECTS['now']}; socket buffer sizes {EFFECTS['new-sockets']}"
    return describe_handling(identity).takes_effect


def _kind_section(identity: str, value: str) -> list[str]:
    handling = describe_handling(identity, value=value)
    line = f" as `{handling.line}`" if handling.line and len(handling.line) <= SHORT_LINE else ""
    place = f"`{handling.persists_in}`{line}" if handling.persists_in else f"no file: {handling.persist_note}"
    effect = effect_words(identity)
    later = "" if effect == EFFECTS["now"] else f" It takes effect {effect}."
    risk = f" Risk: {handling.risk}." if handling.risk else ""
    more = more_words(parse_tunable(identity))
    return section(
        f"`{form_words(parse_tunable(identity))}`",
        [
            f"{kind_words(parse_tunable(identity))}{later}{risk}{f' {more}' if more else ''}\n",
            f"- `{identity}` = `{value}`: read by `{handling.read_by}`, set by {handling.setting('`')}",
            f"- kept in {place}",
        ],
    )


def rules_page() -> str:
    rows = rule_table()
    topics = dict.fromkeys(row.rule.id.partition(".")[0] for row in rows)
    names = source_names()
    cited = {names[source]: source for row in rows for source in row.rule.sources}
    parts = [
        GENERATED,
        "# Rules\n",
        f"A scan judges a host by {len(rows)} rules. For each rule the tests have hosts on which it fires, and similar"
        " hosts on which it is silent; the columns report its answers there. `advisor explain ID` says why, when it"
        " helps and when it hurts. Fires on:\n",
        *RULE_WORDS,
        "",
        "A star marks a rule that no real host has shown yet: its tests are hosts built from its sources. [Disputed]"
        "(contradictions.md) marks sources that differ. The [sources](#sources) are listed last.\n",
        *(line for topic in topics for line in section(topic, _rules(topic, rows, names))),
        *section("Sources", [f"- {name}: {cited[name]}" for name in sorted(cited)]),
    ]
    return "\n".join(parts)


RULE_WORDS = (
    "- *counter*: the kernel or the device counted the need; without the count it is silent or a matter of intent",
    "- *seen*: a state, a limit or a mismatch of this host",
    "- *workload*: `--workload` declares a need for it",
    "- *intent*: nothing shows the need, so the owner decides; information at most",
)

GROUND_WORDS = {COUNTER: "counter", SEEN: "seen", WORKLOAD: "workload", INTENT: "intent"}


def source_names() -> dict[str, str]:
    """The name of each source that a rule cites: that of its constant, so that it never changes with other sources."""
    modules = [importlib.import_module(found.name) for found in walk_packages(rules.__path__, "advisor.rules.")]
    return {
        value: name.strip("_").lower().replace("_", "-")
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, str) and name.isupper()
    }


def _rules(topic: str, rows: Sequence[Row], names: Mapping[str, str]) -> list[str]:
    own = [row for row in rows if row.rule.id.partition(".")[0] == topic]
    return table(("rule", "fires when", "severity, fires on", "sources"), [_rule(row, names) for row in own])


def _rule(row: Row, names: Mapping[str, str]) -> tuple[str, ...]:
    fixes = ", ".join(f"[{name}](profiles/{name}.md)" for name in profiles(row))
    disputed = ["[disputed](contradictions.md)"] if row.rule.contradictions else []
    severity = "–".join(dict.fromkeys(severities(row)[:1] + severities(row)[-1:]))
    return (
        f"`{row.rule.id}`",
        f"{row.rule.title}{'' if row.rule.seen_live else ' *'}{f'; fix: {fixes}' if fixes else ''}",
        f"{severity}: {', '.join(GROUND_WORDS[ground] for ground in grounds(row))}",
        ", ".join((*(names[source] for source in row.rule.sources), *disputed)),
    )


def advice_page() -> str:
    """The page of advice: its written part as it is, then the tables of all that harms."""
    written = (DOCS / "advice.md").read_text("utf-8").partition(f"| {ADVICE_HEAD[0]} |")[0]
    cautions = [
        (", ".join(f"`{key}`" for key in one.keys), one.when, f"`{one.id}`", one.instead.partition(";")[0])
        for one in CAUTIONS
    ]
    others = [
        (f"`{name}`", texts["what"], texts["instead"].partition(";")[0])
        for name, texts in read_texts("file-advice.ini")
    ]
    tables = (table(ADVICE_HEAD, cautions), table(("rule", "lines in other files", "instead"), others))
    return written + "\n\n".join("\n".join(lines) for lines in tables) + "\n"


ADVICE_HEAD = ("kernel parameters", "values", "rule", "instead")


def read_texts(name: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The sections of a table, each with its texts by name."""
    return ((head, dict(pairs)) for head, pairs in read_sections(name))


def cases_page(system: str) -> str:
    """Return what advisor answers on hosts built from an article, computed now; the tests hold every row."""
    rows = [_case(case) for case in cases(system)]
    # The usual source of the page is named once.
    (usual, _), *_ = Counter(row[1].partition(": ")[0] for row in rows).most_common(1)
    rows = [(case, article.removeprefix(f"{usual}: "), command, answer) for case, article, command, answer in rows]
    parts = [
        GENERATED,
        f"# {SYSTEMS[system]}: case, article, advisor\n",
        "Each row is a host built from the article's text, with the answer of this version, of which … leaves out the"
        " words that the case is not about. ″ repeats the cell above."
        f" The article is {usual} unless named (S000 and S001:"
        f" InfoScale; S002: IRIS and EBS; S003: iSCSI; S004: BeeGFS). [Rules, changes and unknowns]({system}.md).\n",
        *table(("case", "article", "`advisor` …", "answer"), _with_dittos(rows)),
        "",
    ]
    return "\n".join(parts)


def _case(case: Case) -> tuple[str, ...]:
    answer = case.ask.answer(case.host()).replace("\n", " ")
    return (case.case, case.article, f"`{case.ask.command.removeprefix('advisor ')}`", _shown(answer, case.says))


def _with_dittos(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    above = [("",) * 4, *rows[:-1]]
    return [
        tuple("″" if cell == upper else cell for cell, upper in zip(row, over, strict=True))
        for row, over in zip(rows, above, strict=True)
    ]


def _shown(answer: str, says: Iterable[str]) -> str:
    """Return the words of the answer that the case is about, after its verdict."""
    wanted = [VERDICT, *(rf"\S*{re.escape(part)}\S*" for part in says)]
    spans = [match.span() for pattern in wanted for match in [re.search(pattern, answer)] if match]
    if len(answer) <= SHORT_ANSWER or not spans:
        return answer
    covered = {at for start, end in spans for at in range(start, end)}
    covered |= {at for at, letter in enumerate(answer) if letter == " " and {at - 1, at + 1} <= covered}
    words = "".join(letter if at in covered else "\0" for at, letter in enumerate(answer))
    return re.sub(r"\0+", " … ", re.sub(r"[.,;:]?\0*$", "", words)).strip()


def contradictions_page() -> str:
    parts = [
        GENERATED,
        "# Where the sources contradict each other\n",
        "No source is taken for the truth. Where they differ, `advisor explain ID` shows every side, and a finding on"
        " which it bears carries them, also in `--json` (`contradictions`). `advisor explain contradictions` lists"
        " all.\n",
        *(line for one in all_contradictions().values() for line in section(one.topic, _contradiction(one))),
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
