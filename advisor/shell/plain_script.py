"""The rollback of a plan of kernel parameters and files as a script that a person reads before running it.

What is undone stands at its top, item by item; below it are only the functions that these items need. Plans with links,
devices, services, layers or values that move one another have `rollback_script.self_contained_script`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.facts.container import INITIAL
from advisor.host import ReadFile, WriteFile
from advisor.host.patterns import lazy_regex
from advisor.planning.records import NOWHERE, Change, FileChange, Origin, Plan
from advisor.shell.quote import shell_quote
from advisor.shell.rollback_script import coupled_changes
from advisor.shell.templates import render_shell
from advisor.tunables import namespace_of
from advisor.tunables.preflight import SideEffect
from advisor.tunables.sysctl_group import twin_of
from advisor.tunables.udev import RULES as APPEARING

_TEXT = lazy_regex(rb"[ -~\t\n]*")
_WORDS = lazy_regex(r"[ -~]*")
_HOW = "# How it is undone"


def plain_script(
    plan: Plan,
    after: Mapping[str, str],
    *,
    subject: str,
    fingerprint: str,
    origin: Origin = NOWHERE,
    directory: str | None = None,
) -> str | None:
    """The script; None for a plan that needs more. Arguments as `rollback_script.rollback_data` has them; ``subject``
    names what it undoes."""
    items: list[Change | SideEffect] = [*reversed(plan.changes), *plan.side_effects]
    values = [_value_words(one, after) for one in items]
    files = [_file_context(file) for file in reversed(plan.files)]
    if plan.namespace or coupled_changes(plan) or None in values or None in files:
        return None
    listed = [one for one in values if one is not None]
    kinds = {namespace_of(one.tunable) for one in items}
    width = max((len(name) for name, _ in listed), default=0)
    text = render_shell(
        "plain.sh.j2",
        {
            "subject": subject.replace("\n", " "),
            "machine": plan.machine_id,
            "hardware": origin.hardware,
            "fingerprint": fingerprint,
            "files": files,
            "values": [{"name": name, "words": words} for name, words in listed],
            "sides": bool(plan.side_effects),
            "choices": any(isinstance(one.probe, ReadFile) and one.probe.form == "selected" for one in items),
            "others": any(
                one.undo != (WriteFile(one.probe.path, one.before),) for one in items if isinstance(one.probe, ReadFile)
            ),
            "made": any(file["before"] is None and file["tail"] for file in files if file is not None),
            "reloads": [
                " ".join(map(shell_quote, step.argv))
                for step in dict.fromkeys(step for file in plan.files for step in file.reload)
            ],
            "width": width,
            "mark": f"END_{fingerprint[:16]}",
            "net": "net" in kinds,
            "ipc": "ipc" in kinds,
            "first_ipc": INITIAL["ipc"],
            "state": "/var/lib/advisor" if directory is None else directory.rpartition("/transactions/")[0],
            "own": directory or "",
        },
    )
    head = text[: text.index("\n", text.index(f"\n{_HOW}") + 1) + 1]
    return text.replace("@SUM@", cksum(head.encode()), 1)


def _value_words(one: Change | SideEffect, after: Mapping[str, str]) -> tuple[str, str] | None:
    """The function and the item, and its further arguments; None for what is no value of one file that stays where it
    is."""
    probe, undo, now = one.probe, one.undo, one.after if isinstance(one, Change) else after.get(one.tunable, "")
    if not isinstance(probe, ReadFile) or probe.identity or len(undo) != 1 or not isinstance(undo[0], WriteFile):
        return None
    if isinstance(one, SideEffect) and (one.coupled or one.keeps or one.resets):
        return None
    key = one.tunable.removeprefix("sysctl:")
    is_key = probe.form == "words" and probe.path == f"/proc/sys/{key.replace('.', '/')}" and "/" not in key
    is_choice = probe.form == "selected" and one.tunable.partition(":")[0] == "thp"
    step = undo[0]
    if step.identity or not (is_key or is_choice) or not all(map(_WORDS.fullmatch, (now, one.before, step.value))):
        return None
    words = [now, one.before]
    if step.path != probe.path or step.value != one.before:
        words += [step.path, step.value]
    verb, twin = ("value", None) if isinstance(one, Change) else ("side", twin_of(key))
    if twin:
        words = [*[*words, "", ""][:4], f"/proc/sys/{twin.replace('.', '/')}"]
    return f"{verb} {shell_quote(probe.path)}", " ".join(map(_quoted, words))


def _quoted(text: str) -> str:
    return shell_quote(text) if text else "''"


def _file_context(file: FileChange) -> dict[str, str | None] | None:
    """What the template asks of a file; None for rules of classes, and for text that is not to be printed as it is."""
    if file.path == APPEARING or (file.before is not None and _TEXT.fullmatch(file.before) is None):
        return None
    return {
        "path": file.path,
        "sum": cksum(file.after),
        "before": None if file.before is None else re.sub(r"(?<=[^\n])\Z", "\n", file.before.decode("ascii")),
        "sum_before": "" if file.before is None else cksum(file.before),
        "mode": f"{file.undo.mode:04o}",
        "owner": f"{file.uid}:{file.gid}",
        "tail": "".join(f" {shell_quote(directory)}" for directory in file.new_directories),
    }


def cksum(content: bytes) -> str:
    """What cksum(1) prints of standard input: the CRC of POSIX, and the size in bytes."""
    size, value = len(content), 0
    length = bytes([size >> 8 * place & 0xFF for place in range((size.bit_length() + 7) // 8)])
    for byte in content + length:
        value = value << 8 & 0xFFFFFFFF ^ _TABLE[value >> 24 ^ byte]
    return f"{value ^ 0xFFFFFFFF} {size}"


def _table_entry(byte: int) -> int:
    value = byte << 24
    for _ in range(8):
        value = value << 1 ^ (0x04C11DB7 if value & 0x80000000 else 0)
    return value & 0xFFFFFFFF


_TABLE = tuple(map(_table_entry, range(256)))
