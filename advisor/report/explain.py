"""``advisor explain ID``: a rule, a profile, a tunable, a contradiction among the sources or a cause, in one form."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from advisor.errors import UsageError, near_names
from advisor.facts.settings import KEYS, SETTINGS, find_setting
from advisor.facts.settings.record import Setting
from advisor.host import Host, MemoryFiles, Missing, Probe, ReadCommand, ReadEthtool, ReadFile, ReadIrqs, observe
from advisor.host.commands import NoCommands
from advisor.profiles.profile import Profile, Wanted, load, profile_paths
from advisor.profiles.requested import is_line_about, known_ids, nearest_ids, with_kind
from advisor.report.layout import Page, Span
from advisor.report.profile_words import (
    GUARDS,
    condition_words,
    fill_template,
    parameter_words,
    proof_words,
    wanted_value,
)
from advisor.report.terms import EFFECTS, RISKS
from advisor.rules.judged import RULES
from advisor.rules.rule import PREFIX, Contradiction, all_contradictions, contradiction, named
from advisor.shell.quote import shell_quote
from advisor.shell.rollback_script import hand_command
from advisor.tunables import FileEdit, Persisted, Tunable, all_kinds, find_kind, namespace_of, parse_tunable
from advisor.tunables.edits import line_setting
from advisor.tunables.kind import Namespace, kind_words, own_docstring, plain_text
from advisor.tunables.link import EXAMPLE_ADDRESS
from advisor.tunables.llt import LLTTAB
from advisor.tunables.preflight import ExpandsIds

# How each kind of tunable is read, set and kept: asked of the tunables themselves on an example host, so that the
# words cannot drift from what apply does.

BELONGS_TO: Mapping[Namespace | None, str] = {
    None: "the host: a container cannot set it",
    "ipc": "the IPC namespace: each container or pod may have its own",
    "mnt": "the mount namespace: each container has files of its own",
    "net": "the network namespace: each container or pod may have its own",
    "user": "the user namespace",
    "uts": "the UTS namespace: each container or pod may have its own",
}
"""In which namespace there is one value of a kind, by `namespace_of`."""
# Values of which each tunable takes one at least, for those of which no better one is known.
_ANY = ("64", "1", "0-3", "write back", "never", "on", "fq")


class Handling(msgspec.Struct, frozen=True):
    """What a tunable is and does. ``set_by`` and ``line`` hold an example value.

    ``by_file``: no step sets the live value, its file does once ``set_by`` has made the owner read it. ``by_hand``:
    nothing here sets it. ``persists_in`` and ``line`` are None where no file keeps it; ``persist_note`` then says why.
    """

    what: str
    read_by: str
    set_by: str
    by_file: bool
    persists_in: str | None
    persist_note: str | None
    line: str | None
    takes_effect: str
    risk: str
    by_hand: bool = False

    def setting(self, quote: str = "") -> str:
        """How it is set, the commands in ``quote``."""
        if self.by_hand:
            return f"hand alone: {self.set_by}"
        typed = f"{quote}{self.set_by}{quote}" if self.set_by else ""
        if not self.by_file:
            return typed
        return f"its file, then {typed}" if typed else "its file alone"


def describe_handling(
    identity: str, *, profile: str = "PROFILE", value: str | None = None, host: Host | None = None
) -> Handling:
    """How this tunable is handled, on ``host`` or an example, shown with ``value``, an example or ``VALUE``. Raises
    UsageError for what is no tunable."""
    one, kind = parse_tunable(identity), find_kind(identity)
    record = find_setting(identity.removeprefix("sysctl:"))
    by_hand = kind.by_hand if kind else None
    # The first that the tunable takes at all; empty where none is known.
    alike = (shown for identity, shown in list_examples() if type(parse_tunable(identity)) is type(one))
    candidates = (value, "VALUE", *(("1",) if record and record.unit == "switch" else ()), *alike, *_ANY)
    shown = next((each for each in candidates if each is not None and one.check_value(each) is None), "")
    edit = one.make_edit(host or _example_host(one), shown, profile=profile) if shown else Missing("absent", "unknown")
    set_by, line = _set_by(one, shown, edit), _edit_line(edit) if isinstance(edit, FileEdit) else None
    if line and host is None:
        line = line.replace(EXAMPLE_ADDRESS, "ADDRESS")
    if record and value is None and record.unit != "switch" and identity not in dict(list_examples()):
        # A number of another key would be taken for advice.
        set_by, line = set_by.replace(f" {shown}", " VALUE"), line and line.replace(f" {shown}", " VALUE")
    return Handling(
        what=kind_words(one),
        read_by=_read_by(one.probe),
        set_by=set_by,
        by_file=bool(shown) and not one.make_steps(shown) and by_hand is None,
        persists_in=None if isinstance(edit, Missing) else edit.path,
        persist_note=edit.why if isinstance(edit, Missing) else None,
        line=line,
        takes_effect=EFFECTS[one.takes_effect],
        risk=RISKS[one.risk],
        by_hand=by_hand is not None,
    )


def list_examples() -> tuple[tuple[str, str], ...]:
    """An id and a value of each form of each kind, in the order of documents."""
    return tuple(example for kind in all_kinds() for example in kind.examples)


def form_words(one: Tunable) -> str:
    """``sysctl:KEY``: how ids of the kind are made."""
    return plain_text(own_docstring(one).partition(" — ")[0])


def more_words(one: Tunable) -> str:
    """The paragraphs that follow, or nothing."""
    return plain_text(own_docstring(one).partition("\n\n")[2])


def _example_host(one: Tunable) -> Host:
    """A host on which this one can be kept: with LLT, and with a udev that knows its device."""
    shared = ("/usr/lib/tmpfiles.d/README", "/usr/lib/modules-load.d/README", "/etc/default/grub", LLTTAB)
    udev = b"E:ID_SERIAL=SERIAL\nE:MD_UUID=UUID\n"
    files: Mapping[str, bytes] = {**dict.fromkeys(shared, b""), "/run/udev/data/b8:0": udev}
    kind = find_kind(one.id)
    files = {**files, **(kind.example_files(one) if kind else {})}
    return Host(MemoryFiles(files), NoCommands())


def _read_by(probe: Probe) -> str:
    match probe:
        case ReadFile(path):
            return f"cat {shell_quote(path)}"
        case ReadCommand() | ReadEthtool():
            return " ".join(shell_quote(word) for word in probe.argv)
        case ReadIrqs(link):
            return f"grep {shell_quote(link)} /proc/interrupts"


def _set_by(one: Tunable, value: str, edit: FileEdit | Persisted | Missing) -> str:
    kind = find_kind(one.id)
    if kind is not None and kind.by_hand is not None:
        # A host of which nothing is known: what the plan says depends on its boot loader.
        return kind.by_hand(_example_host(one), one.id.partition(":")[2], value)
    reload = edit.reload if isinstance(edit, FileEdit) else ()
    steps = one.make_steps(value) or reload if value else ()
    return "; ".join(hand_command(step) for step in steps)


def _edit_line(edit: FileEdit) -> str:
    match edit.form:
        case "sysctl":
            return f"{edit.key} = {edit.value}"
        case "llttab-flow":
            return f"set-flow {edit.key}:{edit.value}"
        case "section":
            return " ".join((f"[{edit.key.partition('/')[0]}]", edit.value))
        case "multipath":
            section, _, key = edit.key.rpartition("/")
            return f"{section} {{ {key} {edit.value} }}"
        case "shell":
            return f"{edit.key}={edit.value}"
        case "interfaces":
            return f"iface {edit.key.partition(' ')[0]}: mtu {edit.value}"
        case "netplan":
            return f"network: {{{edit.key.replace('/', ': {')}: {{mtu: {edit.value}}}}}}}"
        case _:
            return line_setting(edit.form, edit.key, edit.value).line.replace("\n", "; ")


MAX_MATCHES = 3
NEARLY_AS_CLOSE = 0.2
"""By how much the likeness (difflib, 0 to 1) of a further suggestion may be below that of the closest."""
ALL_CONTRADICTIONS = "contradictions"


class Explanation(msgspec.Struct, frozen=True):
    """What an id stands for. ``details`` are further labels and texts, in order; a label may come again.

    ``contradictions`` are those among the sources of a rule; of a contradiction, it is itself.
    """

    id: str
    kind: Literal["rule", "profile", "tunable", "contradiction", "cause"]
    title: str
    what: str
    why: str
    helps_when: str
    hurts_when: str
    sources: tuple[str, ...]
    details: tuple[tuple[str, str], ...]
    contradictions: tuple[Contradiction, ...] = ()


def explain_id(identity: str, host: Host | None = None) -> Explanation:
    """What this id stands for; of a tunable, how ``host`` keeps it. Raises UsageError, whose hint names the closest
    ids, where it stands for nothing."""
    if find_kind(identity) is not None:
        return _explain_tunable(identity, host)
    rule = next((rule for rule in RULES if rule.id == identity), None)
    if rule is not None:
        return Explanation(
            id=rule.id,
            kind="rule",
            title=rule.title,
            what=rule.what,
            why=rule.why,
            helps_when=rule.helps_when,
            hurts_when=rule.hurts_when,
            sources=rule.sources,
            details=(),
            contradictions=named(rule.contradictions),
        )
    if identity == ALL_CONTRADICTIONS:
        return _explain_contradictions(
            identity, "Where the sources contradict each other", tuple(all_contradictions().values())
        )
    disputed = contradiction(identity)
    if disputed is not None:
        return _explain_contradictions(identity, disputed.topic, (disputed,))
    if identity in profile_paths():
        return _explain_profile(load(identity))
    found = _explain_cause(identity)
    if found is not None:
        return found
    # Causes of `why` are named like keys (net.loss), so a key has to be a known one.
    tunable = with_kind(identity)
    if tunable != identity and (tunable in known_ids("") or find_setting(tunable.removeprefix("sysctl:"))):
        return _explain_tunable(tunable, host)
    raise UsageError(f"{identity!r} is no rule, profile, tunable or contradiction", hint=_suggest_ids(identity))


def _suggest_ids(identity: str) -> str:
    disputed = (ALL_CONTRADICTIONS, *all_contradictions()) if identity.startswith(PREFIX[:6]) else ()
    # Those that are about as near as the nearest one; a tunable may be named without its kind.
    known = (*(rule.id for rule in RULES), *disputed, *profile_paths(), *_known_tunables())
    names = {one.partition(":")[2]: one for one in known if ":" in one} if ":" not in identity else {}
    names |= {one: one for one in known}
    found = near_names(identity, names, most=MAX_MATCHES)
    likeness = [difflib.SequenceMatcher(None, identity, one).ratio() for one in found]
    near = (one for one, ratio in zip(found, likeness, strict=True) if ratio >= max(likeness) - NEARLY_AS_CLOSE)
    close = list(dict.fromkeys(names[one] for one in near))
    if close:
        return f"did you mean {', '.join(close)}?"
    kinds = ", ".join(f"{kind.name}:" for kind in all_kinds())
    return f"profiles: advisor profiles; rules: advisor scan; a tunable begins with one of {kinds}"


def _all_profiles() -> tuple[Profile, ...]:
    return tuple(map(load, profile_paths()))


def _known_tunables() -> tuple[str, ...]:
    wanted = (wanted.tunable for profile in _all_profiles() for wanted in profile.tunables if not wanted.for_each)
    return (*wanted, *(f"sysctl:{key}" for key in (*KEYS, *SETTINGS) if "*" not in key))


def _explain_cause(identity: str) -> Explanation | None:
    # What observes is loaded where nothing else has this id.
    from advisor.diagnosis.diagnose import list_causes
    from advisor.report.why import HELPS

    cause = next((one for one in list_causes() if one.id == identity), None)
    if cause is None:
        return None
    return Explanation(
        id=cause.id,
        kind="cause",
        title="A cause of advisor why, which observes a host for a while; advisor scan does not look for it.",
        what=cause.what,
        why="",
        helps_when="",
        hurts_when="",
        sources=cause.sources,
        details=(
            ("counts from", cause.threshold),
            ("what helps", HELPS[cause.help]),
            ("described in", "docs/why.md"),
            ("look", "advisor why"),
        ),
    )


def _explain_contradictions(identity: str, title: str, listed: tuple[Contradiction, ...]) -> Explanation:
    return Explanation(
        id=identity,
        kind="contradiction",
        title=title,
        what="",
        why="",
        helps_when="",
        hurts_when="",
        sources=tuple(dict.fromkeys(side.source for one in listed for side in one.sides)),
        details=tuple(("shown by", rule.id) for rule in RULES if {one.id for one in listed} & set(rule.contradictions)),
        contradictions=listed,
    )


def _explain_profile(profile: Profile) -> Explanation:
    sets = [
        ("sets", f"{fill_template(profile, one.tunable)}: {wanted_value(profile, one)}") for one in profile.tunables
    ]
    parameters = [
        ("parameter", f"{name}: {parameter_words(one)}. {one.about}") for name, one in profile.parameters.items()
    ]
    conditions = [("needs", f"{condition_words(one)}; else: {one.reason}") for one in profile.conditions]
    guards = [("budget", GUARDS[guard]) for guard in profile.guards]
    proof = [] if profile.proof is None else [("proof", f"{profile.proof.where} {proof_words(profile.proof)}")]
    notes = [("notes", profile.notes)] if profile.notes else []
    return Explanation(
        id=profile.name,
        kind="profile",
        title=profile.title,
        what=profile.summary,
        why=" ".join(dict.fromkeys(wanted.why for wanted in profile.tunables)) or "It sets nothing.",
        helps_when=profile.helps_when,
        hurts_when=profile.hurts_when,
        sources=profile.sources,
        details=(*sets, *parameters, *conditions, *guards, *proof, *notes),
    )


def _explain_tunable(identity: str, host: Host | None) -> Explanation:
    here = parse_tunable(identity)
    is_there = host is not None and not isinstance(here, ExpandsIds) and isinstance(observe(host, here.probe), str)
    # What a host lacks is kept there as on an example.
    host = host if is_there else None
    profiles = {profile.name: profile for profile in _all_profiles()}
    wanting = [
        (profile, one)
        for profile in profiles.values()
        for one in profile.tunables
        # An heir says what its parent says already.
        if is_line_about(one, identity) and not any(one in profiles[name].tunables for name in profile.inherits)
    ]
    handled = [_describe_handling(identity, *both, host) for both in wanting] or [
        describe_handling(identity, host=host)
    ]
    one, setting = handled[0], find_setting(identity.removeprefix("sysctl:"))
    wanted_by = [("profile", f"{profile.name} wants {wanted_value(profile, wanted)}") for profile, wanted in wanting]
    is_key = identity.startswith("sysctl:")
    is_known = wanting or (setting is not None and is_key)
    similar = [] if is_known else [("similar", name) for name in nearest_ids(identity, _known_tunables())]
    rows = (
        ("takes effect", one.takes_effect),
        ("belongs to", BELONGS_TO[namespace_of(identity)]),
        ("risk", one.risk),
        ("read by", one.read_by),
        *(("set by", text) for text in _settings(handled, [profile for profile, _ in wanting])),
        *(("persists", _persistence_words(each)) for each in handled),
    )
    own = () if setting is None else _setting_rows(setting)
    hurts = _by_profile((profile, one.hurts_when) for profile, one in wanting)
    own_harm = setting.harm_of("") if setting is not None and (is_key or not hurts) else ""
    return Explanation(
        id=identity,
        kind="tunable",
        title=describe_handling(identity).what,
        what="" if setting is None else setting.does,
        why=_by_profile((profile, one.why) for profile, one in wanting) or "No profile of this host sets it.",
        helps_when=_by_profile((profile, profile.helps_when) for profile, _ in wanting),
        hurts_when=" ".join(filter(None, (own_harm, hurts))),
        sources=tuple(
            dict.fromkeys(
                (
                    *(setting.citations if setting else ()),
                    *(source for caution in (setting.cautions if setting else ()) for source in caution.sources),
                    *(source for _, one in wanting for source in one.sources),
                )
            )
        ),
        details=(*own, *wanted_by, *similar, *((label, text) for label, text in rows if text)),
    )


def _setting_rows(one: Setting) -> tuple[tuple[str, str], ...]:
    """What the record of a key says beside what it is and when it hurts."""
    bounds = "" if one.low is None else f"from {one.low} on" if one.high is None else f"{one.low} to {one.high}"
    rows = (
        ("unit", one.unit),
        ("numbers", ", ".join(one.fields)),
        ("bounds", bounds),
        ("default", one.default),
        ("derived from", one.derived_from),
        ("kernels", f"from Linux {one.since[0]}.{one.since[1]} on" if one.since else ""),
        ("gone", one.went),
        ("instead of", one.twin and f"{one.twin}: the kernel sets it to 0 when this one is written"),
        ("same as", one.same_as),
        ("shown by", one.shown_by),
        *(("caution", f"{each.when}: {each.why} ({each.id})") for each in one.cautions),
    )
    return tuple((label, text) for label, text in rows if text)


def _by_profile(texts: Iterable[tuple[Profile, str]]) -> str:
    """The text; where several profiles have one, each after its profile's name."""
    listed = list(texts)
    if len(listed) == 1:
        return listed[0][1]
    return " ".join(f"{profile.name}: {text}" for profile, text in listed)


