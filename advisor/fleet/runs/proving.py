"""A proof on the canary before any host is changed for good. It needs advisor, and what measures, on that host: a proof
cannot be run by a script alone.

The controller's profile is sent with it, and nothing is measured before the plan that it makes there is the plan that
was made for that host here. Canaries are asked one after the other: two that measure at a time over one peer, or on one
storage, would measure each other.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from advisor.errors import AdvisorError, NotRestoredError, RefusedError, UsageError
from advisor.fleet.engine import HostAnswer
from advisor.fleet.runs.executor import Hands
from advisor.fleet.runs.journal import Ended, ProofBegun, ProofDone, RunJournal, RunRecord
from advisor.fleet.runs.planning import FleetPlan
from advisor.host.signals import interruptible
from advisor.planning.records import Plan
from advisor.profiles.profile import profile_paths, read_profile_files
from advisor.profiles.requested import is_file_word, is_value_word, load_one
from advisor.shell.quote import shell_quote

LOOK_SECONDS = 60
PROVE_SECONDS = 4 * 3600
_END_SECONDS = 60
"""For a proof that is asked to end to restore every value: it ends what it measures first."""
_SETTLE_SECONDS = 180.0
"""For the watchdog of a proof that was killed to do so."""
_ABSENT = 127
_MAX_ANSWER_BYTES = 64 << 20
_NOT_BEGUN = {2: "cannot be made as asked", 3: "was refused", 6: "needs root"}


class SentProfile(msgspec.Struct, frozen=True):
    """A profile as it goes to a canary: its own file and those that it inherits from, or values, which need none."""

    name: str
    files: Mapping[str, bytes]
    values: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What asks for it there, in a script that has the files next to it."""
        return " ".join(map(shell_quote, self.values)) if self.values else f'"$here"/{self.name}.toml'


def read_sent_profile(words: Sequence[str]) -> SentProfile:
    """The one profile that a proof is made of, as its files are now. Raises UsageError for several, and what loading it
    raises."""
    if all(map(is_value_word, words)):
        asked = load_one(words)
        return SentProfile(asked.profile.name, {}, asked.words)
    if len(words) != 1:
        raise UsageError("--prove-canary proves one profile", hint="run the profiles one after the other")
    asked = load_one(words)
    path = Path(words[0]) if is_file_word(words[0]) else profile_paths()[words[0]]
    return SentProfile(asked.profile.name, read_profile_files(path))


def choose_provers(plan: FleetPlan) -> tuple[str, ...]:
    """The hosts that a proof is made on: the canaries. Raises UsageError where there is none."""
    found = next((wave.hosts for wave in plan.waves.waves if wave.is_canary), ())
    if not found:
        left = "; ".join(f"{one.name}: {one.message}" for one in plan.hosts if one.state in ("failed", "cannot"))
        raise UsageError("--prove-canary: there is no canary", hint=left or "--canary HOST")
    return found


def check_provers(hands: Hands, plan: FleetPlan, sent: SentProfile, settings: Mapping[str, str]) -> None:
    """Send the profile to the canaries and let advisor there make its plan. Raises RefusedError where it is not that of
    the controller, or could not be made; changes nothing."""
    names = choose_provers(plan)
    script = _script_with_profile(sent, f"advisor plan {sent.words} {_setting_words(settings)} --json")
    answers = hands.run_text(script, names, "proof-plan", seconds=LOOK_SECONDS, needs_root=True)
    for name in names:
        why = _plan_difference(answers.get(name), plan.plan(name))
        if why is not None:
            raise RefusedError(
                f"--prove-canary: {name}: {why}",
                hint="mend that, name another --canary, or let a --gate-command of your own decide",
            )


