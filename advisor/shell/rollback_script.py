"""A plan's rollback as POSIX ``sh``: one script for all plans, and for each the data that it reads, made from the same
probes and steps that apply uses.

The script needs a shell and the base system's tools, no Python and no network. It reads its data from the file
``rollback.data`` next to it (`advisor.shell.quote`), or holds them where it is to be a single file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache

import msgspec

from advisor.facts.system.identity import INITIAL
from advisor.host import (
    Host,
    Missing,
    Probe,
    PutFile,
    ReadCommand,
    ReadEthtool,
    ReadFile,
    ReadIrqs,
    RunCommand,
    SetEthtool,
    SetIrqs,
    SetMtu,
    SetQdisc,
    SetTxqueuelen,
    Step,
    WriteFile,
)
from advisor.host.config_text import UNSET
from advisor.host.device_identity import ATTRIBUTES, PLACES, located
from advisor.host.irqs import FUNCTIONS
from advisor.host.kernel_text import printed
from advisor.host.patterns import lazy_regex
from advisor.host.probes import FORMS
from advisor.host.steps import QDISC_HANDLES
from advisor.planning.records import NOWHERE, Change, Origin, Plan
from advisor.shell.quote import FORMAT, LINK, make_data, make_records, shell_quote
from advisor.shell.templates import only_used, render_shell
from advisor.tunables import namespace_of, parse_tunable
from advisor.tunables.link_persist import renamed_probe, renamed_step
from advisor.tunables.preflight import LinkMark, SideEffect, link_of
from advisor.tunables.sysctl_group import can_move, coupled_among, restore_rank, twin_of
from advisor.tunables.udev import HEADER as RULES_HEADER
from advisor.tunables.udev import RULES as APPEARING
from advisor.tunables.udev import DeviceClass, plain_value

KIND = "advisor-rollback"
"""What the first record of its data says."""
_MOST_COMMANDS = 200
_PRINTABLE = lazy_regex(rb"[\x20-\x7e]*")


def hand_command(step: Step) -> str:
    """The command that a person would type for a step."""
    match step:
        case WriteFile(path, value):
            return f"printf '%s\\n' {shell_quote(value)} > {shell_quote(path)}"
        case SetMtu(link, mtu):
            return f"ip link set dev {shell_quote(link)} mtu {mtu}"
        case SetTxqueuelen() | SetEthtool() | SetQdisc() | RunCommand():
            return " ".join(map(shell_quote, step.argv))
        case SetIrqs(link):
            return f"set the affinity of the interrupts of {shell_quote(link)} again (the rollback script holds them)"
        case PutFile(path, None):
            return f"rm -f {shell_quote(path)}"
        case PutFile(path):
            return f"restore the earlier content of {shell_quote(path)} (the rollback script holds it)"


def commands_by_hand(host: Host, steps: Iterable[Step]) -> str | None:
    """The commands of steps, with the names that block devices have now; None where one is not found."""
    found: list[str] = []
    for step in steps:
        if isinstance(step, WriteFile):
            place = located(host, step.path, step.identity)
            if isinstance(place, Missing):
                return None
            step = msgspec.structs.replace(step, path=place)
        found.append(hand_command(step))
    return "; ".join(found)


def printf_lines(content: bytes) -> tuple[str, ...]:
    """Commands that print exactly ``content``, a ``printf`` for each of its lines; many are grouped in braces.

    A list of commands is a tree as deep as the list is long, and bash walks it by calling itself: 25,000 lines without
    groups overflow its stack.
    """
    commands = [_printf_line(line) for line in content.splitlines(keepends=True)] or ["printf ''"]
    while len(commands) > _MOST_COMMANDS:
        batches = (commands[at : at + _MOST_COMMANDS] for at in range(0, len(commands), _MOST_COMMANDS))
        commands = ["\n".join(("{", *batch, "}")) for batch in batches]
    return tuple(commands)


def _printf_line(line: bytes) -> str:
    body = line[:-1]
    if line.endswith(b"\n") and _PRINTABLE.fullmatch(body):
        return f"printf '%s\\n' {shell_quote(body.decode('ascii')) if body else chr(39) * 2}"
    # POSIX printf takes octal escapes in its format; digits and letters stay readable.
    escaped = "".join(chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"\\{byte:03o}" for byte in line)
    return f"printf '{escaped}'"


def step_fields(step: Step) -> tuple[str, ...]:
    """A step as fields of a record, which ``do_step`` of ``templates/values.sh.j2`` carries out."""
    match step:
        case WriteFile(path, value, identity):
            return ("write", value, path, *(identity or ()))
        case SetMtu(link, mtu):
            return ("mtu", link, str(mtu))
        case SetTxqueuelen(link, packets):
            return ("write", str(packets), f"/sys/class/net/{link}/tx_queue_len")
        case SetEthtool() | SetQdisc():
            return ("on-link", *step.argv)
        case SetIrqs(link, affinities):
            return ("irqs", link, *affinities)
        case RunCommand(argv):
            return ("run", *argv)
        case PutFile():
            raise AssertionError("files are restored by their number")


def probe_fields(probe: Probe) -> tuple[str, ...]:
    """A probe as fields of a record, which ``read_probe`` of ``templates/values.sh.j2`` reads."""
    form, _, argument = probe.form.partition(":")
    form = form.replace("-", "_")
    match probe:
        case ReadFile(path, _, identity):
            return (form, argument, "file", path, *(identity or ()))
        case ReadCommand(argv):
            return (form, argument, "command", *argv)
        case ReadEthtool(_, group, key):
            return (form, "", "ethtool", *map(str, printed(group, key)), *probe.argv)
        case ReadIrqs(link):
            return (form, "", "irqs", link)


class UpperLayersData(msgspec.Struct, frozen=True):
    """Upper layers that share items with the transaction whose script is written.

    ``held`` are the items of that one that they hold, with their ids, the oldest first; ``values`` what each of them
    has set to another value. As long as one of them is active, the script skips all of ``held``, and restores
    ``side_effects``, with their values since, ``after``, with the rest.
    """

    ids: tuple[str, ...]
    held: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Mapping[str, str]]
    side_effects: tuple[SideEffect, ...]
    after: Mapping[str, str]


def rollback_data(
    plan: Plan,
    side_effects_after: Mapping[str, str] | None = None,
    *,
    above: UpperLayersData | None = None,
    fingerprint: str | None = None,
    directory: str | None = None,
    origin: Origin = NOWHERE,
) -> bytes:
    """The data by which `script_text` rolls ``plan`` back.

    ``side_effects_after`` are the values of side effects, once they are known. ``fingerprint`` is that of the plan that
    was applied, by which the transaction is found, where ``plan`` is no longer that. ``directory`` is that of the
    transaction, for a script that is to lie elsewhere; ``origin`` is the machine that it is of.
    """
    return make_data(KIND, rollback_records(plan, side_effects_after or {}, above, fingerprint, directory, origin))


def rollback_records(
    plan: Plan,
    after: Mapping[str, str],
    above: UpperLayersData | None = None,
    fingerprint: str | None = None,
    directory: str | None = None,
    origin: Origin = NOWHERE,
    *,
    with_steps: bool = False,
) -> bytes:
    """What `rollback_data` holds between its first and its last record. Arguments as there; ``with_steps``: the steps
    of the plan as well."""
    changes, files = tuple(reversed(plan.changes)), tuple(reversed(plan.files))
    shared = above.held if above else {}
    effects = [(one, "free" if above else "always", after) for one in plan.side_effects]
    effects += [(one, "held", above.after) for one in above.side_effects] if above else []
    records: list[tuple[str | bytes, ...]] = [
        ("plan", fingerprint or plan.fingerprint),
        ("profiles", ", ".join(plan.profiles)),
        ("machine", plan.machine_id or ""),
        ("hardware", origin.hardware or ""),
        ("risk", "link" if plan.has_link_risk else "none"),
    ]
    if directory:
        records.append(("directory", directory))
    marks = {mark.name: mark_fields(mark) for mark in plan.links}
    both = msgspec.structs.replace(plan, side_effects=tuple(effect for effect, *_ in effects))
    coupled = {one.tunable for one in coupled_changes(both)}
    for one in changes:
        if one.tunable.startswith("udev:"):
            records.append(("reached", *_reached_fields(one), _shared_word(one.tunable, shared)))
            records += _member_records(one)
        links = marks.get(link_of(one.tunable) or "")
        queue = queue_file(on_link(one, links, ())[0]) or ""
        records.append(("value", one.tunable, one.before, one.after, queue, _shared_word(one.tunable, shared)))
        records += _item_records(one, links)
        if with_steps:
            records += (("set", *step_fields(step)) for step in on_link(one, links, one.steps)[1])
        if one.tunable in coupled:
            movers = (str(number) for number, other in enumerate(changes, 1) if can_move(other.tunable, one.tunable))
            records.append(("movers", " ".join(movers)))
    for effect, only, _ in effects:
        twin = twin_of(effect.tunable.removeprefix("sysctl:"))
        goes = "goes" if isinstance(effect.probe, ReadFile) else "stays"
        way = "coupled" if effect.coupled else "keeps" if effect.keeps else "resets" if effect.resets else "moves"
        records.append(("effect", effect.tunable, effect.before, way, only, (twin and f"sysctl:{twin}") or "", goes))
        records += _item_records(effect, marks.get(link_of(effect.tunable) or ""))
    names = [(one.tunable, one.tunable in coupled) for one in changes]
    names += [(effect.tunable, effect.coupled) for effect, *_ in effects]
    group = sorted(
        (restore_rank(name.removeprefix("sysctl:")), number) for number, (name, is_in) in enumerate(names, 1) if is_in
    )
    records.append(("group", " ".join(str(number) for _, number in group)))
    for kind in ("net", "ipc"):
        inside = [str(number) for number, (name, _) in enumerate(names, 1) if namespace_of(name) == kind]
        inode = str((plan.namespace or {}).get(kind, ""))
        if inside:
            records.append(("namespace", kind, inode, (inode and origin.boot_id) or "", f" {' '.join(inside)} "))
    for file in files:
        sizes = f"{len(file.before or b'')} {len(file.after)}"
        existed, owner = "no" if file.before is None else "yes", f"{file.uid}:{file.gid}"
        # Of a file of rules for classes the script removes the lines that are the transaction's, and no others.
        word = "lines" if file.path == APPEARING and file.path not in shared else _shared_word(file.path, shared)
        words = (file.path, existed, f"{file.undo.mode:04o}", owner, sizes, word)
        records.append(("file", *words, *file.new_directories))
    reload = dict.fromkeys(step for file in plan.files for step in file.reload)
    records += (("reload", hand_command(step), *step_fields(step)) for step in reload)
    if above:
        numbers = {one.tunable: str(number) for number, one in enumerate(changes, 1)}
        records.append(("upper", " ".join(above.ids)))
        known = ((layer, name, value) for layer, values in above.values.items() for name, value in values.items())
        records += (("known", layer, numbers[name], value) for layer, name, value in known)
        records += (("shared", name, *ids) for name, ids in above.held.items())
    records += (("after", values.get(effect.tunable, "")) for effect, _, values in effects)
    records.append(("contents",))
    for number, file in enumerate(files, 1):
        contents = (("old", file.before or b""), ("new", file.after))
        records += ((which, str(number), line) for which, text in contents for line in text.splitlines(keepends=True))
    return make_records(records)


def _reached_fields(change: Change) -> tuple[str, ...]:
    """The devices that a rule for a class reaches, for ``list_reached`` of ``templates/rollback.sh.j2``: subsystem, the
    property in which it records, the file that it sets, its form, the rule's value, and what it was before; empty where
    there was no rule."""
    one = parse_tunable(change.tunable)
    assert isinstance(one, DeviceClass)
    before = "" if change.before == UNSET else plain_value(change.before)
    return (one.subsystem, one.record, one.file, one.attribute, one.form, plain_value(change.after), before)


def _member_records(change: Change) -> Iterator[tuple[str, ...]]:
    """The devices that were there when a rule was planned: the property in which it records, what the device had, and
    how it is found again."""
    record = parse_tunable(change.tunable)
    assert isinstance(record, DeviceClass)
    for one in change.members:
        if one.link is not None:
            yield ("member", record.record, one.value, "link", record.file, *mark_fields(one.link))
        else:
            yield ("member", record.record, one.value, "block", one.path, *(one.identity or ()))


def mark_fields(mark: LinkMark) -> tuple[str, ...]:
    return tuple(field or "" for field in msgspec.structs.astuple(mark))


def _shared_word(name: str, shared: Collection[str]) -> str:
    return "shared" if name in shared else "own"


def _item_records(one: Change | SideEffect, mark: tuple[str, ...] | None) -> Iterator[tuple[str, ...]]:
    """How to read a value and to restore it, after the record of the value itself."""
    probe, undo = on_link(one, mark, one.undo)
    if mark:
        yield ("on", *mark)
    yield ("probe", *probe_fields(probe))
    yield from (("undo", *step_fields(step)) for step in undo)
    yield ("hand", "; ".join(map(hand_command, undo)))


def on_link(
    one: Change | SideEffect, mark: tuple[str, ...] | None, steps: tuple[Step, ...]
) -> tuple[Probe, tuple[Step, ...]]:
    """Probe and steps, with `LINK` in the place of the link's name where the script has to find the link."""
    if not mark:
        return one.probe, steps
    return renamed_probe(one.probe, mark[0], LINK), tuple(renamed_step(step, mark[0], LINK) for step in steps)


