"""The rollback of a plan of kernel parameters and files as a script that a person reads before running it.

What is undone stands at its top, item by item; below it are only the functions that these items need. Plans with links,
devices, services, layers or values that move one another have `rollback_script.self_contained_script`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter

from advisor.facts.system.identity import INITIAL
from advisor.host import ReadCommand, ReadEthtool, ReadFile, SetEthtool, SetMtu, SetTxqueuelen, WriteFile
from advisor.host.kernel_text import printed
from advisor.host.patterns import lazy_regex
from advisor.planning.records import NOWHERE, Change, FileChange, Origin, Plan
from advisor.shell.quote import LINK, shell_quote
from advisor.shell.rollback_script import coupled_changes, mark_fields, on_link
from advisor.shell.templates import only_used, render_shell
from advisor.tunables import namespace_of
from advisor.tunables.preflight import SideEffect, link_of
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
    marks = {mark.name: mark_fields(mark) for mark in plan.links}
    marked = [(marks.get(link_of(one.tunable) or ""), one) for one in items]
    values = [_value_words(one, after) for mark, one in marked if mark is None]
    on_links = [(" ".join(map(_quoted, mark)), _item_words(one, mark, after)) for mark, one in marked if mark]
    files = [_file_context(file) for file in reversed(plan.files)]
    kinds = {namespace_of(one.tunable) for one in items}
    inodes = plan.namespace or {}
    if inodes and not (origin.boot_id and inodes.keys() == kinds == {"net"} and not files):
        return None
    if coupled_changes(plan) or None in values or None in files or None in dict(on_links).values():
        return None
    listed = [one for one in values if one is not None]
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
            "on_links": [(place, [words for _, words in own]) for place, own in groupby(on_links, itemgetter(0))],
            "has_links": bool(on_links),
            "forms": {form for _, one in marked for form in (one.probe.form.partition(":")[0],)},
            "sides": any(name.startswith("side ") for name, _ in listed),
            "choices": any(isinstance(one.probe, ReadFile) and one.probe.form == "selected" for one in items),
            "others": any(
                one.undo != (WriteFile(one.probe.path, one.before),)
                for mark, one in marked
                if mark is None and isinstance(one.probe, ReadFile)
            ),
            "made": any(file["before"] is None and file["tail"] for file in files if file is not None),
            "reloads": [
                " ".join(map(shell_quote, step.argv))
                for step in dict.fromkeys(step for file in plan.files for step in file.reload)
            ],
            "width": width,
            "mark": f"END_{fingerprint[:16]}",
            "net": "net" in kinds and not inodes,
            "net_inode": inodes.get("net"),
            "boot": origin.boot_id,
            "ipc": "ipc" in kinds,
            "first_ipc": INITIAL["ipc"],
            "state": "/var/lib/advisor" if directory is None else directory.rpartition("/transactions/")[0],
            "own": directory or "",
        },
    )
    end = text.index("\n", text.index(f"\n{_HOW}") + 1) + 1
    return text[:end] + only_used(text[end:], text[:end]).replace("@SUM@", cksum(text[:end].encode()), 1)


def _item_words(one: Change | SideEffect, mark: tuple[str, ...], after: Mapping[str, str]) -> str | None:
    """What ``item`` of the template is called with for a value of a link; None for one that it cannot restore."""
    probe, undo = on_link(one, mark, one.undo)
    now, way = (one.after, "value") if isinstance(one, Change) else (after.get(one.tunable, ""), "moves")
    if isinstance(one, SideEffect):
        way = "keeps" if one.keeps else "coupled" if one.coupled else "resets" if one.resets else way
    match probe, undo:
        case ReadFile(path, "words", None), (SetMtu(),) if way in ("value", "moves"):
            read = ["file", path, "ip", "link", "set", "dev", LINK, "mtu", one.before]
        case ReadFile(path, "words", None), (SetTxqueuelen(),) if way == "value":
            read = ["file", path]
        case ReadFile(path, "words", None), (WriteFile(place, value, None),) if (place, value) == (path, one.before):
            is_own = way == "value" or (way == "coupled" and path == f"/proc/sys/net/ipv6/conf/{LINK}/mtu")
            read = ["file", path] if is_own and "/queues/" not in path else []
        case ReadEthtool(), (SetEthtool() as step,) if way in ("value", "moves"):
            read = [probe.argv[1], "|".join(map(str, printed(probe.group, probe.key))), *step.argv]
        case ReadCommand(_, "addresses"), _ if way == "keeps":
            read = ["addresses", "-"]
        case ReadCommand(_, "routes:4" | "routes:6"), _ if way == "keeps":
            read = ["routes", probe.form[-1]]
        case _:
            read = []
    words = [one.tunable, now, one.before, way, *read]
    if not read or not all(_WORDS.fullmatch(word.replace(LINK, "")) for word in words):
        return None
    return " ".join(map(_quoted, words)).replace(LINK, '"$link"')


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
