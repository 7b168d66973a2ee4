"""A plan as one self-contained POSIX ``sh`` script that carries it out on its host, with nothing installed there.

What ``advisor apply`` does there for this plan, the script does: the same steps, journal, state directory, rollback
script, watchdog and exit codes, so that ``advisor`` on that host, should it be there, treats it as its own.
Everything that does not depend on the moment (entries of the journal with their checksums, both scripts) is made here.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence

from advisor.errors import RefusedError
from advisor.exporters.settings import Bundle, Exported
from advisor.host import Host, Probe, ReadCommand, ReadEthtool, RunCommand, SetEthtool, SetMtu, SetQdisc, Step
from advisor.planner import plan_profiles
from advisor.planning.records import Change, FileChange, Plan
from advisor.shell.rollback_script import KIND, forms_context, quote_data, rollback_data, rollback_records, script_text
from advisor.shell.templates import only_used, render_shell
from advisor.transaction.journal import Doing, Done, encode_entry, encode_json
from advisor.transaction.reserved_space import needed_bytes
from advisor.transaction.watchdog import WATCH_KIND, watch_text
from advisor.tunables import FileEdit
from advisor.tunables.preflight import link_of
from advisor.tunables.sysctl_group import can_move, coupled_among, restore_rank
from advisor.tunables.udev import RULES as APPEARING
from advisor.version import __version__

_BASE = (
    "awk", "cat", "chmod", "chown", "cksum", "cp", "cut", "date", "flock", "grep", "head", "id", "ln", "ls", "mkdir",
    "mv", "od", "readlink", "rm", "rmdir", "sed", "sha256sum", "sleep", "sort", "sync", "tail", "tr", "uniq", "wc",
)  # fmt: skip


def transaction_script(plan: Plan, *, machine_id: str | None, hostname: str | None) -> str:
    """The script for ``plan`` on the host with this machine-id, or where that is not known, with this name.

    Raises RefusedError where the plan cannot be applied, changes nothing, or cannot identify its host.
    """
    if plan.blocking:
        first = plan.blocking[0]
        raise RefusedError(f"{first.tunable}: {first.reason}", hint="advisor plan lists everything that is blocked")
    if plan.is_empty:
        reason = plan.skipped[0].reason if plan.skipped else "it sets nothing"
        raise RefusedError(f"nothing is to be changed: {reason}", hint="advisor plan lists every item")
    machine_id = machine_id or plan.machine_id
    if not machine_id and not hostname:
        raise RefusedError(
            "neither machine-id nor name of the host is known, so that the script could not refuse others"
        )
    context = _script_context(plan, machine_id or "", hostname or "")
    # The journal's first entry (`Begun`), until what only the host knows, last: it holds what the plan holds.
    texts = {
        "rollback_text": script_text().rstrip("\n"),
        "watch_text": watch_text().rstrip("\n"),
        "begun": _begun(plan),
    }
    places = {name: f"{context['mark']}_{name}" for name in texts}
    script = only_used(render_shell("transaction.sh.j2", {**context, **places}))
    for name, text in texts.items():
        script = script.replace(places[name], text.rstrip("\n"), 1)
    return script


def script_for_profiles(
    host: Host, names: Sequence[str], settings: Mapping[str, str], *, runtime_only: bool = False
) -> str:
    """The script that applies profiles to ``host``, as `plan_profiles` plans them there now. Raises as that does, and
    as `transaction_script`."""
    plan = plan_profiles(host, names, settings, runtime_only=runtime_only)
    hostname = host.read_text("/proc/sys/kernel/hostname")
    return transaction_script(plan, machine_id=plan.machine_id, hostname=hostname)


def _script_context(plan: Plan, machine_id: str, hostname: str) -> dict[str, object]:
    probes = [*(one.probe for one in plan.changes), *(one.probe for one in plan.side_effects)]
    steps = [step for one in plan.changes for step in (*one.steps, *one.undo)]
    steps += [step for one in plan.side_effects for step in one.undo]
    reloads = [step for file in plan.files for step in file.reload]
    marked: dict[str | None, str] = {mark.name: mark.name for mark in plan.links}
    together = coupled_among([one.tunable for one in plan.changes])
    changes = tuple(reversed(plan.changes))
    values = [
        {
            **_json_name(change.tunable),
            **_change_entries(change),
            "number": number,
            "before": change.before,
            "after": change.after,
            "steps": bool(change.steps),
            "link": marked.get(link_of(change.tunable)),
            "rank": restore_rank(change.tunable.removeprefix("sysctl:")),
            "together": change.tunable in together,
            "later": [at for at in range(number - 1, 0, -1) if _can_move(change.tunable, changes[at - 1].tunable)],
        }
        for number, change in enumerate(changes, 1)
    ]
    moved = [
        {
            **_json_name(one.tunable),
            "number": number,
            "before": one.before,
            "keeps": one.keeps,
            "link": marked.get(link_of(one.tunable)),
        }
        for number, one in enumerate(plan.side_effects, len(values) + 1)
    ]
    files = [
        {
            **_json_name(file.path),
            **_file_entries(file),
            "number": number,
            "path": file.path,
            "existed": "no" if file.before is None else "yes",
            "mode": f"{file.mode:04o}",
            "owner": f"{file.uid}:{file.gid}",
            "prune": file.new_directories,
        }
        for number, file in enumerate(reversed(plan.files), 1)
    ]
    items = len(plan.changes) + len(plan.side_effects) + len(plan.files)
    return {
        **forms_context(probes, steps),
        "profiles": ", ".join(plan.profiles),
        "fingerprint": plan.fingerprint,
        "machine_id": machine_id,
        "hostname": hostname,
        "shown_hostname": re.sub(r"[^ -~]", "?", hostname),
        "has_links": plan.has_link_risk,
        "links": plan.links,
        "values": values,
        "moved": moved,
        "files": files,
        "reload": bool(reloads),
        "data": quote_data(rollback_records(plan, {}, with_steps=True)),
        "rollback_kind": KIND,
        "watch_kind": WATCH_KIND,
        "mark": f"END_{plan.fingerprint[:16]}",
        "commands": [*_BASE, *_needed_programs(probes, steps)],
        "reload_commands": _needed_programs((), reloads),
        "persists": plan.persists,
        "names": _item_names(plan),
        "begun_state": zlib.crc32(_begun(plan).encode()),
        "version": __version__,
        "reserve_bytes": needed_bytes(len(encode_json(plan)), len(rollback_data(plan)), items),
    }


def _begun(plan: Plan) -> str:
    return f'{{"type":"begun","plan":{encode_json(plan).decode()},"boot_id":'


def _can_move(name: str, other: str) -> bool:
    links = ("link:", "irq:")
    return (name.startswith(links) and other.startswith(links)) or can_move(name, other)


def _json_name(name: str) -> dict[str, object]:
    return {"name": name, "json": json.dumps(name)}


def _journal_line(entry: Doing | Done) -> str:
    return encode_entry(entry).decode().rstrip("\n")


def _change_entries(change: Change) -> dict[str, object]:
    """Lines of the journal around a change; ``managed`` begins the one for an interrupt that the kernel keeps."""
    managed = ""
    if change.tunable.startswith("irq:"):
        managed = f'{{"type":"left","what":{json.dumps(change.tunable)},"why":"{json.dumps(change.tunable)[1:-1]}'
    return {
        "doing": _journal_line(Doing(change.tunable)),
        "done": _journal_line(Done(change.tunable, change.after)),
        "managed": managed,
    }


def _file_entries(file: FileChange) -> dict[str, object]:
    return {
        "doing": _journal_line(Doing(file.path)),
        "done": _journal_line(Done(file.path, None)),
        "keys_written": sorted({key for edit in file.edits for key in _edit_keys(edit)}),
    }


def _edit_keys(edit: FileEdit) -> list[str]:
    """The words by which a line of the file that sets the same again can be known."""
    if edit.form == "section":
        return [setting.partition("=")[0] for setting in edit.value.split()]
    return [edit.key.rpartition("/")[2]]


def _item_names(plan: Plan) -> list[dict[str, object]]:
    """Every item by name, the longest first, since one may begin with another."""
    ours = [change.tunable for change in plan.changes] + [file.path for file in plan.files]
    names = dict.fromkeys([*ours, *(one.tunable for one in plan.side_effects)])
    # Of the file of rules for classes a rollback removes its own lines alone; each rule is a value, too.
    ours = [name for name in ours if name != APPEARING]
    return [{**_json_name(name), "is_ours": name in ours} for name in sorted(names, key=len, reverse=True)]


def _needed_programs(probes: Iterable[Probe], steps: Iterable[Step]) -> list[str]:
    """What must be installed on the host, but for what every script needs."""
    found = set()
    for one in (*probes, *steps):
        match one:
            case ReadCommand() | RunCommand() | ReadEthtool() | SetEthtool() | SetQdisc():
                found.add(one.argv[0])
            case SetMtu():
                found.add("ip")
    return sorted(found.difference(_BASE))


# The plan as a script that replaces `advisor apply`, with journal, watchdog and rollback.


def make_shell_script(wanted: Exported) -> Bundle:
    """One script for this host alone: it changes what the plan saw. Raises RefusedError where that is nothing."""
    name = f"{wanted.name}.sh"
    text = transaction_script(wanted.plan, machine_id=wanted.plan.machine_id, hostname=wanted.hostname).encode(
        "utf-8", "surrogateescape"
    )
    use = tuple(f"sh DIRECTORY/{name} {verb}" for verb in ("check", "apply", "verify", "rollback"))
    return Bundle({name: text}, wanted.left_out, use, (name,))