def _describe_handling(identity: str, profile: Profile, wanted: Wanted, host: Host | None) -> Handling:
    value = fill_template(profile, wanted.value) if isinstance(wanted.value, str) else None
    return describe_handling(identity, profile=profile.name, value=value, host=host)


def _settings(handled: Sequence[Handling], profiles: Sequence[Profile]) -> tuple[str, ...]:
    """How it is set: with the value of the profiles, where all want the same; with VALUE where they differ in one word;
    else as each profile sets it."""
    texts = tuple(dict.fromkeys(one.setting() for one in handled))
    if len(texts) == 1:
        return texts
    places = list(zip(*(text.split(" ") for text in texts), strict=False))
    differing = [at for at, words in enumerate(places) if len(set(words)) > 1]
    is_one_word = len(differing) == 1 and not any("'" in word for word in places[differing[0]])
    if is_one_word and len({text.count(" ") for text in texts}) == 1:
        return (" ".join("VALUE" if at in differing else words[0] for at, words in enumerate(places)),)
    return tuple(f"{profile.name}: {one.setting()}" for profile, one in zip(profiles, handled, strict=True))


def _persistence_words(one: Handling) -> str:
    if not one.persists_in:
        return f"no: {one.persist_note}"
    return f"in {one.persists_in}, as: {one.line}" if one.line else f"in {one.persists_in}, by what sets it"


