"""What other tools say about the bottlenecks that are really there: each next to `advisor why`, on the same injections.

    python -m benchmarks.rival_diagnosis [--only WORD] [--seconds 60] [--json FILE]

As root. The injections are those of ``tests/diagnosis/live.py``: in network namespaces, control groups and loop files
of their own. For each of them all tools that are installed run at once, in the namespace of the injection:

- ``why``: `advisor why --seconds 10`; it has named it where a cause of the injection is among its answers.
- ``checklist``: vmstat, iostat -xz, sar -n DEV,ETCP and the kernel's log for 10 s, judged as B. Gregg's "Linux
  Performance Analysis in 60,000 Milliseconds" does: more tasks ready than CPUs, a disk used more than 60 %, segments
  that are retransmitted, kills and dropped requests in the log; and a link used more than 60 %. Each must hold in half
  of the samples.
- ``pmie``: the rules that PCP's pmieconf turns on by itself, each second.
- ``netdata``: its own alarms, as they are packaged.

The last three name no cause: they have named it where anything is raised of the right *resource* (CPU, memory, disk,
network) that is not raised without an injection. Daemons are private to the run and end with it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from tests.diagnosis.live import INJECTIONS, Where

ROOT: Final = Path(__file__).parents[1]
PMIE_PORT: Final = 44399
NETDATA_PORT: Final = 44398
SHORT_SECONDS: Final = 10
TOOLS: Final = ("why", "checklist", "pmie", "netdata")
RESOURCES: Final[Mapping[str, str]] = {
    "CPU quota of a service": "cpu",
    "more tasks than CPUs": "cpu",
    "one request at a time": "disk",
    "IOPS limit of a service": "disk",
    "process that outgrows its memory limit": "memory",
}
"""All others are of the network."""


class Finding(msgspec.Struct, frozen=True):
    """What a tool raised, ``resource: words``, each after so many seconds; and its CPU seconds."""

    raised: Mapping[str, float]
    cpu_seconds: float
    seconds: float


class Case(NamedTuple):
    name: str
    right: frozenset[str]
    where: Where


def session_cpu(leader: int) -> float:
    """CPU seconds of a session's processes, and of those that they have waited for."""
    total = 0.0
    tick = os.sysconf("SC_CLK_TCK")
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (place / "stat").read_text().rpartition(")")[2].split() if place.name.isdigit() else []
            if fields and int(fields[3]) == leader:
                # In nanoseconds where the kernel says it: a program that wakes up once a second takes less than a tick.
                exact = sum(int(one.read_text().split()[0]) for one in place.glob("task/*/schedstat")) / 1e9
                total += max(exact, sum(map(int, fields[11:13])) / tick) + sum(map(int, fields[13:15])) / tick
    return total


