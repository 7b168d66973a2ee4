"""Random histories on which every engine takes its turn: in the end each byte is as at the start, but for manual edits.

A history applies, edits by hand, is killed, applies again and adds layers, and each rollback is done by Python, by
``rollback.sh`` under a shell, by the verbs of the apply script, or by the watchdog. The seeds are fixed: the short form
plays each small system with every engine, and each profile with Python and one of the others, which take turns. A
failure prints the seed and what was done.
"""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest

from advisor.exporters.apply_script import transaction_script
from advisor.host import Host, ReadFile
from advisor.host.probes import FORMS
from advisor.planning.records import Plan
from advisor.profiles.profile import profile_paths
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Record, Store
from advisor.transaction.status import rollback_transactions
from advisor.tunables.udev import RULES as APPEARING
from tests.cases import cases
from tests.exporters.apply_script.stage import Answer, answer_of
from tests.transaction.conforming import (
    FORM_SYSTEMS,
    OF_GUESTS,
    ON_SERVICES,
    SERVICES,
    SERVING,
    ConformanceSystem,
    systems,
)
from tests.transaction.killing import killed_at_step
from tests.transaction.system import apply_locked, roll_back_locked
from tests.transaction.zeroing import zeroing
from tests.trees import STANDARD_PATH, make_command
from tests.tunables.form_shell import SHELLS
from tests.waiting import until_unwatched

CASES = cases(__file__)

ENGINES = ("python", *(shell[0] for shell in SHELLS), "script", "watchdog")
SYSTEMS = {one.name: one for one in systems()}
SETS_NOTHING = frozenset({"infoscale-single-node", "infoscale-shared-disk"})
"""Profiles without a tunable: they only say why nothing is to be set."""
NOT_IN_A_TREE = frozenset({"qdisc", "ethtool", "addresses", "routes", "md-speed", "cmdline"})
"""Forms of what only a kernel can set, or nobody at run time: tests/tunables/test_link_live.py has those of links."""

# A program that dies with its process group when it is called for the DIE_AT-th time.
DEADLY = CASES["DEADLY"]
STATE = "var/lib/advisor"
CLIENT = f'"-$(sed "s/process //; s/,.*//" "$PLACE/root/{STATE}/lock")"'


