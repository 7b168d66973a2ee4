"""A search: which candidate of cited profiles helps the user's own work, raced, and confirmed on fresh data.

Nothing is proposed that has no source. The functions raise UsageError and RefusedError before anything is changed,
PermissionDeniedError without root, StoppedError after a signal (the search can be resumed) and NotRestoredError where
something is not restored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from advisor.errors import InvalidInputError, UsageError
from advisor.facts.settings import find_setting
from advisor.host import Host, live_host, observe
from advisor.host.patterns import lazy_regex
from advisor.host.safe_open import need_root
from advisor.operations import scan
from advisor.operations.measure import parse_budget as parse_budget
from advisor.operations.prove import check_user, keep_gain, parse_variable
from advisor.profiles.profile import Parameter, Profile, Wanted, load, profile_paths
from advisor.profiles.requested import is_file_word, is_line_about, is_value_word, load_one, load_requested, with_kind
from advisor.proof.command_runner import CommandProcess
from advisor.proof.pattern import is_workload_path
from advisor.proof.session_runner import ProgressEvent, Settings
from advisor.proof.tuning import session as tuning
from advisor.proof.tuning.arms import Candidates, Offer, RaceLoad, pattern_metric
from advisor.proof.tuning.records import LeftOutCandidate, Tuned, TunePattern, TuneSession
from advisor.proof.tuning.session import TuneOptions
from advisor.recommend.fixes import make_fix
from advisor.shell.quote import shell_quote
from advisor.transaction.journal import Store
from advisor.tunables import parse_tunable

# Ranges of a search: ``sysctl:vm.swappiness=10..60`` as a finite list of candidates, within limits that are cited.

MAX_VALUES = 16
"""Of one range."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_NUMBER = r"([0-9]{1,15})([kmgKMG]?)"
_RANGE = lazy_regex(rf"([^=<>\s]{{1,200}})={_NUMBER}\.\.{_NUMBER}(?:/([x+]){_NUMBER})?", re.ASCII)
_DIGITS = lazy_regex(r"[0-9]{1,15}", re.ASCII)
_PLACE = lazy_regex(r"\{(\w+)\}")


class ValueRange(msgspec.Struct, frozen=True):
    """A range as it was asked for: ``step`` is a factor or, with ``is_linear``, a difference."""

    tunable: str
    low: int
    high: int
    step: int
    is_linear: bool

    @property
    def values(self) -> tuple[int, ...]:
        """Each value from ``low`` on by the step, and ``high``."""
        found = [self.low]
        while found[-1] < self.high and len(found) <= MAX_VALUES:
            found.append(min(self.high, found[-1] + self.step if self.is_linear else found[-1] * self.step))
        return tuple(found)


class CitedLimit(msgspec.Struct, frozen=True):
    """The numbers that a source allows for a tunable."""

    low: int
    high: int
    source: str


def parse_range(word: str) -> ValueRange:
    """Return ``TUNABLE=LOW..HIGH``, by default doubling, with ``/xFACTOR`` or ``/+STEP``; units K, M, G are binary.
    Raises UsageError."""
    found = _RANGE.fullmatch(word)
    if found is None:
        raise UsageError(
            f"--range {word[:80]}: expected TUNABLE=LOW..HIGH",
            hint="such as sysctl:net.core.rmem_max=1M..16M, sysctl:vm.swappiness=10..60/+10 or …=1M..16M/x4",
        )
    parse_tunable(found[1])
    low, high = (int(found[at]) * _UNITS[found[at + 1].lower()] for at in (2, 4))
    is_linear = found[6] == "+"
    step = int(found[7]) * _UNITS[found[8].lower()] if found[6] else 2
    if low >= high:
        raise UsageError(f"--range {word}: expected the smaller value first")
    if step < (1 if is_linear else 2) or (low == 0 and not is_linear):
        raise UsageError(
            f"--range {word}: these steps do not lead from {low} to {high}",
            hint="/x2 doubles from a value above 0; /+10 adds 10",
        )
    asked = ValueRange(found[1], low, high, step, is_linear)
    if len(asked.values) > MAX_VALUES:
        raise UsageError(f"--range {word}: expected at most {MAX_VALUES} values", hint="larger steps: /x4, or /+STEP")
    return asked


def range_offers(word: str, host: Host) -> Iterator[Offer]:
    """Yield a candidate for each value of a range, with the source of its limits. Raises UsageError for a range that
    is not inside the limits of one source, with those that there are."""
    asked = parse_range(word)
    limits = list(cited_limits(asked.tunable, host))
    inside = next((one for one in limits if one.low <= asked.low and asked.high <= one.high), None)
    if inside is None:
        raise UsageError(
            f"--range {word}: no source allows all of it"
            if limits
            else f"--range {word}: no source says which values it may have",
            hint="; ".join(f"{one.low} to {one.high}: {one.source}" for one in limits)
            or f"name the values: --candidates {asked.tunable}=VALUE",
        )
    source = f"range {asked.low} to {asked.high}, within {inside.low} to {inside.high}: {inside.source}"
    for value in asked.values:
        text = f"{asked.tunable}={value}"
        yield Offer(text, load_requested([text])[0], source)