def _script_with_profile(sent: SentProfile, command: str) -> str:
    """A script that has the profile in its own directory, which only root can read and which goes with it."""
    mark = f"END_{secrets.token_hex(8)}"
    lines = [f"command -v advisor >/dev/null 2>&1 || exit {_ABSENT}", 'here=$(cd "${0%/*}" && pwd) || exit 4']
    for name, text in sent.files.items():
        body = text.decode("utf-8", "surrogateescape").removesuffix("\n")
        lines += [f"cat >\"$here\"/{name}.toml <<'{mark}' || exit 4", body, mark]
    return "\n".join([*lines, "cd /", command])


def _setting_words(settings: Mapping[str, str]) -> str:
    return " ".join(shell_quote(f"--set={key}={value}") for key, value in sorted(settings.items()))


def _plan_difference(answer: HostAnswer | None, plan: Plan) -> str | None:
    """In words, why what a canary planned is not what is planned for it here; None where it is."""
    if answer is None or answer.state != "ok":
        return f"it could not be asked: {answer.message or answer.state if answer else 'no answer'}"
    if answer.rc == _ABSENT:
        return "advisor is not installed there, and a proof cannot be made without it"
    document = _read_document(answer)
    if reason := _error_reason(document):
        return f"the profile cannot be planned there: {reason}"
    try:
        # What asks for the profile there is where it was put, and no part of what it does.
        found = msgspec.structs.replace(msgspec.convert(document, Plan), words=plan.words)
    except msgspec.ValidationError:
        said = answer.message or f"ended with {answer.rc}"
        return f"advisor there made no plan that can be read here; it is of another version perhaps ({said})"
    if found.fingerprint == plan.fingerprint:
        return None
    why = _first_difference(found, plan)
    return f"the plan that advisor makes there of the profile sent is not the one made here: {why}"


def _first_difference(there: Plan, here: Plan) -> str:
    values = [{one.tunable: one for one in plan.changes} for plan in (there, here)]
    for tunable in dict.fromkeys([*values[1], *values[0]]):
        own, other = (found.get(tunable) for found in values)
        if own is None or other is None:
            return f"{tunable} would be set {'there' if other is None else 'here'} alone"
        if (own.before, own.after) != (other.before, other.after):
            return f"{tunable} from {own.before} to {own.after} there, from {other.before} to {other.after} here"
    return "its values are the same, what is written to files or why is not; see that the versions are the same"


def prove_on_canaries(
    hands: Hands,
    plan: FleetPlan,
    sent: SentProfile,
    settings: Mapping[str, str],
    options: Sequence[str],
    journal: RunJournal,
) -> int:
    """Prove the profile on each canary, one after the other, and journal it. 0 where each shows the gain, else the exit
    code of the first that does not.

    However it ends, also by a signal, a proof that may go on there is ended and the host is asked whether it is back.
    """
    toggled = False
    for name in choose_provers(plan):
        hands.say(f"{name}: proving {sent.name} there")
        token = secrets.token_hex(8)
        journal.write(ProofBegun(time.time(), name, token))
        with interruptible():
            try:
                done = _prove_on(hands, name, plan.plan(name), sent, settings, options, token)
            except BaseException as error:
                why = str(error) or type(error).__name__
                done = _settle_proof(hands, name, token, f"the proof was cut short ({why})")
                journal.note(done)
                journal.note(Ended(time.time(), done.code, "stopped", f"{name}: {done.message}"))
                if done.by_hand is not None:
                    raise _not_restored_error(name, done.message, done.by_hand) from error
                hands.say(f"{name}: {done.message}")
                raise
        if toggled and done.code in _NOT_BEGUN:
            # An earlier canary had the profile: "nothing was changed" would not be true.
            done = msgspec.structs.replace(done, code=4)
        journal.write(done)
        hands.say(f"{name}: {done.message}")
        if done.code:
            return done.code
        toggled = True
    return 0