class History:
    """One system, and what has been done to it."""

    def __init__(self, where: Path, system: ConformanceSystem, seed: int) -> None:
        self.where, self.system, self.seed = where, system, seed
        self.random = Random(seed)
        self.host = system.build(where)
        self.root = where / "root"
        # Below the root, as on a host: a script notes there what it has restored.
        (self.root / STATE).mkdir(parents=True, exist_ok=True)
        self.store = Store(str(self.root / STATE))
        self.wanted = self.state()
        self.edited: dict[str, str] = {}
        # Files as before, with the lines by hand: what an upper layer leaves that took over the lines of a lower one.
        self.without_layers: dict[str, tuple[object, ...]] = {}
        self.log: list[str] = []
        self.scripts: dict[str, Path] = {}
        self.edits = self.layers = 0
        make_command(where / "bin", "sync", DEADLY.format(whom=CLIENT, then="exit 0"))

    def state(self) -> dict[str, object]:
        found = self.system.state(self.where)
        assert isinstance(found, dict)
        return {path: one for path, one in found.items() if not f"{path}/".startswith(f"{STATE}/")}

    def run(self, words: list[str], die_at: int = 0) -> subprocess.CompletedProcess[bytes]:
        (self.where / "count").write_text("0\n")
        environment = {"PATH": f"{self.where / 'bin'}:{STANDARD_PATH}", "PLACE": str(self.where), "DIE_AT": str(die_at)}
        process = subprocess.Popen(
            [*words, "--root", str(self.root), "--reload"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        said, errors = process.communicate(timeout=120)
        return subprocess.CompletedProcess(words, process.returncode, said, errors)

    def shell(self) -> list[str]:
        return self.random.choice(SHELLS)

    # What can be done

    def edit(self, plan: Plan) -> None:
        """By hand: a value of the plan, or a line more in one of its files."""
        values = {
            one.tunable: self.place(one.probe.path)
            for one in plan.changes
            if isinstance(one.probe, ReadFile)
            and one.probe.path.startswith(("/proc/", "/sys/"))
            and one.probe.form == "words"
            and one.before.isdecimal()
            and int(one.before) >= 64
        }
        files = {one.path: self.place(one.path) for one in plan.files}
        names = sorted(name for name, place in {**values, **files}.items() if place.is_file())
        if not names:
            return
        name = self.random.choice(names)
        self.edits += 1
        if name in values:
            change = next(one for one in plan.changes if one.tunable == name)
            values[name].write_text(f"{int(change.before) + 2 * self.edits + 1}\n")
        else:
            line = b"# edited by hand %d\n" % self.edits
            with files[name].open("ab") as file:
                file.write(line)
            path = str(files[name].relative_to(self.root))
            before = self.without_layers.get(path, self.wanted.get(path))
            if isinstance(before, tuple) and isinstance(before[-1], bytes):
                self.without_layers[path] = (*before[:-1], before[-1] + line)
        self.log.append(f"edit {name}")
        if name == APPEARING:
            # A rollback removes advisor's rules from it, whoever else has lines there, and leaves the rest.
            self.expect(path)
            found, lines = self.wanted[path], files[name].read_bytes().splitlines(keepends=True)
            assert isinstance(found, tuple)
            self.wanted[path] = (*found[:-1], b"".join(one for one in lines if b"ADVISOR_" not in one))
            return
        self.edited[name] = str(({**values, **files})[name].relative_to(self.root))
        self.expect(self.edited[name])

    def place(self, path: str) -> Path:
        found = self.host.locate(path)
        return Path(found) if isinstance(found, str) else self.root / path.lstrip("/")

    def expect(self, path: str) -> None:
        """What is at this path now is the administrator's: it stays."""
        now = self.state()
        for parent in (path, *map(str, Path(path).parents)):
            if parent != ".":
                self.wanted[parent] = now[parent]

    def apply(self, plan: Plan, by: str, *, die: bool = False) -> bool:
        """Whether it is active; otherwise it was killed, or had nothing to do."""
        self.log.append(f"{'kill while ' * die}apply by {by}")
        if by == "python" and die:
            steps = sum(len(one.steps) for one in plan.changes) + len(plan.files)
            at = self.random.randint(1, max(1, steps - 1))

            def work(host: Host, store: Store) -> None:
                apply_locked(host, plan, store)

            killed = killed_at_step(self.host, self.store, work, at, after=self.random.random() < 0.5)
            return not killed
        if by == "python":
            with self.store.hold_lock():
                apply_plan(self.host, plan, self.store)
            return True
        at = self.random.randint(24, 28 + 2 * len(plan.changes) + 3 * len(plan.files)) if die else 0
        done = self.run([*self.shell(), str(self.script_of(plan)), "apply", "--confirm-within", "0"], at)
        if done.returncode == -9:
            self.await_watchdog()
            return any(one.is_active for one in self.store.read_records())
        answer = answer_of(done.returncode, done.stdout, done.stderr)
        assert (answer.code, answer.state) == (0, "applied"), (answer, self.story())
        return True

    def add_layer(self, probability: float) -> bool:
        """Apply another profile on top."""
        if not self.system.uppers or self.random.random() >= probability:
            return False
        plan = self.random.choice(self.system.uppers)(self.host, self.store)
        if plan.is_empty or plan.blocking:
            return False
        self.layers += 1
        return self.apply(plan, "python")

    def script_of(self, plan: Plan) -> Path:
        path = self.where / f"{plan.fingerprint}.sh"
        path.write_text(transaction_script(plan, machine_id=plan.machine_id, hostname=None))
        return path

    def await_watchdog(self) -> None:
        until_unwatched(self.store, self.story)

    def has_watchdog_restored(self) -> bool:
        return any(one.by_watchdog for one in self.store.read_records())

    def active(self) -> Record | None:
        """A transaction that is to be rolled back."""
        found = self.all_active()
        return self.random.choice(found) if found else None

    def all_active(self) -> list[Record]:
        return [one for one in self.store.read_records() if one.is_active or one.is_unfinished]

    def roll_back(self, engine: str, record: Record, *, die: bool = False) -> set[str]:
        """What was reported as skipped."""
        self.log.append(f"{'kill while ' * die}roll back {record.id} by {engine}")
        if engine == "python":
            return self.roll_back_by_python(record, die=die)
        if engine == "script":
            answer = self.answer([*self.shell(), str(self.script_of(record.plan)), "rollback"])
            is_idle = answer.state == "rolled-back" or "held" in answer.states().values()
            assert answer.code in (0, 5) or (answer.code == 3 and is_idle), (answer, self.story())
            return {name for name, state in answer.states().items() if state in ("kept", "failed", "held")}
        script = self.store.script_path(record.id)
        shell = next(one for one in SHELLS if one[0] == engine)
        words = [*shell, str(script)]
        if record.is_unfinished:
            words += ["--journal", str(script.with_name("journal"))]
        if die:
            for name in ("tr", "awk"):
                make_command(self.where / "bin", name, DEADLY.format(whom="0", then=f'exec /usr/bin/{name} "$@"'))
        done = self.run(words, self.random.randint(1, 6 * max(1, len(record.plan.changes))) if die else 0)
        for name in ("tr", "awk") if die else ():
            (self.where / "bin" / name).unlink()
        if done.returncode == 3 and b"its watchdog" in done.stderr:
            # That of a script that was killed before: on a busy machine it comes first.
            self.await_watchdog()
            done = self.run(words)
        is_idle = done.returncode == 3 and b"nothing to do" in done.stderr
        assert is_idle or done.returncode in ((0, 5, -9) if die else (0, 5)), (done, self.story())
        lines = [line.split(None, 1) for line in done.stdout.decode().splitlines()]
        return {words[1].split(": ")[0].split(" cannot")[0] for words in lines if words[0] in ("kept", "failed")}

    def answer(self, words: list[str]) -> Answer:
        done = self.run(words)
        return answer_of(done.returncode, done.stdout, done.stderr)

    def roll_back_by_python(self, record: Record, *, die: bool) -> set[str]:
        if die:

            def work(host: Host, store: Store) -> None:
                roll_back_locked(host, store.find_record(record.id), store)

            at = self.random.randint(1, max(1, len(record.plan.changes) - 1))
            killed_at_step(self.host, self.store, work, at, after=self.random.random() < 0.5)
            return set()
        done = rollback_transactions(self.host, record.id, everything=False, force=False, store=self.store)
        return {one.what for _, outcomes in done for one in outcomes if not one.is_back}

    def finish(self) -> None:
        """Everything that is still active is rolled back, and only what was edited by hand is not as at the start."""
        while (left := self.active()) is not None:
            self.log.append(f"finish {left.id}")
            rollback_transactions(self.host, left.id, everything=False, force=False, store=self.store)
        now = self.state()
        differ = {
            path: (self.wanted.get(path), now.get(path))
            for path in sorted({*self.wanted, *now})
            if self.wanted.get(path) != now.get(path)
            and not (self.layers and path in self.without_layers and now.get(path) == self.without_layers[path])
        }
        assert not differ, (differ, self.story())

    def story(self) -> str:
        return f"{self.system.name}, seed {self.seed}: " + ", then ".join(self.log)


Coverage = dict[str, set[str]]


def play(
    where: Path, system: ConformanceSystem, engine: str, seed: int, seen: Coverage, *, repeat: float = 0.15
) -> None:
    """One history in which ``engine`` rolls back; ``seen``: which engines rolled back a profile and a form."""
    one = History(where, system, seed)
    # Of one limit in two units the kernel zeroes the one that is not written.
    with zeroing(one.root / "proc/sys/vm") if system.name == SERVING else nullcontext():
        play_history(one, engine, seen, repeat)


def play_history(one: History, engine: str, seen: Coverage, repeat: float) -> None:
    system, random = one.system, one.random
    plan = system.plan(one.host, one.store)
    assert not plan.is_empty
    if random.random() < 0.3:
        one.edit(plan)
        one.edited.clear()
        plan = system.plan(one.host, one.store)
    if engine == "watchdog":
        is_active = one.apply(plan, "script", die=True)
    else:
        by = "script" if random.random() < repeat else "python"
        is_killed = by == "python" and system.can_be_killed and random.random() < 0.3
        is_active = one.apply(plan, by, die=is_killed)
        if is_killed and not is_active and one.active() is None:
            # Before its first entry.
            is_active = one.apply(plan, by)
    if is_active:
        if random.random() < repeat:
            again = system.plan(one.host, one.store)
            assert again.is_empty, (again.changes, one.story())
        while random.random() < 0.4:
            one.edit(plan)
    # An upper layer reports what it has found of these.
    has_layer = is_active and engine != "watchdog" and one.add_layer(repeat)
    edited = {} if has_layer else dict(one.edited)
    if engine != "watchdog":
        record = random.choice(one.all_active())
        plan = record.plan
        if system.can_be_killed and engine != "script" and random.random() < repeat:
            one.roll_back(engine, record, die=True)
            record = one.store.find_record(record.id)
        if record.is_active or record.is_unfinished:
            skipped = one.roll_back(engine, record)
            assert not is_active or {*edited} <= skipped, (skipped, edited, one.story())
    # Whoever rolls back a lower layer leaves what the upper one holds.
    if one.has_watchdog_restored() if engine == "watchdog" else not has_layer:
        note(seen, system.name, plan, engine)
    while random.random() < repeat:
        last = random.choice([name for name in ENGINES if name != "watchdog"])
        one.finish()
        plan = system.plan(one.host, one.store)
        if not plan.is_empty and not plan.blocking:
            one.apply(plan, random.choice(["python", "script"]))
            one.add_layer(repeat)
            one.roll_back(last, random.choice(one.all_active()))
    one.finish()


def note(seen: Coverage, name: str, plan: Plan, engine: str) -> None:
    seen[name].add(engine)
    for form in forms_of(plan):
        seen[form].add(engine)


def forms_of(plan: Plan) -> set[str]:
    probes = (*(one.probe for one in plan.changes), *(one.probe for one in plan.side_effects))
    return {probe.form.partition(":")[0] for probe in probes}


NEEDS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="fanotify(7), which zeroes values as the kernel does, needs root"
)
PLAYED = [pytest.param(name, marks=NEEDS_ROOT) if name == SERVING else name for name in SYSTEMS]


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLAYED)
@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_restores_every_byte_in_long_histories(name: str, engine: str, tmp_path: Path) -> None:
    for seed in range(100_000, 100_040):
        play(tmp_path / str(seed), SYSTEMS[name], engine, seed, defaultdict(set), repeat=0.7)