def cited_limits(tunable: str, host: Host) -> Iterable[CitedLimit]:
    """Yield the limits of a tunable of one number: those that the kernel documents, those of the parameter by which a
    profile sets it, and the numbers between the present one and those that profiles set."""
    key = tunable.removeprefix("sysctl:")
    setting = find_setting(key) if key != tunable else None
    if setting is not None and setting.low is not None and setting.high is not None:
        yield CitedLimit(setting.low, setting.high, setting.bounds_source)
    lines = [
        (profile, line)
        for profile in map(load, profile_paths())
        for line in profile.tunables
        if is_line_about(line, tunable) and isinstance(line.value, str)
    ]
    for profile, line in lines:
        limit = _parameter_limit(profile, line)
        if limit is not None:
            yield limit
    live = observe(host, parse_tunable(tunable).probe)
    fixed = {int(str(line.value)): profile for profile, line in lines if _is_number(str(line.value))}
    if isinstance(live, str) and _is_number(live) and fixed:
        numbers = [int(live), *fixed]
        named = ", ".join(f"profile {profile.name} ({value})" for value, profile in sorted(fixed.items()))
        yield CitedLimit(min(numbers), max(numbers), f"from the present value {live} to {named}")


def _is_number(text: str) -> bool:
    return bool(_DIGITS.fullmatch(text))


def _parameter_limit(profile: Profile, line: Wanted) -> CitedLimit | None:
    place = _PLACE.fullmatch(str(line.value))
    parameter: Parameter | None = profile.parameters.get(place[1]) if place else None
    if parameter is None or parameter.minimum is None or parameter.maximum is None:
        return None
    sources = line.sources or profile.sources
    source = f"profile {profile.name}, parameter {place[1] if place else ''} ({'; '.join(sources)})"
    return CitedLimit(parameter.minimum, parameter.maximum, source)


_JOINED_VALUES = lazy_regex(r",\s*[a-z][a-z0-9_-]*:[^,]+=")
RULES = "rules"
"""The word for what the findings of this host advise."""


def name_candidates(words: Sequence[str], host: Host | None = None, *, ranges: Sequence[str] = ()) -> Candidates:
    """Return the candidates that profiles, files and values ask for, each with its source; a value is a candidate of
    its own, and so is each value of one of the ``ranges`` (`advisor.operations.tuning`). ``rules`` stands for
    what the findings of ``host``, by default this one, advise, and a tunable without a value for each value that it
    declares there. Words may be joined by commas. Raises UsageError, InvalidInputError, RefusedError."""
    offers: dict[str, Offer] = {}
    left: list[LeftOutCandidate] = []
    for word in [with_kind(word) for text in words for word in _split_words(text)]:
        if word == RULES:
            advised = _advised_candidates(host)
            left += advised.left_out
            for one in advised.offers:
                offers.setdefault(one.name, one)
            continue
        if is_value_word(word) and set(word).isdisjoint("=<>"):
            for one in _declared_candidates(word, host or live_host()):
                offers.setdefault(one.name, one)
            continue
        (asked,) = load_requested([word], only_trusted=True)
        name = word if is_value_word(word) else asked.profile.name
        if is_value_word(word):
            source = "the value was given on the command line"
        else:
            source = f"profile {word if is_file_word(word) else name}"
        if name in offers:
            raise UsageError(f"--candidates: {name} is named twice")
        offers[name] = Offer(name, asked, source)
    for one in (offer for word in ranges for offer in range_offers(word, host or live_host())):
        offers.setdefault(one.name, one)
    return Candidates(tuple(offers.values()), tuple(left))


def _split_words(text: str) -> list[str]:
    """The words of one option: a value may hold commas. Raises UsageError for values that are joined by them."""
    if is_value_word(text):
        if _JOINED_VALUES.search(text):
            each = " ".join(f"--candidates {shell_quote(one)}" for one in re.split(r",\s*(?=[a-z][a-z0-9_-]*:)", text))
            raise UsageError(f"--candidates {text}: a value may hold commas: give each by itself", hint=each)
        return [text]
    return [word.strip() for word in text.split(",") if word.strip()]


def _advised_candidates(host: Host | None) -> Candidates:
    """One candidate for the values or the profile of each finding that is not accepted, with the rule as its source."""
    offers: list[Offer] = []
    left: list[LeftOutCandidate] = []
    for finding in scan(host).active:
        source = f"finding {finding.id}: {finding.title}"
        fix = make_fix([finding], is_unattended=True)
        if not fix.asked:
            reason = fix.left_out[0].reason if fix.left_out else "is fixed by hand"
            left.append(LeftOutCandidate(finding.id, source, reason))
        for asked in fix.asked:
            own = tuple(pair for pair in fix.settings if pair[0] in asked.profile.parameters)
            offers.append(Offer(" ".join(asked.words), asked, source, own))
    return Candidates(tuple(offers), tuple(left))


