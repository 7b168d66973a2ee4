"""What TuneD makes of a profile in the guest, against what our import of it makes there, value by value.

    python -m benchmarks.tuned_effect [--socket /tmp/lab.sock] [PROFILE…]     prints a table of differences

The two states are whole: every sysctl, every file of the block queues, of the CPUs, of the memory management and of the
modules' parameters, all that ethtool prints of the links, the loaded modules and the mounts (`guest/look.py`). A
difference counts as explained only where the report of the import names the reason (`EXPLAINED`).
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.lab.guest import Guest, Machine
from tests.lab.hardware import STORAGE_HOST
from tests.lab.road import document
from tests.lab.serve import ServedGuest

State = Mapping[str, str]
LOOK: Final = (Path(__file__).parents[1] / "tests/lab/guest/look.py").read_text()

# What changes by itself, and what a look at it changes.
RESTLESS: Final = re.compile(
    "|".join(
        (
            # Counters, and numbers drawn at random.
            r"/proc/sys/fs/(dentry-state|file-nr|inode-nr|inode-state|quota/.*|aio-nr)",
            r"/proc/sys/kernel/(random/.*|ns_last_pid|pty/nr|perf_event_max_sample_rate|spl/.*)",
            r"/proc/sys/net/netfilter/nf_conntrack_count",
            r"/proc/sys/net/ipv6/conf/.*/stable_secret",
            r"/sys/devices/system/cpu/.*/cpuidle/state\d+/(usage|time|above|below|rejected|s2idle/.*)",
            r"/sys/devices/system/cpu/.*/power/(runtime_.*|wakeup_.*)",
            r"/sys/kernel/mm/ksm/(full_scans|pages_(shared|sharing|unshared|volatile|skipped)|stable_node_.*|general_profit)",
            r"/sys/kernel/mm/transparent_hugepage/khugepaged/(full_scans|pages_collapsed)",
            r"/sys/kernel/mm/(hugepages|numa)/.*/(free|surplus|resv)_hugepages",
            r"/sys/kernel/mm/lru_gen/.*stat.*",
            r"/sys/class/net/.*/queues/.*/(byte_queue_limits/.*|tx_timeout|traffic_class)",
            r"/sys/module/.*/parameters/.*(seed|cookie|count).*",
            r"/sys/kernel/debug/sched/.*(verbose)",
            r"/sys/devices/virtual/workqueue/.*/pool_ids",
            r"/proc/irq/\d+/(spurious|effective_affinity.*|affinity_hint)",
            r"/sys/module/random/.*",
            # What the system writes by itself, and a file of TuneD's own, which it empties.
            r"etc:/etc/(resolv\.conf|\.updated|mtab|ld\.so\.cache|modprobe\.d/tuned\.conf)",
        )
    )
)
# A difference in these values has to be reported by the import: words of its report -> the names of the values.
EXPLAINED: Final[tuple[tuple[str, str], ...]] = (
    (r"holds the CPUs' wake-up latency", r"latency"),
    (r"readahead(_multiply)?: is set on loop0", r"/sys/block/loop\d+/queue/read_ahead_kb"),
    (r"elevator: is set on loop0", r"/sys/block/loop\d+/queue/scheduler"),
    # A script is reported with its path: what this one mounts again and loads was read in it.
    (r"script that TuneD runs as root, .*/spindown-disk/script\.sh", r"mount:.*"),
)
# ethtool(8) shows some offloads by another name than it takes.
KERNEL_NAMES: Final = {"large-receive-offload": "rx-lro"}
NOTHING: Final = "nothing of this profile applies here"


@dataclass(frozen=True)
class Tuned:
    """A profile under TuneD: the state, what its log complains of, and what stayed after `tuned-adm off`."""

    state: State
    complaints: tuple[str, ...]
    remains: Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Effect:
    """A profile's outcome under both. ``reported`` are reasons of the import; ``remains`` what our rollback left."""

    name: str
    compared: int
    set_by_tuned: Mapping[str, tuple[str, str]]
    differing: Mapping[str, tuple[str, str]]
    reported: tuple[str, ...]
    remains: Mapping[str, tuple[str, str]]
    tuned: Tuned

    @property
    def unexplained(self) -> Mapping[str, tuple[str, str]]:
        """Differences that no sentence of the import's report accounts for."""
        return {name: pair for name, pair in self.differing.items() if not explanation(name, self.reported)}


