"""A run that was cut short (its controller killed, the network gone), resumed.

What the journal says about a wave that was open is not believed: its hosts are asked. One that awaits confirmation
is kept where the gate had held, else rolled back; one that has rolled back is applied again; one that is kept is done.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from advisor.fleet.runs.executor import Hands, Result, Say, end_orphans
from advisor.fleet.runs.journal import Resumed, RunJournal, RunRecord, WaveEnded
from advisor.fleet.runs.reconcile import FleetRollback, make_host_done, settle_transactions
from advisor.snapshot.remote.store import Sought


def take_up(hands: Hands, journal: RunJournal, run: RunRecord, say: Say) -> frozenset[str]:
    """Settle the wave that was open. Returns the hosts that are done; raises nothing for hosts that cannot be settled,
    which are named and journalled as unknown."""
    ended = end_orphans(hands.directory)
    if ended:
        say(
            f"ended {ended} process of the interrupted run"
            if ended == 1
            else f"ended {ended} processes of the interrupted run"
        )
    journal.write(Resumed(time.time()))
    states = {name: Result(name, one.state, one.transaction, one.message) for name, one in run.hosts.items()}
    # The hosts of the open wave, and those that an earlier part of the run left open.
    named = list(run.open_wave.hosts) if run.open_wave else []
    more = [name for name, one in run.hosts.items() if one.state in ("unknown", "awaiting-confirmation")]
    names = list(dict.fromkeys([*named, *more]))
    if names:
        wave = run.open_wave.wave if run.open_wave else 0
        say(f"asking the hosts of wave {wave}: {', '.join(names)}")
        _settle_wave(hands, journal, run, wave, {name: run.sought[name] for name in names}, states, say)
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
    say: Say,
) -> None:
    # Whether the gate of the open wave had held before the run was cut short.
    gates = [gate for gate in run.gates if gate.wave == wave and run.open_wave is not None]
    began = run.open_wave.time if run.open_wave else 0.0
    last = gates[-1] if gates else None
    held = last is not None and last.held and last.time >= began
    for result in settle_transactions(hands, wanted, seconds=0):
        states[result.host] = result
        say(f"{result.host}: {_WORDS.get(result.state, result.state)}")
        if result.state != "awaiting-confirmation":
            journal.write(make_host_done(hands, wave, "apply", result))
    waiting = [name for name in wanted if states[name].state == "awaiting-confirmation"]
    if held and waiting:
        for result in hands.do("confirm", waiting):
            states[result.host] = result
            if result.state == "applied":
                journal.write(make_host_done(hands, wave, "confirm", result))
                say(f"{result.host}: kept")
    left = {name: known for name, known in wanted.items() if states[name].state not in _SETTLED}
    window = float(run.asked.confirm_within)
    FleetRollback(hands, journal, states, say, window_seconds=window).run(wave, left)


_SETTLED = ("applied", "rolled-back", "failed", "unchanged", "refused")
_WORDS = {
    "applied": "changed, and kept",
    "awaiting-confirmation": "changed, awaiting confirmation",
    "rolled-back": "rolled back",
    "failed": "not begun",
}