def settle_open_proofs(hands: Hands, journal: RunJournal, run: RunRecord) -> None:
    """End each proof that the run left open, and journal whether its host is back.

    Raises NotRestoredError where that is not known: what is planned for a host with the profile set by its proof is
    nothing, and would be called done.
    """
    for name, token in run.open_proofs.items():
        hands.say(f"{name}: asking what its proof left")
        done = _settle_proof(hands, name, token, "what its proof left was not known")
        journal.write(done)
        if done.by_hand is not None:
            journal.write(Ended(time.time(), done.code, "stopped", f"{name}: {done.message}"))
            raise _not_restored_error(name, done.message, done.by_hand)
        hands.say(f"{name}: {done.message}")


def _not_restored_error(name: str, message: str, by_hand: str) -> NotRestoredError:
    return NotRestoredError(f"{name}: {message}", items=((name, by_hand),))


def _prove_on(
    hands: Hands,
    name: str,
    plan: Plan,
    sent: SentProfile,
    settings: Mapping[str, str],
    options: Sequence[str],
    token: str,
) -> ProofDone:
    words = " ".join(shell_quote(one) for one in options if one != "--live")
    call = "prove-live" if "--live" in options else "prove"
    note = f"/run/advisor-proof.{token}"
    # In the background, so that whoever has to end it finds its number.
    command = f"advisor {call} {sent.words} {_setting_words(settings)} {words} --json &\n" + (
        f'echo "$!" >{note}\nwait "$!"; code=$?\nrm -f {note}\nexit "$code"'
    )
    script = _script_with_profile(sent, command)
    answer = hands.run_text(script, [name], "proof", seconds=PROVE_SECONDS, changes=True, needs_root=True).get(name)
    done = judge_proof(name, answer, plan)
    if done is None:
        return _settle_proof(hands, name, token, f"the proof did not come to its end: {_what_happened(answer)}")
    if done.state == "unknown":
        return msgspec.structs.replace(done, by_hand=hands.look_by_hand(name))
    return done


def _what_happened(answer: HostAnswer | None) -> str:
    if answer is None:
        return "no answer"
    if answer.state == "ok":
        return f"it ended with {answer.rc}{f': {answer.message}' if answer.message else ''}"
    return answer.message or answer.state


class _Figure(msgspec.Struct, frozen=True):
    name: str
    metric: str
    effect: float | None = None


class _Value(msgspec.Struct, frozen=True):
    tunable: str
    after: str


class ProofAnswer(msgspec.Struct, frozen=True):
    """What is read of ``advisor.proof/1``, which may be of another version there."""

    verdict: str
    workloads: tuple[_Figure, ...] = ()
    reasons: tuple[str, ...] = ()
    values: tuple[_Value, ...] | None = None
    saved_to: str | None = None

    @property
    def in_words(self) -> str:
        """The verdict, what it rests on, and where every run is."""
        figures = [f"{one.name} {one.effect:+.1%}" for one in self.workloads if one.effect is not None]
        parts = [f"{self.verdict} ({', '.join(figures)})" if figures else self.verdict, *self.reasons[:1]]
        return "; ".join([*parts, f"every run is kept there in {self.saved_to}"] if self.saved_to else parts)