_PARTS = frozenset({"upper", "file", "reached", "effect", "movers"})
"""Records of the data that have functions of their own."""


@cache
def script_text() -> str:
    """``rollback.sh``: the same for every transaction of this version."""
    return _render_script(embedded=None)


def self_contained_script(data: bytes, profiles: Iterable[str], fingerprint: str) -> str:
    """The script as a single file that holds its `rollback_data`. Its header names profiles and plan."""
    parts = {line.partition(b"\t")[0].decode() for line in data.splitlines()}
    fields = [[text.decode() for text in line.split(b"\t")] for line in data.splitlines() if line.startswith(_FORMED)]
    # As `probe_fields` and `step_fields` write them.
    kinds = {one[3] if one[0] == "probe" else one[1] for one in fields}
    forms = {one[1].replace("_", "-") for one in fields if one[0] == "probe"} | kinds & {"ethtool", "irqs", "on-link"}
    if "member" in parts or any(one[:1] == ["probe"] and one[3] == "file" and len(one) > 5 for one in fields):
        forms.add("identity")
    needs = {
        "forms": sorted(forms),
        "reductions": sorted(forms & FORMS.keys()),
        "parts": parts,
        "links": "on" in parts or "member" in parts,
        "has_links": "mtu" in kinds,
        "has_risk": b"\nrisk\tlink\n" in data,
    }
    header = {"profiles": ", ".join(profiles), "fingerprint": fingerprint, "embedded": quote_data(data)}
    return only_used(_render_script(**{**needs, **header}))


