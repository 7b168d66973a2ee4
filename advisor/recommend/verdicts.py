"""Settings of a pasted text, each judged on a host by what facts, records of settings, writers and rules say of it.

No key is known here: a caution belongs into the record of its setting, a need into a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args

import msgspec

from advisor.errors import AdvisorError, UsageError
from advisor.facts.host_facts import Facts
from advisor.facts.settings import find_setting
from advisor.facts.settings.site_settings import SiteSetting
from advisor.facts.settings.sysctl import is_pattern
from advisor.facts.settings.value import to_canonical
from advisor.facts.writers import next_boot, overriding_write
from advisor.facts.writers.devices import module_of
from advisor.host import Host, Missing, observe
from advisor.host.would_be import FIXED
from advisor.importers.pasted.forms import PassedOver, Pasted, PastedSetting
from advisor.importers.pasted.on_host import on_this_host
from advisor.importers.records import lowered_fields, shorten_text
from advisor.planner import plan_profiles
from advisor.planning.comparison import combine_values
from advisor.planning.compute import lacks_right
from advisor.planning.records import Foreseen, Plan, Skipped
from advisor.recommend.judgement import recommend
from advisor.recommend.records import Outlook
from advisor.rules.rule import REGISTERED, SIGNS, Evidence, Finding, PlanProfile, SetTunable
from advisor.rules.settings import bad_advice_files
from advisor.rules.settings.sysctls import Judged, find_misplaced, judge_value, machine_of
from advisor.rules.workload import DeclaredWorkload
from advisor.shell.quote import trial_command
from advisor.tunables import parse_tunable
from advisor.tunables.catalogue import find_harm, namespace_of

Verdict = Literal["harmful", "helps", "overridden", "owned", "no-effect", "lowers", "no-evidence", "unknown", "set"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""The most important first."""
_OF_FILES = frozenset({"sysctl.overridden", "sysctl.differs-at-boot"})
"""Findings that a plan makes by its file: they say nothing of the value."""
_NO_RECORD = "advisor has no record of this key"


class JudgedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of a text on this host. ``why`` says what the verdict rests on; ``instead`` what to do, if anything."""

    file: str
    line: int
    text: str
    tunable: str | None
    wanted: str | None
    live: str | None = None
    next_boot: str | None = None
    verdict: Verdict = "unknown"
    why: str = ""
    evidence: Evidence = {}
    sources: tuple[str, ...] = ()
    instead: str | None = None
    apply: str | None = None
    """What asks ``advisor apply`` for it: of more than a finding asks for, what it asks for."""

    @property
    def is_sysctl(self) -> bool:
        """Whether it is a kernel parameter."""
        return (self.tunable or "").startswith("sysctl:")


class JudgedText(msgspec.Struct, frozen=True):
    """``apply`` are the words for ``advisor apply`` of what helps and is not there yet, ``prove`` the command that
    measures it; ``passed_over`` lines of the text are no settings, ``alike`` those of them that look like one."""

    lines: tuple[JudgedLine, ...]
    passed_over: int
    alike: tuple[PassedOver, ...] = ()
    apply: tuple[str, ...] = ()
    prove: str | None = None


class _Want(msgspec.Struct, frozen=True):
    """What a finding or a profile that fits asks of a tunable."""

    value: str
    why: str
    evidence: Evidence
    sources: tuple[str, ...]


def judge_texts(
    texts: Iterable[Pasted],
    host: Host,
    facts: Facts,
    findings: Sequence[Finding],
    outlooks: Sequence[Outlook] = (),
    workload: DeclaredWorkload | None = None,
) -> JudgedText:
    """Return the settings of all texts, judged as if they were applied one after the other. Changes nothing.

    ``findings`` are those of a scan; ``outlooks`` the plans of the profiles of this host's library.
    """
    given = list(texts)
    settings = [one for text in given for one in text.settings]
    expanded = [(one, made) for one in settings for made in on_this_host(one, host, facts)]
    later = _repeated(expanded)
    judge = _Judge(host, facts, _wants(facts, findings, outlooks, workload))
    judged = [judge.judge(made, later.get(place)) for place, (_, made) in enumerate(expanded)]
    notes = [made.note for _, made in expanded]
    planned = _in_order(judge.plan(judged), facts)
    lines = [_noted(line, note) for line, note in zip(judge.check(planned), notes, strict=True)]
    words = tuple(dict.fromkeys(one.apply for one in lines if one.apply))
    prove = trial_command(*words) if words else None
    alike = tuple(one for text in given for one in text.alike)
    return JudgedText(tuple(lines), sum(text.passed_over for text in given), alike, words, prove)


def _in_order(lines: list[JudgedLine], facts: Facts) -> list[JudgedLine]:
    """The lines, of which those are harmful that do not belong together, on a host that does not show its own."""
    wanted = {one.tunable or "": one.wanted for one in lines if one.wanted and one.verdict != "overridden"}
    keys = {name.removeprefix("sysctl:"): value for name, value in wanted.items() if name.startswith("sysctl:")}
    misplaced = find_misplaced(msgspec.structs.replace(facts, sysctl={**facts.sysctl, **keys}))
    said = {
        f"sysctl:{one.key}": f"{text}: {low.otherwise}"
        for text, (low, high) in misplaced.items()
        for one in (low, high)
    }
    return [
        _as(one, "harmful", said[one.tunable]) if one.verdict == "unknown" and one.tunable in said else one
        for one in lines
    ]


def _noted(line: JudgedLine, note: str) -> JudgedLine:
    """The line with what is to be known of the text besides the verdict: that it names another device."""
    is_said = not note or note in line.why
    return line if is_said else msgspec.structs.replace(line, why=f"{note}; {line.why}" if line.why else note)


def _repeated(expanded: Sequence[tuple[PastedSetting, PastedSetting]]) -> Mapping[int, tuple[str, bool]]:
    """Why a setting of the text is not the one that counts, by its place, and whether that is for its other unit: of a
    key the last line does, and one that names it before a pattern (sysctl.d(5)); of two units the last that is not
    0."""
    last: dict[str, int] = {}
    for place, (one, made) in enumerate(expanded):
        if made.tunable and not made.is_container:
            before = expanded[last[made.tunable]][0] if made.tunable in last else one
            if one.tunable == made.tunable or before.tunable != made.tunable:
                last[made.tunable] = place
    found: dict[int, tuple[str, bool]] = {}
    for place, (_, made) in enumerate(expanded):
        if not made.tunable or made.is_container:
            continue
        winner = expanded[last[made.tunable]][1]
        record = find_setting(made.tunable.removeprefix("sysctl:"))
        twin = f"sysctl:{record.twin}" if record and record.twin else ""
        other = expanded[last[twin]][1] if twin in last else None
        if winner.wanted != made.wanted:
            found[place] = (f"{_place(winner, made)} sets it again", False)
        elif other and other.wanted != "0" and (last[twin] > place or made.wanted == "0"):
            why = f"{_place(other, made)} sets {twin.removeprefix('sysctl:')}, and the kernel then zeroes this one"
            found[place] = (why, True)
    return found


def _place(one: PastedSetting, beside: PastedSetting) -> str:
    return f"line {one.line} of {'the same text' if one.file == beside.file else one.file}"


def _wants(
    facts: Facts, findings: Sequence[Finding], outlooks: Sequence[Outlook], workload: DeclaredWorkload | None
) -> Mapping[str, Sequence[_Want]]:
    """What findings of this host, and profiles that fit it, ask of each tunable."""
    found: dict[str, list[_Want]] = {}
    plans = {one.name: one.plan for one in outlooks if one.plan}
    for finding in findings:
        if (finding.intent and workload is None) or finding.id in _OF_FILES:
            continue
        why = f"{finding.title.rstrip('.')} ({finding.id})"
        for tunable, value in _asked_by(finding, plans):
            found.setdefault(tunable, []).append(_Want(value, why, finding.evidence, finding.sources))
    for chosen in recommend(facts, workload, outlooks) if workload else ():
        plan = plans.get(chosen.profile)
        for change in plan.changes if plan and chosen.fits == "yes" and chosen.standing == "workload" else ():
            why = f"the declared workload is one for the profile {chosen.profile}"
            found.setdefault(change.tunable, []).append(_Want(change.after, why, {}, change.sources))
    return found


def _asked_by(finding: Finding, plans: Mapping[str, Plan]) -> Iterator[tuple[str, str]]:
    """The tunables that a finding is about, with the values that its remedy gives them."""
    said = f"{finding.title} {finding.why} {finding.evidence}".lower()
    for step in finding.remedy:
        if isinstance(step, SetTunable):
            yield step.tunable, step.value
        elif isinstance(step, PlanProfile):
            yield from ((part.tunable, part.value) for part in step.only)
            plan = None if step.only else plans.get(step.profile)
            for change in plan.changes if plan else ():
                # Of a whole profile that which the finding names: the device and the attribute, the key, or the number.
                _, device, leaf = (*change.tunable.split(":"), "")[:3]
                name = (leaf or device).rpartition(".")[2]
                is_named = name.lower() in said and (not leaf or device.lower() in said)
                if is_named or (len(change.after) > 4 and change.after in said):
                    yield change.tunable, change.after


class _Judge:
    """What is asked about each setting: the host, its facts, and what its findings want."""

    def __init__(self, host: Host, facts: Facts, wants: Mapping[str, Sequence[_Want]]) -> None:
        self._host, self._facts, self._wants = host, facts, wants

    def judge(self, one: PastedSetting, later: tuple[str, bool] | None) -> JudgedLine:
        """The verdict on one setting, before a plan of all that is left."""
        line = JudgedLine(
            file=one.file, line=one.line, text=one.text, tunable=one.tunable, wanted=one.wanted, why=one.note
        )
        if one.outcome != "taken":
            refused = "refused: " if one.outcome == "refused" else ""
            return _as(line, "no-effect" if one.outcome == "ignored" else "harmful", f"{refused}{one.note}")
        if one.tunable is None or one.wanted is None:
            return line
        try:
            known = parse_tunable(one.tunable)
        except UsageError as error:
            # A pattern that nothing of this host fits.
            fits = f"nothing here fits {one.tunable}" if is_pattern(one.tunable) else error.message
            if not self._host.is_live and is_pattern(one.tunable):
                fits = _beside_default(one.tunable, one.wanted, "not in this capture")
            is_live = self._host.is_live or not one.tunable.startswith(("sysctl:", "sysfs:"))
            return _as(line, "no-effect" if is_live and is_pattern(one.tunable) else "unknown", one.note or fits)
        key = one.tunable.removeprefix("sysctl:") if one.tunable.startswith("sysctl:") else ""
        seen = observe(self._host, known.probe)
        live = seen if isinstance(seen, str) else None
        value = to_canonical(key, one.wanted) if key else one.wanted
        value = combine_values(live, value, one.sense) if live is not None and isinstance(one.sense, tuple) else value
        boot = next_boot(self._facts, one.tunable)
        line = msgspec.structs.replace(line, wanted=value, live=live, next_boot=boot)
        is_so = live is not None and live in (value, combine_values(live, value, one.sense))
        if later is not None and not (is_so and later[1]):
            return _as(line, "overridden", later[0])
        if gone := self._gone(line, key, seen):
            return gone
        if not is_so and (wrong := known.check_value(value)):
            return _as(line, "harmful", f"refused: {shorten_text(one.wanted, 60)} {wrong}")
        if misfit := known.explain_misfit(self._host, value):
            return _refused(line, misfit)
        bad = self._caution(line, key, value)
        if bad and not (is_so and bad.verdict == "no-evidence"):
            return bad
        if one.is_container:
            return _of_container(line)
        if isinstance(seen, Missing):
            return _as(line, "unknown", _beside_default(one.tunable, value, self._absent(key, seen)))
        if is_so:
            # Live it may be more than is asked for, where more is as good.
            so = "already so" if live == value else f"already {live}"
            return _as(line, "set", so if boot in (None, value, live) else f"{so}, but the next boot sets {boot}")
        return self._by_need(line, key, live or "", value, one)

    def _absent(self, key: str, seen: Missing) -> str:
        """Why a value is not there: a capture may lack it, a link may not be here, a module may not be loaded."""
        if not seen.is_absent or (self._host.is_live and not key):
            return seen.why
        device = re.fullmatch(r"net\.ipv[46]\.(?:conf|neigh)\.([^.]+)\.\w+", key)
        name = device[1].replace("/", ".") if device else ""
        if name and name not in ("all", "default", *(link.name for link in self._facts.links)):
            return f"this host has no link {name}"
        if not self._host.is_live:
            return "not in this capture"
        module = module_of(key)
        if module or not key.startswith("net."):
            return f"the module {module} brings it, and is not loaded" if module else f"this kernel has no {key}"
        return "a module that has it may not be loaded, or the host's own network namespace alone has it"

    def _gone(self, line: JudgedLine, key: str, seen: str | Missing) -> JudgedLine | None:
        record = find_setting(key or line.tunable or "")
        if record is not None and record.is_gone(machine_of(self._facts).kernel):
            return _as(line, "no-effect", record.went)
        if not isinstance(seen, Missing) or not seen.is_absent:
            return None
        dotted = next((link.name for link in self._facts.links if "." in link.name and f".{link.name}." in key), None)
        if dotted:
            return _as(line, "no-effect", f"names no file: write {key.replace(dotted, dotted.replace('.', '/'))}")
        is_file = key or (line.tunable or "").startswith(("link:", "block:", "md:", "sysfs:", "thp:"))
        is_brought = record is not None and (key.startswith("net.") or module_of(key))
        if (key and is_brought) or not is_file or not self._host.is_live:
            return None
        return _as(line, "no-effect", f"this kernel has no {key}" if key else f"not on this host: {seen.why}")

    def _caution(self, line: JudgedLine, key: str, value: str) -> JudgedLine | None:
        """What a record or a rule says against the value."""
        for said in judge_value(self._facts, key, value) if key else self._found_in_files(line):
            record = find_setting(key) if key else None
            is_gone = isinstance(said, Judged) and said.gone
            better = said.better if isinstance(said, Judged) else None
            is_less = record is not None and record.grows and lowered_fields(line.live or better or "", value)
            verdict: Verdict = "no-effect" if is_gone else "lowers" if is_less else "harmful"
            is_mild = said.severity == "info" and not is_gone and not is_less
            made = _as(line, "no-evidence" if is_mild else verdict, f"{said.title}: {said.why}")
            instead = said.instead if isinstance(said, Judged) else said.fix
            return msgspec.structs.replace(
                made, evidence={"rule": said.id}, sources=said.sources, instead=instead or None
            )
        return None

    def _found_in_files(self, line: JudgedLine) -> Iterator[Finding]:
        """What the rules on files that set the same find in the line."""
        if asked := _as_site_setting(line):
            facts = msgspec.structs.replace(self._facts, site_settings=(asked,))
            for rule in REGISTERED.values():
                yield from rule(facts, None) if rule.module == bad_advice_files.__name__ else ()

    def _by_need(self, line: JudgedLine, key: str, live: str, value: str, one: PastedSetting) -> JudgedLine:
        for want in self._wants.get(line.tunable or "", ()):
            if _is_toward(live, value, want.value):
                why = f"{want.why}; it asks for {want.value}" if want.value != value else want.why
                is_enough = _is_beyond(live, value, want.value)
                return msgspec.structs.replace(
                    _as(line, "helps", why),
                    apply=_word(line.tunable or "", want.value if is_enough else value),
                    evidence=want.evidence,
                    sources=want.sources,
                    instead=f"{want.value} is enough" if is_enough else None,
                )
        record = find_setting(key or line.tunable or "")
        if key and record is None:
            return _as(line, "unknown", _NO_RECORD)
        note = f"{one.note}; " if one.note else ""
        lowered = ", ".join(f"{was} becomes {now}" for was, now in lowered_fields(live, value))
        known = record.lower_hurts if record and lowered else record.higher_hurts if record else ""
        known = record.hurts_of.get(value, known) if record else ""
        other = record.harm_of(value, live) if record else find_harm(line.tunable or "", value) or ""
        # What a key's record does not say of this direction is no harm of it.
        harm = known if key else known or other
        is_of_twin = record is not None and record.twin and "0" in (live, value)
        if is_of_twin or (record and record.is_ample(value, machine_of(self._facts))):
            # Its twin holds the limit, so this number says nothing of more or less; or all memory fits below it.
            lowered = harm = ""
        if lowered and (not key or record is None or record.grows) and not lowered_fields(value, live):
            return _as(line, "lowers", f"{note}{lowered}. {harm}".rstrip(" ."))
        shown = f" (what would: {record.shown_by})" if record and record.shown_by else ""
        asks = "nothing on this host asks for it"
        if record and record.guards:
            is_weaker = record.is_weaker(value, live)
            asks = f"it protects less, and {asks}" if is_weaker else "it protects, and no counter asks for that"
        also = f"; {lowered}" if lowered and " " in value else ""
        return _as(line, "no-evidence", f"{note}{asks}{shown}{also}. {harm}".rstrip(" ."))

    def plan(self, lines: Sequence[JudgedLine]) -> list[JudgedLine]:
        """The lines with what a plan of all that is left says of each: who overrides it, what refuses it."""
        left = {one.tunable: one for one in lines if one.tunable and _is_planned(one)}
        outcomes = self._planned(left)
        return [
            outcomes.get(one.tunable or "", one) if left.get(one.tunable or "") is one else self._also_set(one)
            for one in lines
        ]

    def _also_set(self, line: JudgedLine) -> JudgedLine:
        """A harmful line with the program of this host that sets the value again."""
        write = overriding_write(self._facts, line.tunable or "", line.wanted or "", None)
        if write is None or not write.is_program or line.verdict != "harmful" or write.value == line.wanted:
            return line
        again = f"{write.place} sets {write.value or 'it'} {write.acts}; {write.change}"
        return msgspec.structs.replace(line, why=f"{line.why.rstrip('.')}. {again}")

    def _planned(self, left: dict[str, JudgedLine]) -> dict[str, JudgedLine]:
        if not left:
            return {}
        words = [f"{name}={one.wanted}" for name, one in left.items()]
        try:
            made = plan_profiles(self._host, words, {}, facts=self._facts)
        except AdvisorError as error:
            # A value is a mistake here, or a budget does not hold: the rest is planned without it.
            if len(left) == 1:
                return {name: _refused(one, error.message) for name, one in left.items()}
            names = list(left)
            wrong = [name for name in names if error.message.startswith(f"{name}:")] or names[: len(names) // 2]
            parts = (wrong, [name for name in names if name not in wrong])
            return {
                name: one for part in parts for name, one in self._planned({each: left[each] for each in part}).items()
            }
        skipped = {one.tunable: one for one in made.skipped}
        blocked = {name for name in left if name in skipped and skipped[name].state in ("blocked", "overridden")}
        if blocked and len(blocked) < len(left):
            # What is blocked hides what the rest would do.
            rest = {name: one for name, one in left.items() if name not in blocked}
            outcomes = {name: self._by_writer(_outcome(left[name], skipped[name]), None) for name in blocked}
            return outcomes | self._planned(rest)
        kept = {one.tunable: one.persist for one in made.changes}
        found = {name: _outcome(one, skipped.get(name)) for name, one in left.items()}
        foreseen = [one for one in made.foreseen if one.id not in _OF_FILES]
        named = {
            name: one
            for name in left
            for one in foreseen
            if (key := name.removeprefix("sysctl:")) != name and key in f"{one.title} {one.why}"
        }
        return {
            name: _as(one, "harmful", _reported(named[name], name.removeprefix("sysctl:")))
            if name in named and one.verdict in ("no-evidence", "lowers", "helps")
            else _with_notes(self._by_writer(one, kept.get(name)), made.notes)
            for name, one in found.items()
        }

    def _by_writer(self, line: JudgedLine, path: str | None) -> JudgedLine:
        """The line, where nothing sets the tunable otherwise after the file at ``path`` of a plan."""
        write = overriding_write(self._facts, line.tunable or "", line.wanted or "", path)
        is_left = line.verdict in ("helps", "no-evidence", "lowers", "overridden")
        if write is None or write.value == line.wanted or not is_left or not (path or line.verdict == "overridden"):
            return line
        value = f"sets {write.value}" if write.value is not None else "sets it"
        why = f"{write.place} {value} {write.acts}; {write.change}"
        return _as(line, "owned" if write.is_program else "overridden", why)

    def check(self, lines: Sequence[JudgedLine]) -> list[JudgedLine]:
        """The lines, of which those are to be applied that a plan takes together without a new warning."""
        checked = list(lines)
        while words := [one.apply for one in checked if one.apply]:
            try:
                made = plan_profiles(self._host, words, {}, facts=self._facts)
                why = _reported(made.warnings[0]) if made.warnings else ""
            except AdvisorError as error:
                why = error.message
            if not why:
                break
            place = next(place for place, one in reversed(list(enumerate(checked))) if one.apply)
            checked[place] = _as(checked[place], "harmful", why)
        return checked


def _reported(one: Foreseen, key: str = "") -> str:
    """A finding that the plan brings about, with the sentences of it that name the key."""
    why = ". ".join(part for part in one.why.split(". ") if key in part).rstrip(".")
    return f"with it a scan would report {one.title} ({one.id}){': ' if why else ''}{why}"


def _word(tunable: str, value: str) -> str:
    """What asks ``advisor apply`` for a value: for at least that, where more is as good."""
    record = find_setting(tunable.removeprefix("sysctl:"))
    return f"{tunable}{SIGNS['at-least' if record and record.grows else 'exactly']}{value}"


def _refused(line: JudgedLine, why: str) -> JudgedLine:
    """A value that the kernel does not take, or advisor not here; of a file below /sys nothing comes of it."""
    return _as(line, "harmful" if line.is_sysctl else "no-effect", f"refused: {why.removeprefix(f'{line.tunable}: ')}")


def _beside_default(tunable: str, value: str, why: str) -> str:
    """What a record says of a value where that of the host is not known."""
    record = find_setting(tunable.removeprefix("sysctl:"))
    if record is None:
        return f"{_NO_RECORD}; {why}" if tunable.startswith("sysctl:") else why
    default = re.split("[;:,]| from | before ", record.default)[0]
    if default == value:
        return f"{why}; the kernel's own value"
    said = record.hurts_of.get(value) or record.hurts
    harm = said or (record.harm_of(value, default) if _in_numbers(default, value) else "")
    by_default = f"; the kernel's own is {default}" if harm and default else ""
    return f"{why}{by_default}. {harm or (record.lower_hurts if value == '0' else '')}".rstrip(" .")


def _is_planned(line: JudgedLine) -> bool:
    """Whether a plan is asked what it would say: of what the kernel refuses to a file below /sys, harm does none."""
    if line.live is None:
        return False
    is_caution = line.verdict == "harmful" and "rule" in line.evidence and not line.is_sysctl
    return is_caution or line.verdict in ("helps", "no-evidence", "lowers")


def _with_notes(line: JudgedLine, notes: Sequence[str]) -> JudgedLine:
    """A line that is left, with what a plan notes of its value."""
    own = [note.removeprefix(f"{line.tunable}: ") for note in notes if note.startswith(f"{line.tunable}: ")]
    if not own or line.verdict not in ("helps", "no-evidence", "lowers"):
        return line
    return msgspec.structs.replace(line, why="; ".join((line.why, *own)))


def _outcome(line: JudgedLine, skipped: Skipped | None) -> JudgedLine:
    if skipped is None:
        return line
    if skipped.state == "overridden":
        return _as(line, "overridden", skipped.reason)
    if skipped.state == "blocked" and lacks_right(skipped.reason):
        # Whoever asks may not write it here: nothing is said of the value by that.
        return msgspec.structs.replace(line, why=f"{line.why}; {skipped.reason}", apply=None)
    if skipped.state == "blocked" and skipped.reason.endswith(FIXED):
        return _as(line, "no-effect", skipped.reason)
    if skipped.state == "blocked":
        return _refused(line, skipped.reason)
    if skipped.state == "by-hand":
        return _as(line, "no-evidence", f"acts after a step by hand: {skipped.reason}".rstrip("."))
    if skipped.state in ("not-applicable", "unknown"):
        return _as(line, "unknown" if skipped.state == "unknown" else "no-effect", skipped.reason)
    return line


def _as(line: JudgedLine, verdict: Verdict, why: str) -> JudgedLine:
    return msgspec.structs.replace(line, verdict=verdict, why=why, apply=None)


def _of_container(line: JudgedLine) -> JudgedLine:
    """A sysctl that a container's runtime sets: its own, where the kernel has one for each namespace."""
    if namespace_of(line.tunable or "") is None:
        return _as(
            line, "no-effect", "it has no value of its own in a container: the runtime refuses it, set it on the host"
        )
    return _as(line, "owned", "it is the container's own value; that of this host does not change")


