"""The transactions of a captured host, from its own journals: what ``advisor status`` and ``find_drift`` say there.

The same journal reader and the same comparison as on the host itself; what differs is where the bytes come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from advisor.errors import InvalidInputError, PermissionDeniedError, UsageError
from advisor.facts.block.filesystems import parse_block_sizes
from advisor.facts.network.ethtool_text import PARSERS, kernel_feature_names, parse_ethtool_features
from advisor.host import Completed, Host, Missing
from advisor.host.commands import DEADLINE_SECONDS
from advisor.host.ethtool import UNSUPPORTED, Answer
from advisor.host.patterns import lazy_regex
from advisor.shell.state_table import NOTE, OPEN_FILES, OUTCOME
from advisor.transaction.journal import (
    STATE_DIRECTORY,
    Record,
    Store,
    decode_journal,
    replay_entries,
    sequence_of,
    with_note,
    with_watchdog_files,
)
from advisor.transaction.status import Status, find_drift
from advisor.transaction.watchdog import TransactionFiles, parse_outcome

# What cp(1) says about files that it could not copy: of GNU coreutils, old and new, and of busybox.

_PATHLESS = lazy_regex(r"(?m)^cp: read error: ([A-Z][^\n]*)$")
_REASON = lazy_regex(r"(?: to [^\n]*?| for reading)?: ([A-Z][^:'\n]*)")
_PLAIN = lazy_regex(r"[`'](\./[^\n]*?)'(?: to [^\n]*?| for reading)?: ([A-Z][^:'\n]*)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
MAX_BYTES = 4 << 20


class CopyErrors(NamedTuple):
    """``reasons`` by the path that was copied (``./sys/…``); ``pathless`` is one that came without its path."""

    reasons: dict[str, str]
    pathless: str | None


def parse_copy_errors(text: str) -> CopyErrors:
    """The errors in what cp printed; lines of another shape are passed over."""
    reasons: dict[str, str] = {}
    for line in text[:MAX_BYTES].split("\n"):
        found = _parse_error(line)
        if found:
            reasons[found[0]] = found[1]
    pathless = _PATHLESS.search(text[:MAX_BYTES])
    return CopyErrors(reasons, pathless[1] if pathless else None)


def _parse_error(line: str) -> tuple[str, str] | None:
    if not line.startswith("cp: "):
        return None
    at = next((place for sign in ("'./", '"./') if (place := line.find(sign)) >= 0), -1)
    if at >= 0:
        word, end = _read_word(line, at)
        if found := _REASON.fullmatch(line, end):
            return word, found[1]
    plain = _PLAIN.search(line)
    return (plain[1], plain[2]) if plain else None


def _read_word(text: str, at: int) -> tuple[str, int]:
    """A word in the quotes of a shell, and where it ends."""
    parts: list[str] = []
    while at < len(text):
        if text.startswith("$'", at) and (end := text.find("'", at + 2)) > 0:
            parts.append(_unescape_word(text[at + 2 : end]))
        elif text[at] in "'\"" and (end := text.find(text[at], at + 1)) > 0:
            parts.append(text[at + 1 : end])
        elif text[at] == "\\" and at + 1 < len(text):
            end = at + 1
            parts.append(text[end])
        else:
            break
        at = end + 1
    return "".join(parts), at


def _unescape_word(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        octal = found[1]
        if octal[0] in "01234567":
            return bytes([int(octal, 8) & 0xFF]).decode("utf-8", "surrogateescape")
        return _ESCAPED.get(octal, octal)

    return re.sub(r"\\([0-7]{1,3}|.)", one, text)


# Answers to the questions of a scan and of plans, from the fewer and broader ones that a capture asked.

Answers = Mapping[tuple[str, ...], "Completed | Missing"]

_SHOW = ("systemctl", "show")
_UNITS = (*_SHOW, "--no-pager")
_STAT = ("stat", "--file-system", "--format=%S %n", "--")
_DRIVER = frozenset({"driver", "version", "firmware", "bus"})
_LINE = lazy_regex(r"[ \t]*([^:\n]+): (on|off)(?: \[(fixed|requested on|requested off)[^\n]*)?[^\n]*")


class CapturedCommands:
    """The commands of a capture: those that were run as they were asked, and those that follow from others."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._units = _parse_units(answers)

    def run(
        self, argv: Sequence[str], *, timeout: float = DEADLINE_SECONDS, stdin: str | None = None
    ) -> Completed | Missing:
        words = tuple(argv)
        answer = self._answers.get(words)
        if answer is not None:
            return answer
        if words[:2] == _SHOW and "--" in words:
            # `systemctl show` of some units, from that of all.
            if isinstance(self._units, Missing):
                return self._units
            at = words.index("--")
            wanted = [name for word in words[2:at] for name in word.removeprefix("--property=").split(",")]
            return Completed(0, "\n".join(self._show_unit(unit, wanted) for unit in words[at + 1 :]), "")
        if words[: len(_STAT)] == _STAT:
            return self._block_sizes(words[len(_STAT) :])
        return Missing("absent", f"{words[0]} is not installed")

    def _show_unit(self, unit: str, wanted: Sequence[str]) -> str:
        assert not isinstance(self._units, Missing)
        known = self._units.get(unit, {"Id": unit, "LoadState": "not-found"})
        return "".join(f"{name}={known[name]}\n" for name in known if name in wanted)

    def _block_sizes(self, targets: Sequence[str]) -> Completed | Missing:
        asked = next((one for words, one in self._answers.items() if words[: len(_STAT)] == _STAT), None)
        if asked is None:
            return Missing("absent", "stat was not asked about these")
        if isinstance(asked, Missing):
            return asked
        sizes = parse_block_sizes(asked.stdout)
        return Completed(asked.rc, "".join(f"{sizes[one]} {one}\n" for one in targets if one in sizes), asked.stderr)