def _declared_candidates(identity: str, host: Host) -> Iterable[Offer]:
    """One candidate for each value that a tunable declares on the host. Raises UsageError where it declares none."""
    one = parse_tunable(identity)
    values = one.list_values(host)
    if not values:
        raise UsageError(
            f"--candidates {identity}: it declares no values to choose from here",
            hint=f"name the values: {identity}=VALUE",
        )
    for value in values:
        word = f"{identity}={value}"
        source = f"{identity} offers {', '.join(values)}"
        yield Offer(word, load_requested([word])[0], source)


def name_recorded(session: TuneSession) -> Candidates:
    """Return the candidates of a recorded search, with the sources that it names. Raises as `name_candidates`."""
    found = []
    for one in session.candidates:
        asked = load_requested(one.words, only_trusted=True)
        if len(asked) != 1:
            path = tuning.session_path(Store(), session.id)
            raise InvalidInputError(f"{path}: {one.name}: expected the words of one candidate")
        found.append(Offer(one.name, asked[0], one.source, one.settings))
    return Candidates(tuple(found))


def choose_pattern(workload: str, chosen: Settings) -> RaceLoad:
    """Return a pattern of fio as the load of a search: a workload's name or file, on the target of ``chosen``, of which
    the length of a run, the size of the file and the byte budget count. Raises UsageError, InvalidInputError,
    RefusedError."""
    if is_workload_path(workload):
        workload = os.path.abspath(workload)
    pattern = TunePattern(
        workload,
        chosen.target,
        pattern_metric(workload),
        seconds=chosen.seconds,
        scratch_bytes=chosen.scratch_bytes,
        byte_budget=chosen.byte_budget,
    )
    return RaceLoad(live_host(), pattern=pattern)


def repeat_load(session: TuneSession, environment: Sequence[str] = ()) -> CommandProcess | RaceLoad:
    """Return the load of a recorded search, ready to run. Of a command, ``environment`` holds values for the names that
    it sets, which are not recorded; those that are missing are taken from here. Raises UsageError."""
    if session.pattern is not None:
        return RaceLoad(live_host(), pattern=session.pattern)
    own = session.command
    assert own is not None, "a search has a command or a pattern"
    if own.user is not None:
        check_user(own.user)
    given = dict(parse_variable(one) for one in environment)
    values = {name: given[name] if name in given else parse_variable(name)[1] for name in own.environment}
    return CommandProcess(own, values)


def read_search(identity: str) -> TuneSession:
    """Return the search of that id as it was cut off. Raises UsageError, InvalidInputError, RefusedError."""
    return tuning.load_session(Store(), identity)


def tune_command(
    candidates: Candidates,
    load: CommandProcess | RaceLoad,
    options: TuneOptions,
    *,
    resumed: TuneSession | None = None,
    progress: Callable[[ProgressEvent], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Tuned:
    """Race candidates by a benchmark of the user's own (of `advisor.operations.prove.choose_command`) or by a pattern
    of fio (of `choose_pattern`), reduce the winner to the values that did it, and confirm that; with ``keep_if_gain`` a
    confirmed gain is applied.

    Nothing else is kept. ``resumed`` is a search of `read_search`, with its own candidates. Changes the host and rolls
    it back.
    """
    need_root()
    host, store = live_host(), Store()
    raced = RaceLoad(host, process=load) if isinstance(load, CommandProcess) else load
    found = tuning.tune(host, candidates, raced, options, resumed=resumed, progress=progress, say=say)
    if found.session.keep_if_gain:
        found = keep_winner(host, found, candidates, say=say)
    return tuning.save_tuned(found, store)


def keep_winner(
    host: Host,
    found: Tuned,
    candidates: Candidates,
    *,
    say: Callable[[str], None] = lambda _: None,
    store: Store | None = None,
) -> Tuned:
    """Apply and persist the winner of a confirmed gain as a transaction of its own; ``kept`` of the result says so.
    Any other verdict changes nothing. Raises what `advisor.operations.apply` raises."""
    if not found.is_gain or found.confirmation is None or found.winner is None:
        return found
    asked = next((one.asked for one in candidates.offers if one.name == found.winner.name), None)
    # One that was reduced is no candidate.
    asked = asked or load_one(found.winner.words, only_trusted=True)
    proof = keep_gain(host, found.confirmation, dict(found.winner.settings), asked, say=say, store=store)
    return msgspec.structs.replace(found, confirmation=proof, kept=proof.kept)
