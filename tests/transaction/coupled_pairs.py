"""Applies pairs of sysctls of a network namespace of its own, rolls them back, and compares all of ``net.*``; what
``test_coupled.py`` runs below unshare(1).

usage: python -m tests.transaction.coupled_pairs WHERE command|script all|NUMBER SEED
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from advisor.errors import AdvisorError
from advisor.host.machine import tree_host
from advisor.journal import Store
from advisor.planning.compute import make_plan
from advisor.planning.observations import observe_targets
from advisor.planning.records import Target
from advisor.transaction import apply_plan, roll_back
from tests.transaction.system import bare_facts

NET = Path("/proc/sys/net")
_LINKS = "ip link add v0 type veth peer name v1; ip link set lo up; ip link set v0 up; ip link set v1 up"
# Actions, and a secret that can be set once and never removed.
_NOT_VALUES = re.compile(r".*/(flush|stable_secret)")
_WORDS = {"path_manager": ("kernel", "userspace"), "tcp_congestion_control": ("reno", "cubic")}
_BARE = bare_facts()
_FACTS = msgspec.structs.replace(_BARE, host=msgspec.structs.replace(_BARE.host, machine_id=None))


def keys() -> Iterator[str]:
    """Those that can be written and read, and that a second write of the same value leaves as they are."""
    for path in sorted(NET.rglob("*")):
        if path.is_file() and path.stat().st_mode & 0o200 and not _NOT_VALUES.fullmatch(str(path)):
            yield str(path.relative_to("/proc/sys")).translate({ord("/"): ".", ord("."): "/"})


def files() -> list[str]:
    """All of ``net.*`` that can be a value."""
    found = (os.path.join(at, name) for at, _, names in os.walk(NET) for name in names)
    return [path for path in found if not _NOT_VALUES.fullmatch(path)]


def read_all(paths: list[str]) -> dict[str, bytes]:
    """By path; what cannot be read is not there."""
    found: dict[str, bytes] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            number = os.open(path, os.O_RDONLY)
            try:
                found[path] = os.read(number, 4096)
            finally:
                os.close(number)
    return found


def path_of(key: str) -> Path:
    return Path("/proc/sys") / key.translate({ord("."): "/", ord("/"): "."})


def is_taken(key: str, value: str) -> bool:
    """Whether the kernel takes a value for a key and gives it back as it was written."""
    path = path_of(key)
    try:
        path.write_text(f"{value}\n")
        return " ".join(path.read_text().split()) == value
    except OSError:
        return False


def candidates(key: str, live: str, chance: random.Random) -> list[str]:
    name = key.rpartition(".")[2]
    found = list(_WORDS.get(name, ()))
    if re.fullmatch(r"-?\d+", live):
        found += ["0", "1", "2", "3", str(abs(int(live)) + 1), str(abs(int(live)) * 2 + 100)]
    elif re.fullmatch(r"\d+( \d+)+", live):
        found += [" ".join(str(int(word) + 1) for word in live.split())]
    chance.shuffle(found)
    return [value for value in found if value != live]


def values(chance: random.Random) -> dict[str, str]:
    """A value for each key that the kernel takes; everything is then as it was, since each runs in a namespace that is
    thrown away."""
    found: dict[str, str] = {}
    for key in keys():
        try:
            live = " ".join(path_of(key).read_text().split())
        except OSError:
            continue
        for value in candidates(key, live, chance):
            if is_taken(key, value):
                found[key] = value
                break
        is_taken(key, live)
    return found


def setting(key: str) -> str:
    """What a key is about, whatever its unit and the links that it is for."""
    words = key.split(".")
    return ".".join((*words[:3], re.sub(r"_(ms|bytes)$|^ip_", "", words[-1])))


def disturbed(chance: random.Random, taken: Mapping[str, str]) -> None:
    """Links that have values of their own: what a wider key would overwrite."""
    for key in sorted(taken):
        if re.search(r"\.(lo|v0|v1)\.", key) and chance.random() < 0.5:
            is_taken(key, taken[key])


def run_pair(pair: Mapping[str, str], where: Path, before: dict[str, bytes], *, by_script: bool) -> str | None:
    """None where all is as before; otherwise what differs."""
    # As a tree: no watchdog has to be started for each of thousands of pairs.
    host, store = tree_host("/"), Store(str(where))
    targets = tuple(
        Target(f"sysctl:{key}", value, "exactly", "test", "test", ("test",), "test", rank=place)
        for place, (key, value) in enumerate(pair.items())
    )
    seen = observe_targets(host, targets, {})
    plan = make_plan(("test",), targets, (), seen, _FACTS, runtime_only=True)
    if plan.is_empty or plan.blocking:
        return None
    is_applied = False
    try:
        with store.lock():
            record = apply_plan(host, plan, store)
        is_applied = True
        read = {key: " ".join(path_of(key).read_text().split()) for key in pair}
        wrong = {key: live for key, live in read.items() if live != pair[key]}
        if wrong:
            return f"applied, but reads {wrong}"
        if by_script:
            script = where / "transactions" / record.id / "rollback.sh"
            done = subprocess.run(["sh", str(script)], capture_output=True, text=True, check=False)
            said, is_back = done.stdout + done.stderr, done.returncode == 0
        else:
            with store.lock():
                outcomes = roll_back(host, record, store)
            said, is_back = str(outcomes), all(one.is_back for one in outcomes)
        if not is_back:
            return said
    except AdvisorError as error:
        if error.exit_code != 4:
            return f"{error.exit_code}: {error.message}"
    finally:
        shutil.rmtree(where, ignore_errors=True)
    after = read_all(list(before))
    off = {path: (before.get(path), after.get(path)) for path in before | after if before.get(path) != after.get(path)}
    return f"{'rolled back' if is_applied else 'failed'}, but differs: {off}" if off else None


def main(words: list[str]) -> None:
    where, way, number, seed = words
    # What is written to a disk with each pair would take most of the time.
    subprocess.run(["mount", "-t", "tmpfs", "none", where], check=True)
    subprocess.run(["sh", "-c", _LINKS], check=True)
    chance = random.Random(int(seed))
    taken = values(chance)
    disturbed(chance, taken)
    # Of links of one kind the kernel makes no difference.
    named = sorted(key for key in taken if not re.search(r"\.(lo|v1)\.", key))
    pairs = [chance.choice([pair, pair[::-1]]) for pair in itertools.combinations(named, 2)]
    if number != "all":
        # Most of them are of one setting, where one can change the other.
        near = [pair for pair in pairs if len({setting(key) for key in pair}) == 1]
        pairs = chance.sample(near, min(len(near), int(number) * 3 // 4)) + chance.sample(pairs, int(number) // 4)
        chance.shuffle(pairs)
    before = read_all(files())
    end = time.monotonic() + (10.0 if number != "all" else float("inf"))
    failed: dict[str, str] = {}
    done = 0
    for one, two in pairs:
        if time.monotonic() > end:
            break
        live = {key: " ".join(path_of(key).read_text().split()) for key in (one, two)}
        pair = {key: taken[key] for key in (one, two) if live[key] != taken[key]}
        why = run_pair(pair, Path(where) / "state", before, by_script=way == "script")
        done += 1
        if why is not None:
            before = read_all(files())
            failed[f"{one} {two}"] = f"{pair}: {why}"
    json.dump({"keys": len(taken), "pairs": done, "failed": failed, "process": os.getpid()}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