def _parse_units(answers: Answers) -> Mapping[str, Mapping[str, str]] | Missing:
    """Properties by unit; those that ``systemctl show`` printed for every service that is loaded."""
    asked = next((one for words, one in answers.items() if words[:3] == _UNITS), None)
    if asked is None:
        return Missing("absent", "systemctl is not installed")
    if isinstance(asked, Missing):
        return asked
    if asked.rc:
        return asked.failure("systemctl")
    blocks = (dict(_parse_properties(block)) for block in re.split(r"\n\n+", asked.stdout))
    return {block["Id"]: block for block in blocks if "Id" in block}


def _parse_properties(block: str) -> Iterator[tuple[str, str]]:
    for line in block.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            yield name, value


def ethtool_answers(answers: Answers) -> dict[tuple[str, str], Answer | Missing]:
    """What the drivers said, by link and query as `Host.ethtool` names it, from what ethtool(8) printed."""
    queries = {options[0]: what for what, (options, _) in PARSERS.items()}
    found: dict[tuple[str, str], Answer | Missing] = {}
    for words, one in answers.items():
        if words[0] != "ethtool" or len(words) != 3:
            continue
        option, link = words[1:]
        if option == "-k":
            found |= {(link, what): answer for what, answer in _parse_features(one).items()}
        elif option in queries:
            found[link, queries[option]] = _parse_ethtool(one, queries[option])
    return found


def _answer_text(one: Completed) -> str:
    # Complaints are on standard error.
    return f"{one.stderr}\n{one.stdout}"


def _parse_ethtool(one: Completed | Missing, what: str) -> Answer | Missing:
    if isinstance(one, Missing):
        return one
    answer = PARSERS[what][1](_answer_text(one))
    if isinstance(answer, Missing):
        return UNSUPPORTED if answer.is_absent else answer
    return {key: value for key, value in answer.items() if key in _DRIVER} if what == "driver" else answer


def _parse_features(one: Completed | Missing) -> dict[str, Answer | Missing]:
    """Features that are on, that can be changed, and that were asked for."""
    if isinstance(one, Missing):
        return dict.fromkeys(("features", "changeable", "requested"), one)
    printed = parse_ethtool_features(_answer_text(one))
    if isinstance(printed, Missing):
        return dict.fromkeys(("features", "changeable", "requested"), printed)
    changeable: dict[str, bool] = {}
    requested: dict[str, bool] = {}
    for name, state, more in _LINE.findall(one.stdout):
        if name in printed:
            changeable[name] = more != "fixed"
            requested[name] = more == "requested on" if more.startswith("requested") else state == "on"
    return {
        "features": dict(kernel_feature_names(printed)),
        "changeable": dict(kernel_feature_names(changeable)),
        "requested": dict(kernel_feature_names(requested)),
    }