_FORMED = (b"probe\t", b"undo\t")


def rollback_script(plan: Plan, origin: Origin = NOWHERE) -> str:
    """The single file that rolls ``plan`` back on the machine that it is of."""
    return self_contained_script(rollback_data(plan, origin=origin), plan.profiles, plan.fingerprint)


def quote_data(data: bytes) -> str:
    """Data as one word of a shell, line by line as they are in a file."""
    return "'" + data.decode("ascii").rstrip("\n").replace("'", "'\\''") + "'"


def _render_script(**context: object) -> str:
    known = {
        **forms_context(None),
        "links": True,
        "has_links": True,
        "has_risk": True,
        "data_kind": KIND,
        "parts": _PARTS,
    }
    known["rules_header"] = RULES_HEADER.decode("ascii").rstrip("\n")
    return render_shell("rollback.sh.j2", {**known, **context})


def forms_context(probes: Collection[Probe] | None, steps: Collection[Step] = ()) -> dict[str, object]:
    """What ``values.sh.j2`` needs in order to read these probes and do these steps; None: all that there are."""
    if probes is None:
        found = {*FORMS, "irqs", "ethtool", "on-link", "identity"}
    else:
        found = {probe.form.partition(":")[0] for probe in probes}
        if any(isinstance(probe, ReadFile) and probe.identity for probe in probes):
            found.add("identity")
        if any(isinstance(step, SetEthtool | SetQdisc) for step in steps):
            found.add("on-link")
    return {
        "forms": sorted(found),
        "reductions": sorted(found & FORMS.keys()),
        "data_format": FORMAT,
        "first_namespaces": INITIAL,
        "qdisc_handles": QDISC_HANDLES,
        "device_attributes": ATTRIBUTES,
        "device_places": PLACES,
        "interrupt_functions": FUNCTIONS,
    }