def explanation_text(found: Explanation, *, width: int, color: bool, below_finding: bool = False) -> str:
    """The explanation for a person, in at most ``width`` columns; ``below_finding``, without what that says already."""
    page = Page(width, color=color)
    if not below_finding:
        page.add(Span(found.id, "bold"), Span(f" ({found.kind})", "dim"), hang=2)
        page.add(found.title)
        page.blank()
    rows = (
        ("looks at" if below_finding else "what", found.what),
        ("why", "" if below_finding else found.why),
        ("helps when", found.helps_when),
        ("hurts when", found.hurts_when),
    )
    page.labelled([(label, (text,)) for label, text in rows if text], indent=0)
    page.blank()
    page.labelled([(label, (text,)) for label, text in _without_repeats(found.details)], indent=0)
    if found.contradictions:
        page.heading("Sources contradict each other")
        for one in found.contradictions:
            page.add(one.topic, " ", Span(f"({one.id})", "dim"), indent=2, hang=2)
            for side in one.sides:
                page.bullet(side.says, " ", Span(f"({side.source})", "dim"), indent=4)
            page.add("What is done about it: ", one.what_we_do, indent=4, hang=2)
            page.blank()
    page.bulleted("Sources", found.sources)
    return page.text


def _without_repeats(details: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """A label is shown where it comes first."""
    rows: list[tuple[str, str]] = []
    last = ""
    for label, text in details:
        rows.append(("" if label == last else label, text))
        last = label
    return rows