def engines_for(name: str) -> tuple[str, ...]:
    """Those of the short form; all of them are for the long histories."""
    if name == SERVING:
        # Its forms are those of other systems, which are played with every engine.
        return ("python", "script")
    if name not in profile_paths():
        return ENGINES
    # bash reads the text and the awk that dash does: the small systems are enough.
    others = [engine for engine in ENGINES if engine not in ("python", "bash")]
    return ("python", others[[*SYSTEMS].index(name) % len(others)])


def first_plan(where: Path, system: ConformanceSystem) -> Plan:
    """On the system as it is built."""
    return system.plan(system.build(where), Store(str(where / "state")))


# Every form of a value is one of the small systems'; of the profiles, some of each article.
COMMON = {*FORM_SYSTEMS, "infoscale-fss-zones", "iris-write-daemons", "iscsi-multipath", "beegfs-nvme", "jumbo-frames"}
NEEDS = {name: [NEEDS_ROOT] * (name == SERVING) for name in SYSTEMS}


@pytest.mark.parametrize(
    "name",
    [name if name in COMMON else pytest.param(name, marks=[pytest.mark.thorough, *NEEDS[name]]) for name in SYSTEMS],
)
def test_each_engine_restores_every_byte(name: str, tmp_path: Path) -> None:
    seen: Coverage = defaultdict(set)
    expected = {name, *forms_of(first_plan(tmp_path / "first", SYSTEMS[name]))}
    for number, engine in enumerate(engines_for(name)):
        # A killed apply may have been complete by then, and the watchdog has nothing to do.
        for attempt in range(20):
            seed = 1000 * number + attempt
            play(tmp_path / f"{engine}{attempt}", SYSTEMS[name], engine, seed, seen)
            if all(engine in seen[one] for one in expected):
                break
        assert {one for one in expected if engine not in seen[one]} == set(), engine


def test_the_systems_have_every_profile_and_form(tmp_path: Path) -> None:
    """The test above plays each profile, and each form with every engine."""
    assert {*profile_paths()} - SETS_NOTHING - {*SERVICES, *ON_SERVICES, *OF_GUESTS} <= {*SYSTEMS}
    played: Coverage = defaultdict(set)
    for name, one in SYSTEMS.items():
        for form in forms_of(first_plan(tmp_path / name, one)):
            played[form] |= {*engines_for(name)}
    assert {*played} == {*FORMS, "irqs"} - NOT_IN_A_TREE
    assert {form: {*ENGINES} - engines for form, engines in played.items() if {*ENGINES} - engines} == {}