def coupled_changes(plan: Plan) -> tuple[Change, ...]:
    """Changes that setting another one of the plan, or a side effect of it, can change."""
    names = [one.tunable for one in plan.changes] + [one.tunable for one in plan.side_effects if one.coupled]
    among = coupled_among(names)
    return tuple(one for one in plan.changes if one.tunable in among)


MOST_IF_SET = "at-most-if-set"
"""The sense of a limit that is 0 where there is none."""


def settings_script(values: Iterable[tuple[str, str, Probe, tuple[Step, ...], str | tuple[str, ...]]]) -> str:
    """A script that reports which values differ from those wanted, and sets them: id, wanted value, probe, steps and
    the sense that it is wanted in (of each field, where it is a tuple).

    It keeps no journal and rolls nothing back: it is part of exports to tools that work this way.
    """
    listed = list(values)
    steps = [step for one in listed for step in one[3]]
    records: list[tuple[str, ...]] = []
    for name, after, probe, own, sense in listed:
        senses = "" if sense == "exactly" else sense if isinstance(sense, str) else " ".join(sense)
        records += (("value", name, after, senses), ("probe", *probe_fields(probe)))
        records += (("set", *step_fields(step)) for step in own)
    context = {
        **forms_context([one[2] for one in listed], steps),
        "data": quote_data(make_records(records)),
        "has_senses": any(one[4] != "exactly" for one in listed),
        "links": False,
        "has_links": any(isinstance(step, SetMtu) for step in steps),
    }
    return only_used(render_shell("settings.sh.j2", context))


def queue_file(probe: Probe) -> str | None:
    """The file that is gone where a link has fewer queues than it had; None for what is no queue's."""
    return probe.path if isinstance(probe, ReadFile) and "/queues/" in probe.path else None