def judge_proof(name: str, answer: HostAnswer | None, plan: Plan) -> ProofDone | None:
    """What a canary's answer says about its proof; None where the host has to be asked what became of it.

    Exit codes are those of ``advisor prove`` there: a refusal is a refusal, not a missing gain.
    """
    now = time.time()
    path = str(answer.path) if answer is not None and answer.path is not None else None
    if answer is not None and answer.state in ("unreachable", "no-root"):
        message = f"the proof was not begun: {_what_happened(answer)}"
        return ProofDone(now, name, 4, "untouched", message, path=path)
    if answer is None or answer.state != "ok" or answer.rc is None:
        return None
    document = _read_document(answer)
    refusal = _error_reason(document)
    reason = refusal or answer.message
    if answer.rc in _NOT_BEGUN:
        if refusal is None:
            return None
        message = f"the proof {_NOT_BEGUN[answer.rc]}: {refusal}"
        return ProofDone(now, name, answer.rc, "untouched", message, path=path)
    if answer.rc in (126, _ABSENT):
        return ProofDone(now, name, 3, "untouched", "the proof was refused: advisor cannot be run there", path=path)
    if answer.rc == 4 and reason:
        message = f"the proof failed there, and every value is as before: {reason}"
        return ProofDone(now, name, 4, "rolled-back", message, path=path)
    if answer.rc == 5:
        return ProofDone(now, name, 5, "unknown", f"the proof failed, and not every value is back: {reason}", path=path)
    try:
        found = msgspec.convert(document, ProofAnswer) if answer.rc in (0, 1) else None
    except msgspec.ValidationError:
        found = None
    if found is None:
        return None
    if answer.rc == 1 or found.verdict != "gain":
        message = f"no gain is proven: {found.in_words}"
        return ProofDone(now, name, 1, "rolled-back", message, found.verdict, path)
    if why := _foreign_value(found, plan):
        message = f"what was measured is not what the plan would set: {why}"
        return ProofDone(now, name, 4, "rolled-back", message, found.verdict, path)
    return ProofDone(now, name, 0, "rolled-back", f"the gain is proven: {found.in_words}", found.verdict, path)


def _foreign_value(found: ProofAnswer, plan: Plan) -> str | None:
    """In words, the first value that was measured and is not in the plan; None where every one is."""
    planned = {one.tunable: one.after for one in plan.changes}
    if not found.values:
        return "the proof does not say which values it measured"
    for one in found.values:
        if planned.get(one.tunable) != one.after:
            return f"{one.tunable}={one.after} there, {planned.get(one.tunable, 'not set')} in the plan"
    return None


def _settle_proof(hands: Hands, name: str, token: str, why: str) -> ProofDone:
    """End a proof that may go on there, and ask the host whether anything of it is left."""
    note = f"/run/advisor-proof.{token}"
    script = (
        f'if read -r pid <{note} && grep -q prove "/proc/$pid/cmdline"; then kill -TERM "$pid"; n=0\n'
        f'while kill -0 "$pid" && [ "$n" -lt {_END_SECONDS} ]; do sleep 1; n=$((n + 1)); done; fi 2>/dev/null\n'
        f"rm -f {note}\nadvisor status --json"
    )
    until = time.monotonic() + _SETTLE_SECONDS
    while True:
        left = _unfinished_there(hands, name, script)
        if not left or left[0] == "?" or time.monotonic() > until:
            break
        time.sleep(2)
    if not left:
        return ProofDone(time.time(), name, 4, "rolled-back", f"{why}; every value is as before there")
    said = "it could not be asked what became of it" if left[0] == "?" else f"unfinished there: {', '.join(left)}"
    by_hand = hands.look_by_hand(name)
    return ProofDone(time.time(), name, 5, "unknown", f"{why}; {said}", by_hand=by_hand)


def _unfinished_there(hands: Hands, name: str, script: str) -> list[str]:
    """The transactions that are unfinished on a host; ``?`` alone where it cannot be asked."""
    try:
        answer = hands.run_text(
            script, [name], "proof-status", seconds=LOOK_SECONDS + _END_SECONDS, needs_root=True
        ).get(name)
    except AdvisorError:
        return ["?"]
    document = _read_document(answer) if answer is not None and answer.state == "ok" else None
    try:
        return [one["id"] for one in (document or {})["transactions"] if one["unfinished"]]
    except (KeyError, TypeError):
        return ["?"]


def _read_document(answer: HostAnswer) -> Any:
    """The JSON document that a host printed; None where it is none."""
    try:
        with open(answer.path or "/dev/null", "rb") as file:
            return msgspec.json.decode(file.read(_MAX_ANSWER_BYTES))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _error_reason(document: Any) -> str | None:
    """The message of an error document with its hint; None for any other."""
    error = document.get("error") if isinstance(document, dict) else None
    if not isinstance(error, dict) or not error.get("message"):
        return None
    return f"{error['message']} ({error['hint']})" if error.get("hint") else str(error["message"])
