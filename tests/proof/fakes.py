"""A faked system for the proof tests: an fio on PATH, a calm host as a directory, a toggle that writes a file.

Nothing of the product is replaced: the fake fio is a real executable, started by the real runner.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path

from advisor.errors import CommandError
from advisor.host import Host, tree_host
from advisor.proof.fio import FioProcess
from advisor.proof.records import Arm, ToggleClass

FAKE_FIO = r'''#!{python} -IS
"""A stand-in for fio: prints a report for what the options ask for, at a speed that the file `speed` names.

`plan` next to it: noise, sleep (seconds really spent), and misbehave (a hazard, from run `after` on).
"""
import os, sys, time  # and no more, not even json: a session starts this dozens of times

def as_json(document):
    return repr(document).replace("'", '"')  # names and numbers only


here = os.path.dirname(os.path.abspath(__file__))
argv = sys.argv[1:]
if argv == ["--version"]:
    print("fio-3.33")
    raise SystemExit
with open(os.path.join(here, "plan")) as file:
    plan = eval(file.read())
with open(os.path.join(here, "log"), "a") as file:
    file.write(repr({{"argv": argv, "cwd": os.getcwd()}}) + "\n")
with open(os.path.join(here, "log")) as file:
    number = sum(1 for _ in file)
try:
    with open(os.path.join(here, "speed")) as file:
        speed = float(file.read())
except FileNotFoundError:
    speed = 1.0
hazard = plan.get("misbehave") if number > plan.get("after", 0) else None

sections, options = [], None
for word in argv:
    key, _, value = word.removeprefix("--").partition("=")
    if key == "name":
        options = {{}}
        sections.append(options)
    if options is not None:
        options[key] = value

def direction(iops, seconds, block, limit):
    ios = int(iops * seconds)
    if limit:
        ios = min(ios, limit // block)
    latency = int(1e9 / iops) if iops else 0
    runtime = round(ios / iops * 1000) if iops else 0
    return {{"io_bytes": ios * block, "bw_bytes": iops * block, "iops": iops, "runtime": runtime, "total_ios": ios,
            "short_ios": 0, "drop_ios": 0,
            "clat_ns": {{"mean": float(latency), "N": ios, "bins": {{str(latency): ios}} if ios else {{}}}}}}

def normal(state=[plan.get("seed", 0) * 1000 + number]):
    """Nearly normal, mean 0 and deviation 1: twelve uniform numbers."""
    total = -6.0
    for _ in range(12):
        state[0] = (state[0] * 6364136223846793005 + 1442695040888963407) % 2**64
        total += (state[0] >> 11) / 2**53
    return total

for _ in range(3):
    normal()
jobs = []
for options in sections:
    seconds = float(options["runtime"].removesuffix("ms")) / 1000
    block, limit = int(options["bs"]), int(options.get("io_size", 0)) * int(options["numjobs"])
    is_null = options["ioengine"] == "null"
    factor = max(0.05, 1 + plan.get("noise", 0.02) * normal())
    # what an arm does to the null engine; 1 unless the plan says that the control moves
    factor *= speed if not is_null else 1.0 if speed == 1.0 else plan.get("control_factor", 1.0)
    iops = plan.get("iops", 1000.0) * factor
    reading = options["rw"] in ("read", "randread")
    writing = options["rw"] in ("write", "randwrite")
    share = 1.0 if reading else 0.0 if writing else int(options["rwmixread"]) / 100
    jobs.append({{"jobname": options["name"], "error": 0, "usr_cpu": 5.0, "sys_cpu": 10.0,
                 "job_runtime": seconds * 1000,
                 "read": direction(iops * share, seconds, block, int(limit * share)),
                 "write": direction(iops * (1 - share), seconds, block, int(limit * (1 - share)))}})

if "stat" in plan:
    with open(plan["stat"]) as file:
        ticks = file.read().split()
    ticks[1], ticks[4], ticks[8] = (str(int(ticks[at]) + more) for at, more in ((1, 10), (4, 90), (8, plan["steal"])))
    with open(plan["stat"], "w") as file:
        file.write(" ".join(ticks) + "\n")

time.sleep(plan.get("sleep", 0))
status = 0
if hazard == "error-exit-0":
    jobs[0]["error"] = 22
if hazard == "error-exit-1":
    jobs[0]["error"] = 5
    status = 1
if hazard == "zero-ios":
    for job in jobs:
        for way in ("read", "write"):
            job[way].update(io_bytes=0, total_ios=0, iops=0, bw_bytes=0, clat_ns={{"mean": 0.0, "N": 0}})
if hazard == "short-ios":
    jobs[0]["read"]["short_ios"] = 1
if hazard == "dropped-ios":
    jobs[0]["read"]["drop_ios"] = 3
if hazard == "ended-early":
    for way in ("read", "write"):
        jobs[0][way]["runtime"] = 100
if hazard == "status-128":
    print("fio: terminating on signal 2")
    status = 128
if hazard == "text-before":
    print("note: both iodepth >= 1 and synchronous I/O engine are selected\nfio: {{not json}}")
if hazard == "hang":
    os.spawnvp(os.P_NOWAIT, "sleep", ["sleep", "600"])
    time.sleep(600)
if hazard == "hang-ignoring-term":
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.spawnvp(os.P_NOWAIT, "sh", ["sh", "-c", "trap '' TERM; sleep 601 & wait; sleep 601"])
    while True:
        time.sleep(1)
if hazard == "no-output":
    raise SystemExit
if hazard == "only-text":
    print("fio: pid 1 already exists\nabort", file=sys.stderr)
    raise SystemExit(1)
if hazard == "killed-itself":
    os.kill(os.getpid(), 9)
text = "{{\n" + as_json({{"fio version": "fio-3.33", "jobs": jobs}})[1:]
if hazard == "cut-off":
    text = text[: len(text) // 2]
if hazard == "other-shape":
    text = as_json({{"jobs": [{{"jobname": 7}}]}})
if hazard == "nested":
    text = '{{"jobs":' * 100000
print(text)
if hazard == "text-after":
    print("fio: goodbye {{")
raise SystemExit(status)
'''


class FakeFio:
    """An fio executable of our own in ``directory``: ``plan`` sets how it behaves, ``calls`` how it was called."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        program = directory / "fio"
        program.write_text(FAKE_FIO.format(python=sys.executable))
        program.chmod(0o755)
        self.plan()

    @classmethod
    def existing(cls, directory: Path) -> FakeFio:
        """The one that another process has made, its plan untouched."""
        found = cls.__new__(cls)
        found.directory = directory
        return found

    def plan(self, **changes: object) -> None:
        """Set noise, sleep, seed, misbehave, after, iops, control_factor; ``steal`` ticks are added to the faked
        /proc/stat at ``stat`` by each run."""
        (self.directory / "plan").write_text(repr(changes))

    @property
    def runner(self) -> FioProcess:
        """The real runner, with this fio first on its search path."""
        return FioProcess(search_path=f"{self.directory}:/usr/bin:/bin")

    def calls(self) -> list[list[str]]:
        """Argument vectors, in order."""
        return [list(call["argv"]) for call in self._log()]

    def directories(self) -> list[str]:
        """Working directories, in order."""
        return [str(call["cwd"]) for call in self._log()]

    def _log(self) -> list[dict[str, list[str] | str]]:
        log = self.directory / "log"
        return [ast.literal_eval(line) for line in log.read_text().splitlines()] if log.exists() else []


