"""A plan as one self-contained POSIX ``sh`` script that carries it out on its host, with nothing installed there.

What ``advisor apply`` does there for this plan, the script does: the same steps, journal, state directory, rollback
script, watchdog and exit codes, so that ``advisor`` on that host, should it be there, treats it as its own.
Everything that does not depend on the moment (entries of the journal with their checksums, both scripts) is made here.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from advisor.errors import RefusedError
from advisor.host import Host, Missing, Probe, ReadCommand, ReadEthtool, RunCommand, SetEthtool, SetMtu, SetQdisc, Step
from advisor.i18n import msg
from advisor.planner import plan_profiles
from advisor.planning.records import Change, FileChange, Plan
from advisor.shell.rollback_script import printf_lines, script_context
from advisor.transaction.journal import Begun, Doing, Done, encode_entry
from advisor.transaction.reserved_space import needed_bytes
from advisor.tunables import FileEdit
from advisor.tunables.sysctl_group import can_move, coupled_among
from advisor.version import __version__

_BASE: Final = (
    "awk", "cat", "chmod", "chown", "cksum", "cp", "cut", "date", "flock", "grep", "head", "id", "ln", "ls", "mkdir",
    "mv", "od", "readlink", "rm", "rmdir", "sed", "sleep", "sort", "sync", "tail", "tr", "uniq", "wc",
)  # fmt: skip
_DIVIDER: Final = ',"time":'


def transaction_script(plan: Plan, *, machine_id: str | None, hostname: str | None) -> str:
    """The script for ``plan`` on the host with this machine-id, or where that is not known, with this name.

    Raises RefusedError where the plan cannot be applied, changes nothing, or cannot identify its host.
    """
    if plan.blocking:
        first = plan.blocking[0]
        raise RefusedError(
            msg("{tunable}: {reason}", tunable=first.tunable, reason=first.reason),
            hint="advisor plan lists everything that is blocked",
        )
    if plan.is_empty:
        reason = plan.skipped[0].reason if plan.skipped else "it sets nothing"
        raise RefusedError(
            msg("nothing is to be changed: {reason}", reason=reason), hint="advisor plan lists every item"
        )
    machine_id = machine_id or plan.machine_id
    if not machine_id and not hostname:
        raise RefusedError(
            "neither machine-id nor name of the host is known, so that the script could not refuse others"
        )
    return _render_template("transaction.sh.j2", _script_context(plan, machine_id or "", hostname or ""))


def script_for_profiles(
    host: Host, names: Sequence[str], settings: Mapping[str, str], *, runtime_only: bool = False
) -> str:
    """The script that applies profiles to ``host``, as `plan_profiles` plans them there now. Raises as that does, and
    as `transaction_script`."""
    plan = plan_profiles(host, names, settings, runtime_only=runtime_only)
    name = host.read("/proc/sys/kernel/hostname")
    return transaction_script(plan, machine_id=plan.machine_id, hostname=None if isinstance(name, Missing) else name)


def _script_context(plan: Plan, machine_id: str, hostname: str) -> dict[str, object]:
    shared = script_context(plan, {})
    token = plan.fingerprint[:16]
    values, moved, files = shared["values"], shared["moved"], shared["files"]
    assert isinstance(values, list)
    assert isinstance(moved, list)
    assert isinstance(files, list)
    for number, (value, change) in enumerate(zip(values, reversed(plan.changes), strict=True), 1):
        value.update(number=number, **_json_name(change.tunable), **_change_entries(change))
    together = coupled_among([one.tunable for one in plan.changes])
    in_order = list(reversed(values))
    for place, value in enumerate(in_order):
        value["together"] = value["name"] in together
        value["later"] = [
            one["number"] for one in in_order[place + 1 :] if _can_move(str(value["name"]), str(one["name"]))
        ]
    for number, one in enumerate(moved, len(values) + 1):
        one.update(number=number, **_json_name(one["name"]))
    for number, (file, made) in enumerate(zip(files, reversed(plan.files), strict=True), 1):
        file.update(number=number, **_json_name(made.path), **_file_entries(made))
    return {
        **shared,
        "machine_id": machine_id,
        "hostname": hostname,
        "mark": f"END_{token}",
        "commands": _needed_programs(plan),
        "persists": plan.persists,
        "names": _item_names(plan),
        "begun": _begun_entry(plan),
        "reserve_bytes": _reserve_bytes(plan, shared, moved),
        "rollback_pieces": tuple(_rollback_pieces(shared, moved, token)),
        "watch_pieces": tuple(_watch_pieces(token, persists=plan.persists)),
    }


def _can_move(name: str, other: str) -> bool:
    links = ("link:", "irq:")
    return (name.startswith(links) and other.startswith(links)) or can_move(name, other)


def _reserve_bytes(plan: Plan, shared: Mapping[str, object], moved: list[dict[str, object]]) -> int:
    script = _render_template("rollback.sh.j2", {**shared, "moved": moved})
    items = len(plan.changes) + len(plan.side_effects) + len(plan.files)
    return needed_bytes(len(msgspec.json.encode(plan)), len(script), items)


def _json_name(name: str) -> dict[str, object]:
    return {"name": name, "json": json.dumps(name)}


def _journal_line(entry: Doing | Done) -> str:
    return encode_entry(entry).decode().rstrip("\n")


def _change_entries(change: Change) -> dict[str, object]:
    """Lines of the journal around a change; ``managed`` begins the one for an interrupt that the kernel keeps."""
    managed = ""
    if change.tunable.startswith("irq:"):
        managed = f'{{"type":"left","what":{json.dumps(change.tunable)},"why":"{_escape_json(change.tunable)}'
    return {
        "doing": _journal_line(Doing(change.tunable)),
        "done": _journal_line(Done(change.tunable, change.after)),
        "managed": managed,
    }


def _escape_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _file_entries(file: FileChange) -> dict[str, object]:
    earlier = set((file.before or b"").splitlines())
    written = [line for line in file.after.splitlines() if line.strip() and line not in earlier]
    return {
        "doing": _journal_line(Doing(file.path)),
        "done": _journal_line(Done(file.path, None)),
        "written": [text for line in written for text in printf_lines(line + b"\n")],
        "keys_written": sorted({key for edit in file.edits for key in _edit_keys(edit)}),
    }


def _edit_keys(edit: FileEdit) -> list[str]:
    """The words by which a line of the file that sets the same again can be known."""
    if edit.form == "section":
        return [setting.partition("=")[0] for setting in edit.value.split()]
    return [edit.key.rpartition("/")[2]]


def _begun_entry(plan: Plan) -> dict[str, object]:
    """The journal's first entry: ``head`` until what only the host knows, ``tail`` after it, and the state of the
    CRC-32 in between."""
    body = msgspec.json.encode(Begun(plan, None, 0.0, __version__)).decode()
    head, divider, rest = body.rpartition("null" + _DIVIDER)
    assert divider
    tail = rest.partition(",")[2]
    return {"head": head, "tail": f".0,{tail}", "state": zlib.crc32(head.encode())}


def _item_names(plan: Plan) -> list[dict[str, object]]:
    """Every item by name, the longest first, since one may begin with another."""
    ours = [change.tunable for change in plan.changes] + [file.path for file in plan.files]
    names = dict.fromkeys([*ours, *(one.tunable for one in plan.side_effects)])
    return [{**_json_name(name), "is_ours": name in ours} for name in sorted(names, key=len, reverse=True)]


def _needed_programs(plan: Plan) -> tuple[str, ...]:
    """What must be installed on the host."""
    probes: list[Probe] = [*(one.probe for one in plan.changes), *(one.probe for one in plan.side_effects)]
    steps: list[Step] = [step for one in plan.changes for step in (*one.steps, *one.undo)]
    steps += [step for file in plan.files for step in file.reload]
    found = {_program_of(one) for one in (*probes, *steps)}
    return tuple(sorted({*_BASE, *(one for one in found if one)}))


def _program_of(one: Probe | Step) -> str | None:
    match one:
        case ReadCommand(argv) | RunCommand(argv):
            return argv[0]
        case SetMtu():
            return "ip"
        case ReadEthtool() | SetEthtool() | SetQdisc():
            return one.argv[0]
    return None


def _rollback_pieces(shared: Mapping[str, object], moved: list[dict[str, object]], token: str) -> Iterator[object]:
    known = [{**one, "after": f"@{token}-{one['number']}@"} for one in moved]
    text = _render_template("rollback.sh.j2", {**shared, "moved": known})
    commands = {
        f"after_{one['number']}=@{token}-{one['number']}@": (
            f'quote "$after_{one["number"]}"; printf \'after_{one["number"]}=%s\\n\' "$quoted"'
        )
        for one in moved
    }
    yield from _split_commands(text, commands)


def _watch_pieces(token: str, *, persists: bool) -> Iterator[object]:
    """The watchdog's script, with what the host alone knows: its directory, and the units that it takes away."""
    directory, options = f"@{token}-directory@", f"@{token}-options@"
    words = {
        "directory": directory,
        "boot_files": [f"@{token}-link@", f"@{token}-unit@"] if persists else [],
        "boot_leftovers": [f"@{token}-new-unit@"] if persists else [],
        "boot_directories": [f"@{token}-wants@"] if persists else [],
        "rollback_options": options,
    }
    text = _render_template("watch.sh.j2", words)
    path = next(line for line in text.splitlines() if line.startswith("PATH="))
    call = next(line for line in text.splitlines() if options in line)
    before, _, behind = call.partition(options)
    guard = '[ "$has_boot_unit" = no ] ||'
    commands = {
        f"cd {directory} || exit 0": 'quote "$place"; printf \'cd %s || exit 0\\n\' "$quoted"',
        f"    rm -f @{token}-link@": f'{guard} {{ quote "$boot_link"; printf \'    rm -f %s\\n\' "$quoted"; }}',
        f"    rm -f @{token}-unit@": f'{guard} {{ quote "$boot_unit"; printf \'    rm -f %s\\n\' "$quoted"; }}',
        f"    rm -f @{token}-new-unit@": (
            f'{guard} {{ quote "${{boot_unit%/*}}/.${{boot_unit##*/}}.advisor.new"; '
            "printf '    rm -f %s\\n' \"$quoted\"; }"
        ),
        f"    rmdir @{token}-wants@ 2>/dev/null": '[ "$made_wants" = no ] || echo "    rmdir $wants 2>/dev/null"',
        path: f'if [ -n "$root" ]; then echo "PATH=$search"; else echo {path!r}; fi',
        call: f"printf '%s%s%s\\n' {_quote_text(before)} \"$options\" {_quote_text(behind)}",
    }
    yield from _split_commands(text, commands)


def _quote_text(text: str) -> str:
    from advisor.shell.quote import shell_quote

    return shell_quote(text)


def _split_commands(text: str, commands: Mapping[str, str]) -> Iterator[dict[str, str | None]]:
    """``text`` as parts that are printed as they are and commands that print a line in between."""
    plain: list[str] = []
    for line in text.removesuffix("\n").split("\n"):
        if line not in commands:
            plain.append(line)
            continue
        if plain:
            yield {"text": "\n".join(plain), "command": None}
        yield {"text": None, "command": commands[line]}
        plain = []
    if plain:
        yield {"text": "\n".join(plain), "command": None}


def _render_template(template: str, context: Mapping[str, object]) -> str:
    from advisor.shell.templates import make_environment

    return make_environment(escape_html=False).get_template(template).render(context)