@contextlib.contextmanager
def session(*words: str, place: Path, output: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a session and a directory of its own, which ends with the block, whole."""
    with (output or Path(os.devnull)).open("wb") as file:
        program = subprocess.Popen(
            words, cwd=place, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            yield program
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    program.wait(3)


class Tool:
    """Runs next to the others. ``look`` is called each second and keeps what is raised."""

    def __init__(self, case: Case, place: Path) -> None:
        self.case, self.place = case, place
        self.raised: dict[str, float] = {}
        self.cpu_seconds = 0.0
        self.seconds = 0.0
        self._began = time.monotonic()
        self._stack = contextlib.ExitStack()
        self._leaders: list[int] = []

    def start(self, *words: str, output: str = "") -> None:
        file = self.place / output if output else None
        self._leaders.append(
            self._stack.enter_context(session(*self.case.where, *words, place=self.place, output=file)).pid
        )

    def raise_words(self, resource: str, words: str) -> None:
        self.raised.setdefault(f"{resource}: {words}", round(time.monotonic() - self._began, 1))

    def look(self) -> None:
        raise NotImplementedError

    def stop(self) -> Finding:
        # Read while they are there.
        self.seconds = self.seconds or time.monotonic() - self._began
        self.cpu_seconds = self.cpu_seconds or sum(map(session_cpu, self._leaders))
        self._stack.close()
        return Finding(self.raised, round(self.cpu_seconds, 2), round(self.seconds, 1))


class Why(Tool):
    def __init__(self, case: Case, place: Path) -> None:
        super().__init__(case, place)
        # What the shell counts is that of the program alone.
        program = f"{sys.executable} -m advisor why --seconds {SHORT_SECONDS} --json"
        self.start("bash", "-c", f"cd {ROOT} && {program} > {place}/why.json; times > {place}/why.times")

    def look(self) -> None:
        done = self.place / "why.times"
        if self.seconds or not done.exists() or len(done.read_text().split()) < 4:
            return
        for one in json.loads((self.place / "why.json").read_text())["binds"]:
            self.raise_words(one["id"].partition(".")[0], one["id"])
        self.seconds = time.monotonic() - self._began
        spent = [word.rstrip("s").split("m") for word in done.read_text().split()[2:4]]
        self.cpu_seconds = sum(60 * int(minutes) + float(seconds) for minutes, seconds in spent)


class Checklist(Tool):
    def __init__(self, case: Case, place: Path) -> None:
        super().__init__(case, place)
        self._log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._stack.callback(os.close, self._log)
        os.lseek(self._log, 0, os.SEEK_END)
        count = str(SHORT_SECONDS + 1)
        self.start("env", "LC_ALL=C", "vmstat", "1", count, output="vmstat")
        self.start("env", "LC_ALL=C", "S_TIME_FORMAT=ISO", "iostat", "-xyz", "1", str(SHORT_SECONDS), output="iostat")
        self.start("env", "LC_ALL=C", "sar", "-n", "DEV", "-n", "ETCP", "1", str(SHORT_SECONDS), output="sar")

    def look(self) -> None:
        with contextlib.suppress(OSError):
            while line := os.read(self._log, 8192):
                text = line.decode("utf-8", "replace")
                if "oom-kill" in text or "Out of memory" in text:
                    self.raise_words("memory", "a kill in the log")
                if "TCP: " in text and ("flooding" in text or "drop" in text):
                    self.raise_words("net", "dropped requests in the log")
        if not self.seconds and time.monotonic() - self._began > SHORT_SECONDS + 2:
            self._judge_samples()
            self.seconds = time.monotonic() - self._began
            # All three ended: what they took is what the shell would count. They are read as zombies.
            self.cpu_seconds = sum(map(session_cpu, self._leaders))

    def _judge_samples(self) -> None:
        counts: dict[tuple[str, str], int] = {}

        def count(resource: str, words: str, *, holds: bool) -> None:
            counts[resource, words] = counts.get((resource, words), 0) + holds

        rows = [line.split() for line in (self.place / "vmstat").read_text().splitlines()]
        for row in [row for row in rows if row and row[0].isdigit()][1:]:
            count("cpu", "r above CPUs", holds=int(row[0]) > (os.cpu_count() or 1))
        for row in (line.split() for line in (self.place / "iostat").read_text().splitlines()):
            if len(row) > 20 and row[0] != "Device":
                count("disk", f"{row[0]} %util above 60", holds=float(row[-1]) > 60)
        head: list[str] = []
        for row in (line.split() for line in (self.place / "sar").read_text().splitlines()):
            if "IFACE" in row or "retrans/s" in row:
                head = row
            elif "retrans/s" in head and len(row) == len(head):
                count("net", "retransmissions", holds=float(row[head.index("retrans/s")]) > 0)
            elif "%ifutil" in head and len(row) == len(head):
                count("net", f"{row[head.index('IFACE')]} %ifutil above 60", holds=float(row[-1]) > 60)
        for (resource, words), number in counts.items():
            if number >= SHORT_SECONDS / 2:
                self.raise_words(resource, words)


class Pmie(Tool):
    needs: Final = ("pmie", "pmieconf")

    def __init__(self, case: Case, place: Path) -> None:
        super().__init__(case, place)
        rules = place / "pmie.conf"
        subprocess.run(["pmieconf", "-f", str(rules), "modify", "global", "delta", "1 sec"], check=True)
        rules.write_text(re.sub(r"-> syslog 10 min", "-> print", rules.read_text()))
        wanted = ("root", "pmcd", "proc", "linux", "jbd2")
        lines = [
            line for line in Path("/etc/pcp/pmcd/pmcd.conf").read_text().splitlines() if line.split("\t")[0] in wanted
        ]
        (place / "pmcd.conf").write_text("\n".join(lines) + "\n")
        agent = ["/usr/lib/pcp/bin/pmcd", "-f", "-U", "root", "-c", str(place / "pmcd.conf")]
        agent += ["-l", str(place / "pmcd.log"), "-s", str(place / "pmcd.socket"), "-p", str(PMIE_PORT)]
        self.start(*agent, "-i", "127.0.0.1")
        time.sleep(2)
        self.start("pmie", "-h", f"127.0.0.1:{PMIE_PORT}", "-c", str(rules), "-f", "-v", output="pmie")

    def look(self) -> None:
        resources = {"per_cpu": "cpu", "per_disk": "disk", "per_netif": "net", "network": "net", "filesys": "disk"}
        for rule in re.findall(r"^([a-z_]+\.[a-z_0-9]+): true", (self.place / "pmie").read_text(), re.MULTILINE):
            family = rule.partition(".")[0]
            self.raise_words(resources.get(family, family), rule)


class Netdata(Tool):
    needs: Final = ("netdata",)

    def __init__(self, case: Case, place: Path) -> None:
        super().__init__(case, place)
        for name in ("cache", "lib", "log"):
            (place / name).mkdir()
        directories = "".join(f"{name} = {place / name}\n" for name in ("cache", "lib", "log"))
        (place / "netdata.conf").write_text(
            f"[global]\nrun as user = root\n[directories]\n{directories}[db]\nmode = ram\n"
            f"[web]\nbind to = 127.0.0.1:{NETDATA_PORT}\n[ml]\nenabled = no\n[statsd]\nenabled = no\n"
            "[plugins]\npython.d = no\ncharts.d = no\ngo.d = no\n"
        )
        self.start("netdata", "-D", "-c", str(place / "netdata.conf"))
        self._enter = case.where

    def look(self) -> None:
        address = f"http://127.0.0.1:{NETDATA_PORT}/api/v1/alarms"
        read = f"import urllib.request; print(urllib.request.urlopen({address!r}, timeout=2).read().decode())"
        call = [*self._enter, sys.executable, "-c", read]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode:
            return
        for one in json.loads(done.stdout)["alarms"].values():
            component = str(one.get("component", "")).lower()
            component = {"network": "net", "load": "cpu"}.get(component, component)
            self.raise_words(component, one["name"])


def run_case(case: Case, names: list[str], seconds: float) -> dict[str, Finding]:
    """Every tool on one injection, at once."""
    kinds: Mapping[str, type[Tool]] = {"why": Why, "checklist": Checklist, "pmie": Pmie, "netdata": Netdata}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place, contextlib.ExitStack() as stack:
        tools: dict[str, Tool] = {}
        for name in names:
            own = Path(place, name)
            own.mkdir()
            tools[name] = kinds[name](case, own)
            stack.callback(tools[name].stop)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(1)
            for tool in tools.values():
                tool.look()
        return {name: tool.stop() for name, tool in tools.items()}


def seconds_to_name(case: Case, tool: str, found: Finding, usual: Finding) -> float | None:
    """When a tool named the injection; None where it did not."""
    if tool == "why":
        times = [at for words, at in found.raised.items() if words.partition(": ")[2] in case.right]
    else:
        resource = RESOURCES.get(case.name, "net")
        # With more tasks than CPUs before, the control is no control.
        known = {} if case.name == "more tasks than CPUs" else usual.raised
        times = [at for words, at in found.raised.items() if words.startswith(f"{resource}: ") and words not in known]
    return min(times, default=None)


def print_table(cases: list[Case], results: Mapping[str, Mapping[str, Finding]]) -> None:
    usual = results["nothing"]
    names = list(usual)
    print(f"| injection | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    totals = dict.fromkeys(names, 0)
    for case in cases:
        if case.name == "nothing" or case.name not in results:
            continue
        cells = []
        for name in names:
            at = seconds_to_name(case, name, results[case.name][name], usual[name])
            totals[name] += at is not None
            cells.append("–" if at is None else f"{at:.0f} s")
        print(f"| {case.name} | {' | '.join(cells)} |")
    print(f"| **named** | {' | '.join(f'{totals[name]} of {len(results) - 1}' for name in names)} |")
    cells = []
    for name in names:
        own = [one[name] for one in results.values()]
        cells.append(f"{sum(one.cpu_seconds for one in own) / sum(one.seconds for one in own):.1%}")
    print(f"| CPU while it runs (one CPU is 100 %) | {' | '.join(cells)} |")
    for name in names:
        print(f"\n{name} without an injection: {', '.join(usual[name].raised) or 'nothing'}")


def main() -> None:
    """Run the injections, print the table."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("--only", default="")
    asked.add_argument("--seconds", type=float, default=60.0)
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    needs = {"checklist": ("vmstat", "iostat", "sar"), "pmie": Pmie.needs, "netdata": Netdata.needs}
    names = [name for name in TOOLS if all(map(shutil.which, needs.get(name, ())))]
    for name in set(TOOLS) - set(names):
        print(f"{name}: not installed", file=sys.stderr)
    results: dict[str, dict[str, Finding]] = {
        "nothing": run_case(Case("nothing", frozenset(), ()), names, given.seconds)
    }
    cases: list[Case] = []
    for injection in INJECTIONS:
        if given.only.lower() not in injection.name.lower():
            continue
        with injection.make() as where:
            # The loopback of a namespace is down, and the daemons speak over it.
            if where:
                subprocess.run([*where, "ip", "link", "set", "lo", "up"], check=True)
            case = Case(injection.name, injection.right, where)
            cases.append(case)
            results[case.name] = run_case(case, names, given.seconds)
        print(case.name, msgspec.to_builtins(results[case.name]), file=sys.stderr, flush=True)
        if given.json is not None:
            given.json.write_bytes(msgspec.json.encode(results))
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs\n")
    print_table(cases, results)


if __name__ == "__main__":
    main()
