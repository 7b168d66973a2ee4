"""Node records of open-iscsi: which of them ``for-each = "records"`` selects, and which keep an old value. Pure.

A record is the file that ``iscsiadm -m node -o update`` edits (open-iscsi README, 5.1); a rollback restores every byte
of it, with nothing installed. It is read at each login.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

import msgspec

from advisor.errors import UsageError
from advisor.facts.block.arrays import Array
from advisor.facts.host_facts import Facts
from advisor.facts.remote.iscsi import IscsiNode
from advisor.facts.settings.site_settings import SiteSetting
from advisor.facts.unknown import ISCSI_RECORDS, ISCSID_CONF
from advisor.host import Missing
from advisor.planning.records import Change, SkipState
from advisor.planning.selectors import Selected
from advisor.profiles.profile import Values, Wanted
from advisor.rules.remote import multipath
from advisor.rules.remote.iscsi_sessions import portal_of
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


# Where a setting of multipath takes effect for the iSCSI maps of a host: what ``for-each = "maps"`` selects. Pure.

NO_MAPS = "no multipath map of this host has iSCSI disks"
BY_LINKS = "by-links"
TURNS = "rr_min_io"
"""The place of a tunable's id that is filled with the key by which the running kernel counts a turn."""
OTHER_KEY = "rr_min_io_rq"


_NEW_SECTIONS = ("defaults", "overrides")
_REQUEST_BASED = frozenset({"service-time", "queue-length"})


def select_maps(wanted: Wanted, values: Values, facts: Facts) -> tuple[Selected, ...]:
    """One line for each place of multipath.conf that holds for an iSCSI map; the reasons where nothing is to be
    written."""
    key = wanted.tunable.rpartition("/")[2]
    judge = _judge_selector if key == "path_selector" else _judge_turns
    found = [(array, judge(array, values, facts)) for array in multipath.iscsi_maps(facts)]
    if key == OTHER_KEY and multipath.turn_key(facts) != key:
        why = f"Linux {facts.host.kernel} goes by {multipath.turn_key(facts)}"
        return tuple(_drop_repeated([(array, _leave_place(None, why)) for array, _ in found]))
    names = {TURNS: multipath.turn_key(facts)}
    return tuple(msgspec.structs.replace(one, names={**one.names, **names}) for one in _drop_repeated(found))


def _drop_repeated(found: list[tuple[Array, Selected]]) -> Iterator[Selected]:
    """Each place once; what is to be written goes before what is left."""
    seen: dict[str, Selected] = {}
    for _, one in sorted(found, key=lambda pair: pair[1].refusal is not None):
        seen.setdefault(one.names["map"], one)
    yield from seen.values()


def _judge_turns(array: Array, values: Values, facts: Facts) -> Selected:
    """rr_min_io_rq (rr_min_io for old kernels): one request a turn, unless the kernel sees to it by itself."""
    key = multipath.turn_key(facts)
    won, turn = multipath.winning(facts, array, key), multipath.requests_per_turn(array)
    if multipath.sets_one_itself(facts):
        what = f" ({_describe_line(won)} has no effect)" if won is not None and won.value != "1" else ""
        return _leave_place(
            won,
            f"Linux {facts.host.kernel} sends one request a turn by itself since 4.6, whatever is configured{what}",
            "in-place",
        )
    doubt = multipath.unclear(facts, array, key)
    if doubt:
        return _leave_place(won, doubt, "unknown")
    if won is not None:
        return _set_place(won.path, won.scope, f"It holds for {array.name} at {_describe_line(won)}.")
    if turn is None or turn <= 1:
        return _leave_place(None, "no file sets it, and the default of 1 holds", "in-place")
    path, place = _new_place(array, facts)
    why = f"{array.name} has {turn:,} in its table, which no file sets: by multipath's default or its built-in entry."
    if place == "defaults":
        why += " Such an entry wins over defaults: see dmsetup table after multipathd reconfigure."
    return _set_place(path, place, why)


