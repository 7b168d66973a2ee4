"""A plan's rollback as a self-contained POSIX ``sh`` script, rendered from the same probes and steps that apply uses.

The script needs a shell and the base system's tools, no Python and no network. Every name that enters it is quoted by
``shell_quote``; file contents are embedded byte for byte as ``printf`` lines, whatever they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

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
from advisor.host.device_identity import ATTRIBUTES, PLACES, located
from advisor.host.link_text import printed
from advisor.host.patterns import lazy_regex
from advisor.host.steps import QDISC_HANDLES
from advisor.planning.records import Change, FileChange, Plan
from advisor.shell.quote import LINK, shell_quote
from advisor.tunables.link_mark import link_of
from advisor.tunables.link_rename import renamed_probe, renamed_step
from advisor.tunables.preflight import SideEffect
from advisor.tunables.sysctl_group import can_move, coupled_among, restore_rank, twin_of

_ARGUMENT = "@argument@"
_MOST_COMMANDS = 200
_PRINTABLE = lazy_regex(rb"[\x20-\x7e]*")


def hand_command(step: Step) -> str:
    """The command that a person would type for a step."""
    match step:
        case WriteFile(path, value):
            return f"printf '%s\\n' {shell_quote(value)} > {shell_quote(path)}"
        case SetMtu(link, mtu):
            return f"ip link set dev {shell_quote(link)} mtu {mtu}"
        case SetTxqueuelen() | SetEthtool() | SetQdisc():
            return _quote_words(step.argv)
        case SetIrqs(link):
            return f"set the affinity of the interrupts of {shell_quote(link)} again (the rollback script holds them)"
        case RunCommand(argv):
            return " ".join(shell_quote(word) for word in argv)
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


def _quote_words(argv: Iterable[str]) -> str:
    return " ".join(shell_quote(word) for word in argv)


def printf_lines(content: bytes) -> tuple[str, ...]:
    """Commands that print exactly ``content``, a ``printf`` for each of its lines; many are grouped in braces.

    A list of commands is a tree as deep as the list is long, and bash walks it by calling itself: 25,000 lines without
    groups overflow its stack.
    """
    commands = [_printf_line(line) for line in content.splitlines(keepends=True)] or ["printf ''"]
    while len(commands) > _MOST_COMMANDS:
        commands = ["\n".join(("{", *group, "}")) for group in _split_batches(commands)]
    return tuple(commands)


def _split_batches(commands: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(commands), _MOST_COMMANDS):
        yield commands[start : start + _MOST_COMMANDS]


def _printf_line(line: bytes) -> str:
    body = line[:-1]
    if line.endswith(b"\n") and _PRINTABLE.fullmatch(body):
        return f"printf '%s\\n' {shell_quote(body.decode('ascii')) if body else chr(39) * 2}"
    # POSIX printf takes octal escapes in its format; digits and letters stay readable.
    escaped = "".join(chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"\\{byte:03o}" for byte in line)
    return f"printf '{escaped}'"


def _step_command(step: Step) -> str:
    match step:
        case WriteFile(path, value, identity):
            if identity is None:
                return f'write {shell_quote(value)} "$root"{shell_quote(path)}'
            return f'attribute=$(located {_quote_words((path, *identity))}) && write {shell_quote(value)} "$attribute"'
        case SetMtu(link, mtu):
            return f"set_mtu {shell_quote(link)} {mtu}"
        case SetTxqueuelen(link, packets):
            return f'write {packets} "$root"{shell_quote(f"/sys/class/net/{link}/tx_queue_len")}'
        case SetEthtool() | SetQdisc():
            return f"on_link {_quote_words(step.argv)}"
        case SetIrqs(link, affinities):
            return f"set_irqs {_quote_words((link, *affinities))}"
        case RunCommand(argv):
            return " ".join(shell_quote(word) for word in argv)
        case PutFile():
            raise AssertionError("files are restored by their number")


def _probe_command(probe: Probe) -> str:
    form = probe.form
    reduction, _, name = form.partition(":")
    reduce = f"{reduction.replace('-', '_')} {shell_quote(name)}".rstrip()
    match probe:
        case ReadFile(path, _, identity):
            if identity is None:
                return f'{reduce} < "$root"{shell_quote(path)}'
            return f'attribute=$(located {_quote_words((path, *identity))}) && {reduce} < "$attribute"'
        case ReadCommand(argv):
            command = " ".join(shell_quote(word) for word in argv)
            return f"output=$({command}) || return 1; printf '%s\\n' \"$output\" | {reduce}"
        case ReadEthtool(_, group, key):
            place = _quote_words(str(one) for one in printed(group, key))
            output = f"output=$(on_link {_quote_words(probe.argv)}) || return 1"
            return f"{output}; printf '%s\\n' \"$output\" | ethtool_value {place}"
        case ReadIrqs(link):
            return f"found=$(irqs {shell_quote(link)}) || return 1; printf '%s\\n' \"$found\" | irqs_line"


def _with_link(command: str) -> str:
    return command.replace(LINK, '"$link"')


def _hand_words(commands: Iterable[str]) -> str:
    """What a person would type, as one shell word; the script has quoted the name of a link in it as ``$shown``."""
    return '"$shown"'.join(map(shell_quote, "; ".join(commands).split(LINK)))


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


def rollback_script(
    plan: Plan,
    side_effects_after: Mapping[str, str] | None = None,
    *,
    above: UpperLayersData | None = None,
    fingerprint: str | None = None,
    directory: str | None = None,
) -> str:
    """The script that rolls ``plan`` back, with the exit codes of the command-line contract.

    ``side_effects_after`` are the values of side effects, once they are known. ``fingerprint`` is that of the plan that
    was applied, by which the script is found, where ``plan`` is no longer that. ``directory`` is that of the
    transaction, for a script that is to lie elsewhere.
    """
    after = side_effects_after or {}
    context = script_context(plan, after)
    if above is not None:
        plan_of_both = msgspec.structs.replace(plan, side_effects=(*plan.side_effects, *above.side_effects))
        known = {mark.name for mark in plan.links}
        free = [
            {**_side_effect_context(one, after.get(one.tunable, ""), known), "only": "free"}
            for one in plan.side_effects
        ]
        held = [
            {**_side_effect_context(one, above.after.get(one.tunable, ""), known), "only": "held"}
            for one in above.side_effects
        ]
        context = {**script_context(plan_of_both, after), "moved": free + held, "above": _upper_context(plan, above)}
    return _render_script(**{**context, "fingerprint": fingerprint or plan.fingerprint, "directory": directory})


def _upper_context(plan: Plan, above: UpperLayersData) -> dict[str, object]:
    numbers = {one.tunable: number for number, one in enumerate(reversed(plan.changes), 1)}
    known = {
        identity: [{"number": numbers[name], "after": value} for name, value in values.items()]
        for identity, values in above.values.items()
    }
    return {"ids": above.ids, "named": above.held, "known": known}


def script_context(plan: Plan, side_effects_after: Mapping[str, str]) -> dict[str, object]:
    """What ``rollback.sh.j2`` is rendered from, and the parts of it that ``transaction.sh.j2`` shares: values and files
    in the order in which they are restored, each a mapping with its words for a shell."""
    probes = [*(one.probe for one in plan.changes), *(one.probe for one in plan.side_effects)]
    steps = [step for one in plan.changes for step in (*one.steps, *one.undo)]
    steps += [step for one in plan.side_effects for step in one.undo]
    known = {mark.name for mark in plan.links}
    return {
        "profiles": ", ".join(plan.profiles),
        "fingerprint": plan.fingerprint,
        "directory": None,
        "machine_id": plan.machine_id or "",
        "values": [_value_context(one, known) for one in reversed(plan.changes)],
        "moved": [
            _side_effect_context(one, side_effects_after.get(one.tunable, ""), known) for one in plan.side_effects
        ],
        "coupled": [one.tunable for one in coupled_changes(plan)],
        "can_move": can_move,
        "links": plan.links,
        "link_of": link_of,
        "files": [_file_context(file) for file in reversed(plan.files)],
        "reload": [_step_command(step) for step in dict.fromkeys(step for file in plan.files for step in file.reload)],
        "forms": _list_forms(probes) + ["on-link"] * any(isinstance(step, SetEthtool | SetQdisc) for step in steps),
        "qdisc_handles": QDISC_HANDLES,
        "device_attributes": ATTRIBUTES,
        "device_places": PLACES,
        "has_links": any(change.risk == "link" for change in plan.changes),
    }


def coupled_changes(plan: Plan) -> tuple[Change, ...]:
    """Changes that setting another one of the plan, or a side effect of it, can change."""
    names = [one.tunable for one in plan.changes] + [one.tunable for one in plan.side_effects if one.coupled]
    among = coupled_among(names)
    return tuple(one for one in plan.changes if one.tunable in among)


def settings_script(values: Iterable[tuple[str, str, Probe, tuple[Step, ...], str | tuple[str, ...]]]) -> str:
    """A script that reports which values differ from those wanted, and sets them: id, wanted value, probe, steps and
    the sense that it is wanted in (of each field, where it is a tuple).

    It keeps no journal and rolls nothing back: it is part of exports to tools that work this way.
    """
    from advisor.shell.templates import make_environment

    listed = list(values)
    steps = [step for one in listed for step in one[3]]
    return (
        make_environment(escape_html=False)
        .get_template("settings.sh.j2")
        .render(
            values=[
                {
                    "name": name,
                    "after": after,
                    "on_link": False,
                    "probe": _probe_command(probe),
                    "steps": [_step_command(step) for step in steps],
                }
                | {"senses": "" if sense == "exactly" else sense if isinstance(sense, str) else " ".join(sense)}
                for name, after, probe, steps, sense in listed
            ],
            moved=[],
            coupled=[],
            links=[],
            forms=_list_forms([one[2] for one in listed])
            + ["on-link"] * any(isinstance(step, SetEthtool | SetQdisc) for step in steps),
            qdisc_handles=QDISC_HANDLES,
            device_attributes=ATTRIBUTES,
            device_places=PLACES,
            has_links=any(isinstance(step, SetMtu) for step in steps),
        )
    )


def _value_context(one: Change, known: Collection[str]) -> dict[str, object]:
    old = link_of(one.tunable)
    steps, undo, probe = one.steps, one.undo, one.probe
    if old is not None and old in known:
        probe = renamed_probe(probe, old, LINK)
        steps, undo = (tuple(renamed_step(step, old, LINK) for step in each) for each in (steps, undo))
    queue = queue_file(probe)
    return {
        "name": one.tunable,
        "before": one.before,
        "after": one.after,
        "on_link": old in known,
        "probe": _with_link(_probe_command(probe)),
        "steps": [_with_link(_step_command(step)) for step in steps],
        "undo": [_with_link(_step_command(step)) for step in undo],
        "by_hand": _hand_words(map(hand_command, undo)),
        "queue": None if queue is None else _with_link(shell_quote(queue)),
        "located": _locate_command(one.probe),
        "rank": _rank_of(one.tunable),
        "write": _write_command(probe),
    }


def _locate_command(probe: Probe) -> str | None:
    """The command that prints the file of a value of a block device; None for all others."""
    if not isinstance(probe, ReadFile) or probe.identity is None:
        return None
    return f"located {_quote_words((probe.path, *probe.identity))}"


def _rank_of(identity: str) -> int:
    return restore_rank(identity.removeprefix("sysctl:"))


def _write_command(probe: Probe) -> str | None:
    """The command that writes ``$2`` into what the probe reads; None where that is no file."""
    if not isinstance(probe, ReadFile):
        return None
    written = _step_command(WriteFile(probe.path, _ARGUMENT, probe.identity)).replace(shell_quote(_ARGUMENT), '"$2"', 1)
    return _with_link(written)


def queue_file(probe: Probe) -> str | None:
    """The file that is gone where a link has fewer queues than it had; None for what is no queue's."""
    return probe.path if isinstance(probe, ReadFile) and "/queues/" in probe.path else None


