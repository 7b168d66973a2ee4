"""Applies pairs of sysctls of a network namespace of its own, rolls them back, and compares all of ``net.*``; what
``test_coupled.py`` runs below unshare(1).

usage: python -m tests.transaction.coupled_pairs WHERE command|script WHICH SEED SECONDS

WHICH is a NUMBER of pairs, most of them of one setting, or ``near`` for each pair of one setting, in both orders. It
ends after SECONDS, whatever is left. What differs is written to stderr at once, the numbers of all to stdout at last.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from advisor.errors import AdvisorError
from advisor.host.machine import live_host, tree_host
from advisor.planning.compute import make_plan
from advisor.planning.observations import observe_targets
from advisor.planning.records import PlanTarget
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.origin import private_namespaces
from advisor.transaction.rollback import roll_back
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


class Tree:
    """All of ``net.*``, kept open: after each pair all of it is read."""

    def __init__(self) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
        self._open: dict[str, int] = {}
        for path in files():
            with contextlib.suppress(OSError):
                self._open[path] = os.open(path, os.O_RDONLY)

    def read(self) -> dict[str, bytes]:
        """By path; what cannot be read is not there."""
        found: dict[str, bytes] = {}
        for path, number in self._open.items():
            with contextlib.suppress(OSError):
                found[path] = os.pread(number, 4096, 0)
        return found


def path_of(key: str) -> Path:
    return Path("/proc/sys") / key.translate({ord("."): "/", ord("/"): "."})


def is_taken(key: str, value: str) -> bool:
    """Whether the kernel takes a value for a key and returns it as it was written."""
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


REFUSED = "not applied, all as before"


def run_plan(wanted: Mapping[str, str], where: Path, tree: Tree, before: dict[str, bytes], *, by_script: bool) -> str:
    """Empty where it was applied and all is as before, or `REFUSED`; otherwise what differs."""
    # As a tree: no watchdog has to be started for each of thousands of pairs.
    host, store = tree_host("/"), Store(str(where))
    targets = tuple(
        PlanTarget(f"sysctl:{key}", value, "exactly", "test", "test", ("test",), "test", rank=place)
        for place, (key, value) in enumerate(wanted.items())
    )
    seen = observe_targets(host, targets, {})
    plan = make_plan(("test",), targets, (), seen, _FACTS, runtime_only=True, private=private_namespaces(live_host()))
    if plan.is_empty or plan.blocking:
        return REFUSED
    is_applied = False
    try:
        with store.hold_lock():
            record = apply_plan(host, plan, store)
        is_applied = True
        read = {key: " ".join(path_of(key).read_text().split()) for key in wanted}
        wrong = {key: live for key, live in read.items() if live != wanted[key]}
        if wrong:
            return f"applied, but reads {wrong}"
        if by_script:
            script = where / "transactions" / record.id / "rollback.sh"
            done = subprocess.run(["sh", str(script)], capture_output=True, text=True, check=False)
            said, is_back = done.stdout + done.stderr, done.returncode == 0
        else:
            with store.hold_lock():
                outcomes = roll_back(host, record, store)
            said, is_back = str(outcomes), all(one.is_back for one in outcomes)
        if not is_back:
            return said
    except AdvisorError as error:
        if error.exit_code != 4:
            return f"{error.exit_code}: {error.message}"
    finally:
        shutil.rmtree(where, ignore_errors=True)
    after = tree.read()
    off = {path: (before.get(path), after.get(path)) for path in before | after if before.get(path) != after.get(path)}
    if off:
        return f"{'rolled back' if is_applied else 'failed'}, but differs: {off}"
    return "" if is_applied else REFUSED


def chosen(which: str, named: list[str], chance: random.Random) -> list[tuple[str, ...]]:
    """The plans to try, as their keys."""
    chance.shuffle(named)
    pairs = [chance.choice([pair, pair[::-1]]) for pair in itertools.combinations(named, 2)]
    chance.shuffle(pairs)
    settings = {key: setting(key) for key in named}
    near = [pair for pair in pairs if settings[pair[0]] == settings[pair[1]]]
    if which == "near":
        return [order for one, two in near for order in ((one, two), (two, one))]
    found = near[: int(which) * 3 // 4] + pairs[: int(which) // 4]
    chance.shuffle(found)
    return list(found)


def main(words: list[str]) -> None:
    where, way, which, seed, seconds = words
    # What is written to a disk with each pair would take most of the time.
    subprocess.run(["mount", "-t", "tmpfs", "none", where], check=True)
    subprocess.run(["sh", "-c", _LINKS], check=True)
    chance = random.Random(int(seed))
    taken = values(chance)
    disturbed(chance, taken)
    # Of links of one kind the kernel makes no difference.
    plans = chosen(which, sorted(key for key in taken if not re.search(r"\.(lo|v1)\.", key)), chance)
    tree = Tree()
    before = tree.read()
    begun = time.monotonic()
    failed: dict[str, str] = {}
    done = refused = 0
    for keys_of_plan in plans:
        if time.monotonic() > begun + float(seconds):
            break
        live = {key: " ".join(path_of(key).read_text().split()) for key in keys_of_plan}
        wanted = {key: taken[key] for key in keys_of_plan if live[key] != taken[key]}
        why = run_plan(wanted, Path(where) / "state", tree, before, by_script=way == "script")
        done += 1
        refused += why == REFUSED
        if why not in ("", REFUSED):
            before = tree.read()
            failed[" ".join(keys_of_plan)] = f"{wanted}: {why}"
            print(f"{wanted}: {why}", file=sys.stderr, flush=True)
        if done % 1000 == 0:
            print(f"{done} of {len(plans)}, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    counts = {"keys": len(taken), "plans": len(plans), "done": done, "refused": refused}
    json.dump({**counts, "failed": failed, "seconds": round(time.monotonic() - begun)}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
