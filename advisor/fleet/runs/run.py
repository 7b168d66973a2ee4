"""A run: profiles carried out on many hosts, wave by wave, each host guarded by its own watchdog until it is confirmed.

A wave is applied, its gate asked, and only then confirmed. Whatever goes wrong, all of that wave is rolled back and the
run stops there; waves before it stay. A controller that is killed leaves each host of the wave to its watchdog, which
rolls it back when its window is over; `advisor.fleet.runs.executor` resumes the run.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from advisor.errors import AdvisorError, NotRestoredError
from advisor.fleet import counted_hosts
from advisor.fleet.engine import HostAnswer
from advisor.fleet.inventory import file_name
from advisor.fleet.runs.executor import GATE_SECONDS, FleetRollback, Hands, Result, make_host_done, settle_transactions
from advisor.fleet.runs.journal import Ended, GateDone, RunInterrupted, RunJournal, Verb, WaveBegun, WaveEnded
from advisor.fleet.runs.planning import (
    Baseline,
    EchoQuestion,
    FleetPlan,
    GateTarget,
    baseline_questions,
    carried_by,
    find_neighbourhood,
    has_llt,
    judge_answers,
    make_baseline,
    questions_after,
    targets_of,
)
from advisor.fleet.runs.waves import Wave
from advisor.fleet.scan import put_own
from advisor.host.signals import interruptible

COMMAND_SECONDS = 600
_IN_FORCE = ("applied", "awaiting-confirmation", "unknown")
_WENT_WELL = ("applied", "awaiting-confirmation", "unchanged")


class Options(msgspec.Struct, frozen=True):
    """How a run is carried out. ``confirm_within`` in seconds: how long each host waits before it rolls back."""

    confirm_within: int
    gate_command: str | None = None
    rollback_all: bool = False
    proof: tuple[str, ...] | None = None
    """The options of ``advisor prove`` on the canary; None for no proof."""


class FleetRun:
    """One run, its plan made and agreed to."""

    def __init__(self, hands: Hands, plan: FleetPlan, journal: RunJournal, options: Options) -> None:
        self._hands = hands
        self._plan = plan
        self._journal = journal
        self._options = options
        self._around = find_neighbourhood(plan.subjects.values())
        self._sought = {one.name: one.sought for one in plan.hosts}
        self._states: dict[str, Result] = {}
        self._done: list[str] = []
        self._not_back: set[str] = set()

    def go(self) -> int:
        """Every wave, until one fails. Returns the exit code.

        Raises `RunInterrupted` once all that was open is rolled back.

        The first signal stops it, and nothing stops the rollback.
        """
        with interruptible():
            code = self.run_waves()
        return finish_run(self._journal, self._plan) if code is None else code

    def run_waves(self) -> int | None:
        """Every wave, until one fails: its exit code, None where none did. Signals are left to the caller."""
        for wave in self._plan.waves.waves:
            if not self._run_wave(wave):
                return self._stop_run(wave)
        return None

    # -- one wave -------------------------------------------------------------------------------------------------

    def _run_wave(self, wave: Wave) -> bool:
        """Whether the wave is confirmed; if not, all of it has been rolled back, as far as that could be done."""
        self._hands.wave = f"wave {wave.number} of {len(self._plan.waves.waves)}"
        self._hands.say(f"{self._hands.wave}: {', '.join(wave.hosts)}")
        self._journal.write(WaveBegun(time.time(), wave.number, wave.hosts))
        try:
            before = self._measure_baselines(wave)
            for name in wave.hosts:
                # Until the host answers, as this may be interrupted here.
                self._states[name] = Result(name, "unknown", message="was being changed", is_sure=False)
            window = str(self._options.confirm_within)
            for result in self._hands.do("apply", wave.hosts, "--guard", "--confirm-within", window):
                self._note_result(wave, "apply", result)
            self._settle_hosts(wave, "apply", [name for name in wave.hosts if not self._states[name].is_sure])
            if not all(self._states[name].state in _WENT_WELL for name in wave.hosts):
                is_kept = False
            else:
                failing, passing = self._asked_again(wave, before)
                if not failing:
                    commands = self._run_gate_command(wave)
                    failing += commands
                    if self._options.gate_command and not commands:
                        passing.append(f"the gate command ended with 0 on {counted_hosts(len(wave.hosts))}")
                self._journal.write(GateDone(time.time(), wave.number, not failing, tuple(failing), tuple(passing)))
                for why in failing or (f"held, {len(passing)} asked and answered",) if passing or failing else ():
                    self._hands.say(f"gate of wave {wave.number}: {why}")
                is_kept = not failing and self._confirm_wave(wave)
        except BaseException as error:
            # A signal, a full disk, a fault here: while this process lives, no host is left to its watchdog.
            reason = str(error) or type(error).__name__
            self._journal.note(RunInterrupted(time.time(), reason))
            with contextlib.suppress(AdvisorError):
                self._roll_back(wave)
            self._end_wave(wave)
            self._journal.note(Ended(time.time(), self._exit_code(), "stopped", reason))
            if self._not_back:
                raise self._left_behind(reason) from error
            self._tell_left(wave)
            raise
        if not is_kept:
            self._roll_back(wave)
        self._end_wave(wave)
        return is_kept

    def _confirm_wave(self, wave: Wave) -> bool:
        waiting = [name for name in wave.hosts if self._states[name].state == "awaiting-confirmation"]
        for result in self._hands.do("confirm", waiting):
            if result.state == "applied":
                self._note_result(wave, "confirm", result)
        self._settle_hosts(wave, "confirm", [name for name in waiting if self._states[name].state != "applied"])
        return all(self._states[name].state in ("applied", "unchanged") for name in wave.hosts)

    def _roll_back(self, wave: Wave) -> None:
        opened = {name: self._sought[name] for name in wave.hosts if self._is_open(name)}
        window = float(self._options.confirm_within)
        self._not_back |= opened.keys()
        FleetRollback(self._hands, self._journal, self._states, window_seconds=window).run(wave.number, opened)
        self._not_back = {name for name in self._not_back if self._is_open(name)}

    def _is_open(self, name: str) -> bool:
        """Whether something is active on the host, or may be."""
        return name in self._states and self._states[name].state in _IN_FORCE

    def _end_wave(self, wave: Wave) -> None:
        states = {self._states[name].state for name in wave.hosts if name in self._states}
        outcome: Literal["confirmed", "rolled-back", "open"] = "rolled-back"
        if states & {"unknown", "awaiting-confirmation"} or self._not_back & {*wave.hosts}:
            outcome = "open"
        elif "applied" in states:
            outcome = "confirmed"
        self._journal.note(WaveEnded(time.time(), wave.number, outcome))
        if outcome == "confirmed":
            self._done += wave.hosts

    # -- the gate -------------------------------------------------------------------------------------------------

    def _measure_baselines(self, wave: Wave) -> dict[str, Baseline]:
        """What each host of the wave hears before it; empty where there is nothing to ask."""
        targets = {name: targets_of(self._plan.subjects[name], self._around) for name in wave.hosts}
        asking = [name for name in wave.hosts if targets[name] or has_llt(self._plan.subjects[name].facts.llt)]
        if not asking:
            return {}
        questions = {name: baseline_questions(targets[name]) for name in asking}
        answers = self._hands.ask(questions, seconds=0, label="gate-before")
        found = {name: make_baseline(targets[name], answers[name]) for name in asking if name in answers}
        self._tell_baseline(found, [name for name in asking if name not in found], targets)
        return found

    def _tell_baseline(
        self, found: Mapping[str, Baseline], silent: Sequence[str], targets: Mapping[str, Sequence[GateTarget]]
    ) -> None:
        for name, before in found.items():
            asked = len(targets[name])
            if asked and not before.answered:
                why = "has no ping that can" if before.unasked else f"hears none of {asked}"
                self._hands.say(f"{name}: {why}: no peer can confirm afterwards that the path still works")
            elif before.silent:
                listed = ", ".join(target.address for target in before.silent[:6])
                self._hands.say(f"{name}: {len(before.silent)} do not answer and will not be asked again: {listed}")
        for name in silent:
            self._hands.say(f"{name}: did not answer what its peers are; its gate is its own values alone")

    def _asked_again(self, wave: Wave, before: Mapping[str, Baseline]) -> tuple[list[str], list[str]]:
        carried = carried_by(self._plan.subjects.values(), [*self._done, *wave.hosts])
        questions = {name: questions_after(one, carried) for name, one in before.items()}
        passing, failing = self._judge_gate(questions, before)
        if failing:
            # LLT takes a moment to see its links again after their MTU has moved.
            passing, failing = self._judge_gate(questions, before)
        return failing, passing

    def _judge_gate(
        self, questions: Mapping[str, Sequence[EchoQuestion]], before: Mapping[str, Baseline]
    ) -> tuple[list[str], list[str]]:
        answers = self._hands.ask(questions, seconds=GATE_SECONDS, label="gate") if questions else {}
        passing = []
        failing = []
        for name, asked in questions.items():
            if name not in answers:
                failing.append(f"{name}: could not be asked after the change")
                continue
            good, bad = judge_answers(before[name], asked, answers[name])
            passing += [f"{name}: {one}" for one in good]
            failing += [f"{name}: {one}" for one in bad]
        return passing, failing

    def _run_gate_command(self, wave: Wave) -> list[str]:
        """Hosts on which the user's own gate command did not end with 0."""
        command = self._options.gate_command
        if command is None:
            return []
        answers = self._hands.run_text(command, wave.hosts, seconds=COMMAND_SECONDS)
        return [f"{name}: the gate command {why}" for name in wave.hosts if (why := _why_not(answers.get(name)))]

    # -- what is known --------------------------------------------------------------------------------------------

    def _note_result(self, wave: Wave, verb: Verb, result: Result) -> None:
        self._states[result.host] = result
        if result.is_sure:
            self._journal.write(make_host_done(self._hands, wave.number, verb, result))
        if result.state not in _WENT_WELL:
            self._hands.say(f"{result.host}: {verb}: {result.state}: {result.message}")

    def _settle_hosts(self, wave: Wave, verb: Verb, names: Sequence[str]) -> None:
        """Ask the hosts themselves where an answer was not certain."""
        for result in settle_transactions(self._hands, {name: self._sought[name] for name in names}, seconds=0):
            self._note_result(wave, verb, result)

    def _stop_run(self, wave: Wave) -> int:
        earlier = [one for one in self._plan.waves.waves if one.number < wave.number]
        for one in reversed(earlier) if self._options.rollback_all else ():
            self._hands.wave = f"wave {one.number}"
            self._hands.say(f"{self._hands.wave} is rolled back as well: {', '.join(one.hosts)}")
            self._roll_back(one)
            self._end_wave(one)
        self._journal.write(Ended(time.time(), self._exit_code(), "stopped", f"wave {wave.number} did not pass"))
        return self._exit_code()

    def _exit_code(self) -> int:
        return 5 if self._not_back else 4

    def _tell_left(self, wave: Wave) -> None:
        """What is active where a run was interrupted and is rolled back: no page follows that reports it."""
        run_id = self._journal.directory.name
        kept = [*(one.name for one in self._plan.hosts if one.state == "done"), *self._done]
        names = ", ".join(wave.hosts)
        self._hands.say(f"run {run_id}: nothing is active of wave {wave.number} ({names})")
        if kept:
            self._hands.say(f"changed and kept: {', '.join(kept)} (advisor fleet rollback {run_id})")
        self._hands.say(f"to resume it: advisor fleet apply --resume {run_id}")

    def _left_behind(self, reason: str) -> NotRestoredError:
        items = tuple((name, self._hands.by_hand(name)) for name in sorted(self._not_back))
        return NotRestoredError(f"{reason}; hosts not known to be back: {len(items)}", items=items)


def finish_run(journal: RunJournal, plan: FleetPlan) -> int:
    """Journal the end of a run whose waves are all confirmed; its exit code, 4 where a host was left out."""
    code = 4 if any(one.state in ("failed", "cannot") for one in plan.hosts) else 0
    journal.write(Ended(time.time(), code, "done"))
    return code


def _why_not(answer: HostAnswer | None) -> str | None:
    """In words, why a gate command did not end well; None where it did."""
    if answer is None:
        return "was not answered"
    if answer.state != "ok":
        return f"was not answered: {answer.message or answer.state}"
    return f"ended with {answer.rc}" if answer.rc else None


def write_scripts(hands: Hands, plan: FleetPlan) -> None:
    """The transaction script of every host that is to be changed, before any of them is."""
    for name in plan.changing:
        put_own(hands.scripts / (file_name(name) + ".sh"), plan.script(name))