def _side_effect_context(one: SideEffect, after: str, known: Collection[str]) -> dict[str, object]:
    old = link_of(one.tunable)
    undo, probe = one.undo, one.probe
    if old is not None and old in known:
        undo, probe = tuple(renamed_step(step, old, LINK) for step in undo), renamed_probe(probe, old, LINK)
    twin = twin_of(one.tunable.removeprefix("sysctl:"))
    return {
        "name": one.tunable,
        "before": one.before,
        "after": after,
        "on_link": old in known,
        "keeps": one.keeps,
        "coupled": one.coupled,
        "rank": _rank_of(one.tunable),
        "write": _write_command(probe),
        "resets": one.resets,
        "twin": twin and f"sysctl:{twin}",
        "goes": isinstance(probe, ReadFile),
        "by_hand": _hand_words(map(hand_command, undo)),
        "probe": _with_link(_probe_command(probe)),
        "undo": [_with_link(_step_command(step)) for step in undo],
    }


def _file_context(file: FileChange) -> dict[str, object]:
    return {
        "path": file.path,
        "before": None if file.before is None else printf_lines(file.before),
        "after": printf_lines(file.after),
        "size_before": len(file.before or b""),
        "size_after": len(file.after),
        "mode": f"{file.undo.mode:04o}",
        "mode_after": f"{file.mode:04o}",
        "uid": file.uid,
        "gid": file.gid,
        "prune": file.new_directories,
    }


def _list_forms(probes: Collection[Probe]) -> list[str]:
    """The functions that the probes need, by what follows ``forms`` in the template."""
    found = {probe.form.partition(":")[0] for probe in probes}
    if any(isinstance(probe, ReadFile) and probe.identity for probe in probes):
        found.add("identity")
    return sorted(found)


def _render_script(**context: object) -> str:
    from advisor.shell.templates import make_environment

    return make_environment(escape_html=False).get_template("rollback.sh.j2").render(context)