def _in_numbers(*texts: str) -> list[tuple[int, ...]]:
    """The numbers of values side by side; none where they do not correspond."""
    words = [text.split() for text in texts]
    is_numbers = all(re.fullmatch(r"-?[0-9]{1,20}", word) for row in words for word in row)
    is_same = len({len(row) for row in words}) == 1
    return list(zip(*(map(int, row) for row in words), strict=True)) if is_numbers and is_same else []


def _is_toward(live: str, value: str, asked: str) -> bool:
    """Whether a value goes where a finding wants it: every number in that direction, or the same word."""
    steps = [(now - was) * (aim - was) for was, now, aim in _in_numbers(live, value, asked)]
    return all(step >= 0 for step in steps) and any(steps) if steps else value.split() == asked.split()


def _is_beyond(live: str, value: str, asked: str) -> bool:
    """Whether a value goes farther than what a finding asks for."""
    return any((now - aim) * (aim - was) > 0 for was, now, aim in _in_numbers(live, value, asked))


_SITE = (
    (r"block:(.+):(\w+)", r"queue/\2", r"/sys/block/\1/queue/\2"),
    (r"link:(.+):txqueuelen", "txqueuelen", r"\1"),
    (r"link:(.+):feature\.tx-tcp6?-segmentation", "tso", r"\1"),
    (r"link:(.+):feature\.tx-generic-segmentation", "gso", r"\1"),
    (r"thp:enabled", "/sys/kernel/mm/transparent_hugepage/enabled", ""),
    (r"cmdline:(\w+)", r"\1", ""),
)
"""What rules on files of the administrator know a tunable by: pattern of the id, key and scope of the setting."""


def _as_site_setting(line: JudgedLine) -> SiteSetting | None:
    for pattern, key, scope in _SITE:
        if found := re.fullmatch(pattern, line.tunable or ""):
            return SiteSetting(line.file, line.line, found.expand(key), line.wanted or "", found.expand(scope))
    if (line.wanted or "").startswith("disabled") and (
        unit := re.fullmatch(r"unit:(.+)\.service:state", line.tunable or "")
    ):
        return SiteSetting(line.file, line.line, "stops", unit[1])
    return None