def explanation(name: str, reported: Iterable[str]) -> str | None:
    """The sentence of the report that reports why this value differs."""
    for words, names in EXPLAINED:
        if re.fullmatch(names, name):
            for sentence in reported:
                if re.search(words, sentence):
                    return sentence
    return None


def look(guest: Machine) -> State:
    done = guest.run(["python3", "-c", LOOK], timeout=120).check()
    found: dict[str, str] = json.loads(done.stdout)
    return {name: value for name, value in sorted(found.items()) if not RESTLESS.fullmatch(name)}


def changed(before: State, after: State) -> dict[str, tuple[str, str]]:
    """Name -> the values of the two, where they differ; ``-`` where there is none."""
    names = sorted({*before, *after})
    return {
        name: (before.get(name, "-"), after.get(name, "-")) for name in names if before.get(name) != after.get(name)
    }


def by_tuned(guest: Machine, names: Sequence[str], clean: State) -> dict[str, Tuned]:
    """Each profile activated and taken back by TuneD, which runs for this alone."""
    found: dict[str, Tuned] = {}
    guest.run("systemctl start tuned", timeout=180).check()
    try:
        for name in names:
            found[name] = _by_tuned(guest, name, clean)
    finally:
        guest.run("tuned-adm off; systemctl stop tuned; : >/etc/tuned/active_profile", timeout=180)
    return found


def _by_tuned(guest: Machine, name: str, clean: State) -> Tuned:
    log = "/var/log/tuned/tuned.log"
    # The daemon appends to it.
    guest.run(f": >{log}").check()
    done = guest.run(f"tuned-adm profile {shlex.quote(name)}", timeout=300)
    state = look(guest)
    text = guest.run(f"cat {log}").stdout
    complaints = [line.split(None, 3)[-1] for line in text.splitlines() if re.search(r"\b(ERROR|WARNING)\b", line)]
    if done.rc:
        complaints.append(f"tuned-adm ended with {done.rc}: {done.stdout}{done.stderr}")
    guest.run("tuned-adm off", timeout=300).check()
    print(f"{name}: by TuneD in {done.seconds:.0f} s", file=sys.stderr, flush=True)
    return Tuned(state, tuple(dict.fromkeys(complaints)), restored(guest, clean))


def restored(guest: Machine, clean: State) -> dict[str, tuple[str, str]]:
    """What is not as it was, restored by hand; the answer says what it was and what it had become."""
    remains = changed(clean, look(guest))
    for name, (before, _) in remains.items():
        if name.startswith("/") and before != "-":
            guest.run(f"echo {shlex.quote(before)} >{shlex.quote(name)}")
        elif name.startswith("ethtool:") and ":-k:" in name:
            link, feature = name.split(":")[1], name.rpartition(":")[2]
            guest.run(f"ethtool -K {shlex.quote(link)} {KERNEL_NAMES.get(feature, feature)} {before.split()[0]}")
        elif name.startswith("mount:") and before != "-":
            # `atime` takes `noatime` back, which `relatime` alone does not.
            guest.run(f"mount -o remount,atime,{shlex.quote(before)} {shlex.quote(name.removeprefix('mount:'))}")
        elif name.startswith("etc:") and before == "-":
            guest.run(f"rm -f {shlex.quote(name.removeprefix('etc:'))}")
    names = [name for name, (before, _) in remains.items() if name.startswith("module:") and before == "-"]
    modules = [shlex.quote(name.removeprefix("module:")) for name in names]
    if modules:
        # One may hold another, in whatever order they are named; a socket of systemd's holds rfkill.
        guest.run(f"systemctl stop systemd-rfkill.socket; for time in 1 2 3; do modprobe -qr {' '.join(modules)}; done")
    return remains