class SpeedToggle:
    """A change that is real for the fake fio: arm B runs ``factor`` times as fast. ``placed`` is what it was given."""

    def __init__(self, fio: FakeFio, factor: float, *, toggle_class: ToggleClass = "T0", settle: float = 0.0) -> None:
        self.file = fio.directory / "speed"
        self.factor = factor
        self.toggle_class: ToggleClass = toggle_class
        self.settle_seconds = settle
        self.placed: list[Arm] = []
        self.fails_at: Sequence[int] = ()

    def place(self, arm: Arm) -> None:
        self.placed.append(arm)
        if len(self.placed) - 1 in self.fails_at:
            raise CommandError(f"sysctl:vm.dirty_ratio reads back 20 instead of 40 in arm {arm}")
        self.file.write_text(str(self.factor if arm == "B" else 1.0))

    @property
    def in_force(self) -> Arm:
        return "A" if float(self.file.read_text()) == 1.0 else "B"


CALM = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=500\n"


def calm_tree(root: Path, **files: str) -> Path:
    """A captured host on which nothing happens and every path lies on ext4; ``files`` replaces or adds by key, with
    ``__`` for a slash."""
    tree = {
        "proc/self/mountinfo": "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n",
        "proc/pressure/cpu": CALM,
        "proc/pressure/io": CALM,
        "proc/meminfo": "MemTotal:        1024 kB\nDirty:               0 kB\nWriteback:           0 kB\n",
        "proc/stat": "cpu  100 0 100 1000 0 0 0 0 0 0\n",
    }
    tree.update({key.replace("__", "/"): text for key, text in files.items()})
    for name, text in tree.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


def calm_host(root: Path, **files: str) -> Host:
    return tree_host(str(calm_tree(root, **files)))