class CapturedStore(Store):
    """A `Store` that can be asked and not written to: that of a capture made by root, by a command that looks there.

    Every question raises PermissionDeniedError where the capture was not made by root, InvalidInputError for a journal
    that is damaged.
    """

    def __init__(self, host: Host, directory: str = STATE_DIRECTORY) -> None:
        super().__init__(directory)
        self._host = host

    def read_records(self, *, with_closed: bool = True) -> tuple[Record, ...]:
        """Every transaction, oldest first, as it stood when the capture was made."""
        place = f"{self.directory}/transactions"
        names = self._host.listdir(place)
        if isinstance(names, Missing):
            if names.is_absent and self._host.is_root:
                return ()
            raise PermissionDeniedError(f"{place}: {names.why}", hint="only root on that host can read it")
        known = sorted(filter(sequence_of, names), key=lambda name: (sequence_of(name), name))
        found = (self._read_captured(f"{place}/{name}", name) for name in known)
        return tuple(record for record in found if record is not None)

    def _read_captured(self, place: str, name: str) -> Record | None:
        data = self._host.read_bytes(f"{place}/journal")
        if isinstance(data, Missing):
            if data.is_absent:
                return None
            raise InvalidInputError(f"{place}/journal: {data.why}")
        record = replay_entries(name, decode_journal(data, f"{place}/journal"))
        if record is None:
            return None
        note = self._host.read_bytes(f"{place}/{NOTE}")
        text = "" if isinstance(note, Missing) else note.decode("ascii", "replace")
        return with_note(with_watchdog_files(record, captured_standing(self._host, place)), text, len(data))


def captured_standing(host: Host, place: str) -> TransactionFiles:
    """How far the transaction in the directory ``place`` was when the capture was made."""
    text = host.read(f"{place}/{OUTCOME}")
    outcome = None if isinstance(text, Missing) else parse_outcome(text + "\n")
    if outcome is not None:
        return TransactionFiles(None, None, outcome)
    opened = next((name for name in OPEN_FILES if host.exists(f"{place}/{name}")), None)
    return TransactionFiles(opened, _seconds_left(host, place) if opened == "pending" else None, None)


def _seconds_left(host: Host, place: str) -> float | None:
    """Until the watchdog rolls it back; None where it does not wait, or waited in an earlier boot.

    0 where the capture does not hold that host's uptime: that it waits is known, for how long is not.
    """
    limit, boot = host.read(f"{place}/deadline"), host.read(f"{place}/boot")
    if isinstance(limit, Missing) or boot != host.read("/proc/sys/kernel/random/boot_id"):
        return None
    uptime = host.read("/proc/uptime")
    try:
        return max(0.0, float(limit) - float("" if isinstance(uptime, Missing) else uptime.partition(" ")[0]))
    except ValueError:
        return 0.0


def captured_status(host: Host, *, only: Iterable[str] | None = None) -> Status:
    """Every transaction of a captured host (or ``only`` those ids), and the drift of the active ones.

    Raises as `CapturedStore` does; UsageError for an id that the host does not have.
    """
    records = CapturedStore(host).read_records()
    if only is not None:
        wanted = {sequence_of(one) for one in only}
        missing = wanted - {sequence_of(one.id) for one in records}
        if missing:
            raise UsageError(f"there is no transaction {min(missing):04d} on that host")
        records = tuple(one for one in records if sequence_of(one.id) in wanted)
    return Status(records, find_drift(host, records))


class Sought(msgspec.Struct, frozen=True):
    """A transaction by the fingerprint of its plan, later than those that were there when the plan was made (by the
    running number of the last one)."""

    fingerprint: str
    after: int = 0

    def among(self, records: Iterable[Record]) -> Record | None:
        """The latest one, None where it was never begun."""
        later = [one for one in records if sequence_of(one.id) > self.after]
        return next((one for one in reversed(later) if one.plan.fingerprint == self.fingerprint), None)