def effect(guest: Machine, name: str, clean: State, tuned: Tuned) -> Effect:
    """Our import of the profile, applied and rolled back, against what TuneD has made of it."""
    imported = document(guest, "profiles", "import", f"tuned:{name}", "--mode", "faithful", "--install")
    own = imported["name"]
    try:
        applied = _applied(guest, own)
        ours = look(guest)
        if applied["state"] == "applied":
            document(guest, "rollback")
        remains = restored(guest, clean)
    except AssertionError:
        guest.run("advisor rollback --all --force", timeout=180)
        raise
    finally:
        guest.run(f"rm -f /etc/advisor/profiles/{own}.toml")
    # What keeps values over a restart lies in other files with each of the two.
    live = {key for key in {*tuned.state, *ours} if not key.startswith("etc:")}
    both = [{key: value for key, value in state.items() if key in live} for state in (clean, tuned.state, ours)]
    reported = tuple(dict.fromkeys(sentences(imported, applied)))
    return Effect(name, len(live), changed(both[0], both[1]), changed(both[1], both[2]), reported, remains, tuned)


def _applied(guest: Machine, name: str) -> dict[str, Any]:
    """What `apply` says; of a profile of which nothing applies here, the plan with the reasons."""
    words = ["advisor", "apply", name, "--yes", "--confirm-within", "0", "--runtime-only", "--json"]
    done = guest.run(words, timeout=180)
    if done.rc == 3 and NOTHING in done.stdout:
        return {**document(guest, "plan", name, "--runtime-only", code=3), "state": "nothing applies"}
    assert done.rc == 0, f"{' '.join(words)}: {done.rc}\n{done.stdout}\n{done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def sentences(imported: Mapping[str, Any], applied: Mapping[str, Any]) -> Iterable[str]:
    """Why lines became no tunable, where TuneD does otherwise, and what the plan passed over."""
    for one in imported["settings"]:
        if one["outcome"] != "tunable":
            yield f"[{one['section']}] {one['key']}: {one['why']}"
    for one in imported["differences"]:
        yield f"[{one['section']}] {one['key']}: {one['faithful']}"
    for one in applied.get("skipped", ()):
        yield f"{one['tunable']}: {one['reason']}"


def table(effects: Iterable[Effect]) -> str:
    lines = [
        "| profile | values compared | changed by TuneD | not the same with ours | silent | left by our rollback |",
        "|---|---|---|---|---|---|",
    ]
    for one in effects:
        numbers = (one.compared, *map(len, (one.set_by_tuned, one.differing, one.unexplained, one.remains)))
        lines.append("| " + " | ".join((one.name, *map(str, numbers))) + " |")
    return "\n".join(lines)


def said(one: Effect) -> str:
    """Everything that is to be known of one comparison, for a person."""
    lines = [f"{one.name}: {one.compared} compared, TuneD changes {len(one.set_by_tuned)}"]
    lines += [f"  TuneD: {text}" for text in one.tuned.complaints]
    lines += [
        f"  {key}: TuneD {theirs!r}, ours {ours!r}: {explanation(key, one.reported) or 'NOT EXPLAINED'}"
        for key, (theirs, ours) in one.differing.items()
    ]
    lines += [f"  left by TuneD: {key}: {was!r} -> {now!r}" for key, (was, now) in one.tuned.remains.items()]
    lines += [f"  left by our rollback: {key}: {was!r} -> {now!r}" for key, (was, now) in one.remains.items()]
    return "\n".join(lines)


def installed(guest: Machine) -> list[str]:
    names: list[str] = []
    for path in guest.run("ls -d /usr/lib/tuned/*/tuned.conf").check().stdout.split():
        names.append(path.split("/")[-2])
    return sorted(names)


def compare(guest: Machine, names: Sequence[str]) -> list[Effect]:
    clean = look(guest)
    tuned = by_tuned(guest, names, clean)
    found = []
    for name in names:
        try:
            found.append(effect(guest, name, clean, tuned[name]))
        except AssertionError as error:
            # Such as a plan that is refused: the other profiles are still to be compared.
            print(f"{name}: {error}", flush=True)
            continue
        print(said(found[-1]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--socket", type=Path)
    parser.add_argument("profiles", nargs="*", metavar="PROFILE")
    asked = parser.parse_args()
    if asked.socket:
        served = ServedGuest(asked.socket)
        print(table(compare(served, asked.profiles or installed(served))))
        return
    with Guest(STORAGE_HOST) as guest:
        print(table(compare(guest, asked.profiles or installed(guest))))


if __name__ == "__main__":
    main()
