"""Node records of open-iscsi: which of them ``for-each = "records"`` selects, and which keep an old value. Pure.

A record is the file that ``iscsiadm -m node -o update`` edits (open-iscsi README, 5.1); a rollback restores every byte
of it, with nothing installed. It is read at each login.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from advisor.errors import UsageError
from advisor.facts.host_facts import Facts
from advisor.facts.iscsi import IscsiNode
from advisor.facts.rare_subjects import ISCSI_RECORDS, ISCSID_CONF
from advisor.planning.records import Change
from advisor.planning.selection import Selected
from advisor.profiles.profile import Wanted
from advisor.rules.iscsi_sessions import portal_of
from advisor.tunables.file import FileKey

NO_RECORDS = "this host has no node record of open-iscsi, or none that could be listed"
_TIMEOUT = "node.session.timeo.replacement_timeout"
_NAMED = 8


def select_records(wanted: Wanted, facts: Facts) -> tuple[Selected, ...]:
    """Every node record of this host, and each that could not be read with the reason."""
    key = wanted.tunable.rpartition("}:")[2]
    nodes = facts.iscsi.nodes if facts.iscsi else ()
    unread = facts.iscsi.unread_nodes if facts.iscsi else {}
    return (
        *(_select_record(node, key, facts) for node in nodes),
        *(
            _skip_record(path, f"it cannot be read ({why}) and keeps what it has", unknown=True)
            for path, why in unread.items()
        ),
    )


def _select_record(node: IscsiNode, key: str, facts: Facts) -> Selected:
    try:
        FileKey.parse(f"{node.path}:{key}")
    except UsageError:
        return _skip_record(
            node.path, "its name has signs that cannot be named here: " + update_command(node, key, "VALUE")
        )
    if key == _TIMEOUT and not _is_multipathed(node, facts):
        return _skip_record(node.path, "no session to its target has disks below multipath, for which it is right")
    return Selected({"record": node.path}, why=f"{node.target} by {node.portal}.")


def _skip_record(path: str, reason: str, *, unknown: bool = False) -> Selected:
    return Selected({"record": path}, refusal=reason, state="unknown" if unknown else "not-applicable")


def _is_multipathed(node: IscsiNode, facts: Facts) -> bool:
    sessions = facts.iscsi.sessions if facts.iscsi else ()
    paths = set(facts.iscsi.multipath_disks) if facts.iscsi else set[str]()
    return any(one.target == node.target and paths.intersection(one.disks) for one in sessions)


def update_command(node: IscsiNode, key: str, value: str) -> str:
    """The command that changes one key of one record."""
    return f"{_node_command(node)} -o update -n {shlex.quote(key)} -v {shlex.quote(value)}"


def _node_command(node: IscsiNode) -> str:
    which = f"iscsiadm -m node -T {shlex.quote(node.target)} -p {shlex.quote(portal_of(node.portal))}"
    return which if node.interface == "default" else f"{which} -I {shlex.quote(node.interface)}"


def record_notes(changes: Iterable[Change], facts: Facts) -> tuple[str, ...]:
    """The logins that changed records wait for, and the records that keep another value than iscsid.conf gets."""
    listed = tuple(changes)
    # Manual steps: a session keeps what it negotiated until its next login.
    login_notes: list[str] = []
    changed = {path for change in listed if (path := _record_path(change.tunable)) is not None}
    nodes = [node for node in (facts.iscsi.nodes if facts.iscsi else ()) if node.path in changed]
    for node in nodes[:_NAMED]:
        command = _node_command(node)
        sessions = [one for one in (facts.iscsi.sessions if facts.iscsi else ()) if one.target == node.target]
        if not sessions:
            care = " (no session of it is there now)"
        elif _is_multipathed(node, facts) and len(sessions) > 1:
            care = " (multipath -ll has to show the path as active before the next)"
        else:
            care = " (it is the only path: unmount its file systems first)"
        login_notes.append(f"then, one path after the other: {command} --logout && {command} --login{care}")
    if len(nodes) > _NAMED:
        login_notes.append(f"and log out and in for {len(nodes) - _NAMED} more records in the same way")
    return (*login_notes, *_unchanged_records(listed, facts))


def _record_path(tunable: str) -> str | None:
    path = tunable.removeprefix("file:").rpartition(":")[0]
    return path if tunable.startswith("file:") and path.startswith(ISCSI_RECORDS) else None


def _unchanged_records(changes: tuple[Change, ...], facts: Facts) -> Iterator[str]:
    """iscsid.conf reaches records that are made from now on: those that exist are named where they have another
    value, or where what they have is not known."""
    if facts.iscsi is None:
        return
    own = {change.tunable for change in changes}
    for change in changes:
        found = re.fullmatch(rf"file:{re.escape(ISCSID_CONF)}:(.+)", change.tunable)
        if found:
            key = found[1]
            for node in facts.iscsi.nodes:
                has = node.settings.get(key)
                if has != change.after and f"file:{node.path}:{key}" not in own:
                    kept = f"{node.path} keeps {key} = {has}" if has else f"{node.path} keeps its own {key}"
                    yield f"{kept}, as iscsid.conf reaches new records alone: {update_command(node, key, change.after)}"
    if any(change.tunable.startswith(f"file:{ISCSID_CONF}:") for change in changes):
        for path, why in facts.iscsi.unread_nodes.items():
            yield f"{path} keeps what it has: it cannot be read ({why})"