def _judge_selector(array: Array, values: Values, facts: Facts) -> Selected:
    """path_selector: what the owner chose is left where the links are equal."""
    asked = str(values.get("selector", BY_LINKS))
    if asked in _REQUEST_BASED and multipath.is_request_based(facts) is False:
        return _leave_place(None, f"Linux {facts.host.kernel} has no {asked}: it came with 2.6.31", "blocked")
    won, active = multipath.winning(facts, array, "path_selector"), multipath.selector(array)
    doubt = multipath.unclear(facts, array, "path_selector")
    if doubt:
        return _leave_place(won, doubt, "unknown")
    path, place = (won.path, won.scope) if won is not None else _new_place(array, facts)
    if asked != BY_LINKS:
        return _set_place(path, place, f"It was asked for with --set selector={asked}.", f"{asked} 0")
    current = won.value.partition(" ")[0] if won is not None else active
    at = f" at {_describe_line(won)}" if won is not None else f" in the table of {array.name}, set by no file,"
    if current is None:
        return _leave_place(
            None, "no file sets it, and what is active could not be read (dmsetup table needs root)", "unknown"
        )
    if current != "round-robin":
        return _leave_place(won, f"{current}{at} serves paths of any speed", "in-place")
    if multipath.is_request_based(facts) is False:
        return _leave_place(
            won, f"{current}{at} is left: Linux {facts.host.kernel} has no other (service-time: 2.6.31)"
        )
    speeds = multipath.link_speeds(facts, array)
    others = "--set selector=service-time changes it"
    if not speeds:
        return _leave_place(won, f"{current}{at} is left: the speeds of its links are not known; {others}", "by-hand")
    shown = ", ".join(f"{name} {speed:,} Mbit/s" for name, speed in speeds.items())
    if len(set(speeds.values())) == 1:
        return _leave_place(
            won, f"{current}{at} is left: its links are equal ({shown}), and it loads each alike; {others}"
        )
    return _set_place(path, place, f"The links of {array.name} are unequal: {shown}.")


def new_file(identity: str, value: str, live: Missing) -> str | None:
    """The manual step where /etc/multipath.conf does not exist; None for all other tunables."""
    place, _, key = identity.removeprefix(f"file:{multipath.CONF}:").partition("/")
    if not live.is_absent or not identity.startswith(f"file:{multipath.CONF}:") or place not in _NEW_SECTIONS:
        return None
    quoted = f'"{value}"' if " " in value else value
    lines = f"'{place} {{', '{key} {quoted}' and '}}'"
    after = "; a built-in entry for the storage wins over defaults: see dmsetup table" if place == "defaults" else ""
    return (
        f"{multipath.CONF} does not exist, and advisor creates none (with it, multipathd may take other disks): put "
        f"the three lines {lines} into a new one (each line by itself), then run multipathd reconfigure{after}"
    )


def _new_place(array: Array, facts: Facts) -> tuple[str, str]:
    """Where a line that no file has yet takes effect: a built-in entry for the storage wins over defaults."""
    section = multipath.device_section(facts, array)
    if section is not None:
        return section
    return multipath.CONF, "overrides" if multipath.has_overrides(facts) else "defaults"


def _set_place(path: str, place: str, why: str, value: str | None = None) -> Selected:
    # A section whose name has other signs is the only one, or the edit says that there are several.
    for each in (place, place.partition("[")[0]):
        try:
            FileKey.parse(f"{path}:{each}/path_selector")
        except UsageError:
            continue
        return Selected({"map": f"{path}:{each}"}, value=value, why=why)
    return _leave_place(None, f"{path}, section {place}: change it by hand", "by-hand")


def _leave_place(won: SiteSetting | None, reason: str, state: SkipState = "not-applicable") -> Selected:
    path, place = (won.path, won.scope) if won is not None else (multipath.CONF, "defaults")
    return Selected({"map": f"{path}:{place}"}, refusal=reason, state=state, before=won.value if won else None)


def _describe_line(won: SiteSetting | None) -> str:
    return f"{won.path}:{won.line} ({won.scope})" if won is not None else ""
