"""What state a host is really in, asked of the host itself: by its capture, and by nothing that was only remembered;
and a run that was cut short (its controller killed, the network gone), resumed.

What the journal says about a wave that was open is not believed: its hosts are asked. One that awaits confirmation is
kept where the gate had held, else rolled back; one that has rolled back is applied again; one that is kept is done.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from advisor.errors import AdvisorError
from advisor.fleet.runs.executor import Hands, Result, end_orphans
from advisor.fleet.runs.journal import HostDone, HostState, Resumed, RunJournal, RunRecord, Verb, WaveEnded
from advisor.fleet.runs.planning import CapturedHost
from advisor.host.numbers import count_noun
from advisor.shell.state_table import State
from advisor.snapshot.archive import open_snapshot
from advisor.snapshot.remote.store import CapturedStore, Sought
from advisor.transaction.journal import Record

MARGIN_SECONDS = 30.0
"""For a watchdog to roll back, after its window is over."""
_PAUSE_SECONDS = 2.0
_ATTEMPTS = 3

_STATES: Mapping[State, HostState] = {
    "applied": "applied",
    "awaiting-confirmation": "awaiting-confirmation",
    "rolled-back": "rolled-back",
    "unfinished": "unknown",
    "kept-external": "unknown",
}


def settle_transactions(hands: Hands, wanted: Mapping[str, Sought], *, seconds: float) -> Iterator[Result]:
    """What became of these transactions, by host.

    A host that is still at it is asked again for a while. With ``seconds``, so is one that does not answer or waits for
    a confirmation, until that time and a margin for its watchdog are over.
    """
    end = time.monotonic() + seconds + MARGIN_SECONDS
    left = [*wanted]
    while left:
        found = hands.capture(left)
        is_over = time.monotonic() >= end
        again = []
        for name in left:
            result = find_result(found[name], wanted[name])
            waits = result.state == "awaiting-confirmation" or found[name].archive is None
            if not is_over and (seconds > 0 if waits else not result.is_sure):
                again.append(name)
            else:
                yield result
        left = again
        if left:
            time.sleep(_PAUSE_SECONDS)


def find_result(captured: CapturedHost, sought: Sought) -> Result:
    """What a capture says about a transaction. Not sure where the host is silent, or still at it."""
    if captured.archive is None:
        return Result(captured.name, "unknown", message=captured.message, is_sure=False)
    try:
        host = open_snapshot(captured.archive)
    except AdvisorError as error:
        return Result(captured.name, "unknown", message=error.message, is_sure=False)
    try:
        record = sought.among(CapturedStore(host).read_records())
    except AdvisorError as error:
        return Result(captured.name, "unknown", message=error.message)
    if record is None:
        return Result(captured.name, "failed", message="nothing was begun there")
    state = _STATES.get(record.state)
    if state is None:
        return Result(captured.name, "unknown", record.id, f"{record.state} still", is_sure=False)
    return Result(captured.name, state, record.id, _describe_record(record))


def _describe_record(record: Record) -> str:
    if record.state in ("unfinished", "kept-external"):
        return "; ".join(f"{what} is not as before: {why}" for what, why in record.kept)
    return f"rolled back: {record.why_undone}" if record.state == "rolled-back" and record.why_undone else ""


class FleetRollback:
    """Rolls hosts back and journals the result of each."""

    def __init__(self, hands: Hands, journal: RunJournal, states: dict[str, Result], *, window_seconds: float) -> None:
        self._hands = hands
        self._journal = journal
        self._states = states
        self._window = window_seconds

    def run(self, wave: int, wanted: Mapping[str, Sought], *, force: bool = False) -> None:
        """Hosts by name, each with the transaction to roll back.

        Who is busy is asked again; who does not answer is waited for until its own watchdog has had its time.
        """
        left = self._request_rollback(wave, [*wanted], force=force)
        for _ in range(_ATTEMPTS):
            found = (
                [*settle_transactions(self._hands, {name: wanted[name] for name in left}, seconds=0)] if left else []
            )
            left = []
            for result in found:
                if result.state in ("rolled-back", "failed"):
                    self._note_result(wave, result)
                else:
                    left.append(result.host)
            in_force = [one.host for one in found if one.state in ("applied", "awaiting-confirmation")]
            if not in_force:
                break
            kept = self._request_rollback(wave, in_force, force=force)
            left = [name for name in left if name not in in_force or name in kept]
        for result in settle_transactions(self._hands, {name: wanted[name] for name in left}, seconds=self._window):
            self._note_result(wave, self._judge_result(result))

    def _request_rollback(self, wave: int, names: Sequence[str], *, force: bool) -> list[str]:
        """Those of the hosts that do not say that they are back."""
        left = []
        for result in self._hands.do("rollback", names, *(["--force"] if force else [])):
            if result.state == "rolled-back" and result.is_sure:
                self._note_result(wave, result)
            else:
                left.append(result.host)
                self._states[result.host] = msgspec.structs.replace(result, is_sure=False)
        return left

    def _judge_result(self, result: Result) -> Result:
        """On a host that refuses the rollback it is still active; on one that is silent, or half-way, it may be."""
        if result.state in ("rolled-back", "failed"):
            return result
        before = self._states.get(result.host)
        said = [before.message if before else "", result.message]
        why = " · ".join(dict.fromkeys(filter(None, said))) or result.state
        state: HostState = "applied" if result.state == "applied" else "unknown"
        return Result(result.host, state, result.transaction or (before.transaction if before else None), why)

    def _note_result(self, wave: int, result: Result) -> None:
        self._states[result.host] = result
        entry = make_host_done(self._hands, wave, "rollback", result)
        self._journal.note(entry)
        if result.state == "applied":
            self._hands.say(f"{result.host}: still active: {result.message}")
        elif entry.by_hand:
            self._hands.say(f"{result.host}: not known to be back: {result.message}; by hand: {entry.by_hand}")
        else:
            self._hands.say(f"{result.host}: rolled back")


def make_host_done(hands: Hands, wave: int, verb: Verb, result: Result) -> HostDone:
    """A result as the journal of a run has it."""
    command = hands.by_hand(result.host) if result.state == "unknown" else None
    return HostDone(
        time.time(), wave, result.host, verb, result.state, result.transaction, result.message, by_hand=command
    )


def take_up(hands: Hands, journal: RunJournal, run: RunRecord) -> frozenset[str]:
    """Settle the wave that was open. Returns the hosts that are done; raises nothing for hosts that cannot be settled,
    which are named and journalled as unknown."""
    ended = end_orphans(hands.directory)
    if ended:
        hands.say(f"ended {count_noun(ended, 'process')} of the interrupted run")
    journal.write(Resumed(time.time()))
    states = {name: Result(name, one.state, one.transaction, one.message) for name, one in run.hosts.items()}
    # The hosts of the open wave, and those that an earlier part of the run left open.
    named = list(run.open_wave.hosts) if run.open_wave else []
    more = [name for name, one in run.hosts.items() if one.state in ("unknown", "awaiting-confirmation")]
    names = list(dict.fromkeys([*named, *more]))
    if names:
        wave = run.open_wave.wave if run.open_wave else 0
        hands.say(f"asking the hosts of wave {wave}: {', '.join(names)}")
        _settle_wave(hands, journal, run, wave, {name: run.sought[name] for name in names}, states)
        is_open = any(states[name].state == "unknown" for name in names)
        is_kept = any(states[name].state == "applied" for name in names)
        journal.write(WaveEnded(time.time(), wave, "open" if is_open else "confirmed" if is_kept else "rolled-back"))
    return frozenset(name for name, one in states.items() if one.state == "applied")


def _settle_wave(
    hands: Hands,
    journal: RunJournal,
    run: RunRecord,
    wave: int,
    wanted: Mapping[str, Sought],
    states: dict[str, Result],
) -> None:
    # Whether the gate of the open wave had held before the run was cut short.
    gates = [gate for gate in run.gates if gate.wave == wave and run.open_wave is not None]
    began = run.open_wave.time if run.open_wave else 0.0
    last = gates[-1] if gates else None
    held = last is not None and last.held and last.time >= began
    for result in settle_transactions(hands, wanted, seconds=0):
        states[result.host] = result
        hands.say(f"{result.host}: {_WORDS.get(result.state, result.state)}")
        if result.state != "awaiting-confirmation":
            journal.write(make_host_done(hands, wave, "apply", result))
    waiting = [name for name in wanted if states[name].state == "awaiting-confirmation"]
    if held and waiting:
        for result in hands.do("confirm", waiting):
            states[result.host] = result
            if result.state == "applied":
                journal.write(make_host_done(hands, wave, "confirm", result))
                hands.say(f"{result.host}: kept")
    left = {name: known for name, known in wanted.items() if states[name].state not in _SETTLED}
    window = float(run.asked.confirm_within)
    FleetRollback(hands, journal, states, window_seconds=window).run(wave, left)


_SETTLED = ("applied", "rolled-back", "failed", "unchanged", "refused")
_WORDS = {
    "applied": "changed, and kept",
    "awaiting-confirmation": "changed, awaiting confirmation",
    "rolled-back": "rolled back",
    "failed": "not begun",
}
