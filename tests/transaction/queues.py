"""A link whose driver resets all settings of its queues when their number changes, as most drivers do.

The driver is an ``ethtool`` on the search path that keeps its state in the tree. What only the running kernel can be
read and set (ethtool -l and -L) is asked of that stand-in by plans from here.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from advisor.facts.host_facts import Facts
from advisor.host import DirectoryFiles, Host, LiveCommands, ReadFile, RunCommand, SetEthtool, Step
from advisor.host.ethtool import Answer
from advisor.planning.records import Change, Plan
from advisor.transaction.journal import Record, Store
from advisor.transaction.side_effects import ItemOutcome
from tests.cases import cases
from tests.transaction.system import apply_locked, plan_of_values, roll_back_locked, store_of
from tests.transaction.test_script import SHELLS, run_script
from tests.trees import STANDARD_PATH, make_command, make_tree

CASES = cases(__file__)

CHANNELS: Answer = {"combined": 4, "combined_max": 8, "rx_max": 0, "tx_max": 0, "other_max": 0}
LINK = "eth1"

DRIVER = CASES["DRIVER"]


class QueueHost(Host):
    """What a driver says about its channels, as far as the stand-in knows them."""

    def ethtool(self, link: str, what: str) -> Answer:
        now = int(Path(self.locate("/run/channels")).read_text())
        return {**CHANNELS, "combined": now} if what == "channels" else {}


def build(where: Path, *, virtio: bool = False, names: str = "eth1-TxRx-N") -> QueueHost:
    """Four queues, of which an administrator has set up all that can be."""
    function = where / "root/sys/devices/pci0000:00/0000:00:05.0"
    device = "../../../devices/pci0000:00/0000:00:05.0"
    files: dict[str, str | bytes] = {
        "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
        "/proc/sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n",
        "/proc/interrupts": "",
        "/sys/devices/pci0000:00/0000:00:05.0/class": "0x020000\n",
        "/sys/devices/pci0000:00/0000:00:05.0/virtio0/uevent": "",
        "/sys/devices/pci0000:00/msi_irqs/24": "",
        "/sys/class/net/eth1/mtu": "1500\n",
        "/run/channels": "4\n",
        "/run/next": "40\n",
        "/run/names": names,
        "/run/table": "",
    }
    links = {"/sys/class/net/eth1/device": f"{device}/virtio0" if virtio else device}
    make_tree(where / "root", files, links)
    driver = DRIVER.replace("ROOT", repr(str(where / "root"))).replace("FUNCTION", repr(str(function)))
    (where / "driver.py").write_text(driver)
    make_command(where / "bin", "ethtool", f'exec {sys.executable} -I -S {where / "driver.py"} "$@"')
    call(where, "-L", LINK, "combined", "4")
    for number, cpus in zip(sorted((function / "msi_irqs").iterdir()), ("0", "2", "4", "0-1"), strict=True):
        (where / f"root/proc/irq/{number.name}/smp_affinity_list").write_text(f"{cpus}\n")
    call(where, "-X", LINK, "weight", "8", "4", "0", "4")
    queues = where / "root/sys/class/net/eth1/queues"
    (queues / "rx-3/rps_cpus").write_text("0f\n")
    (queues / "rx-3/rps_flow_cnt").write_text("512\n")
    (queues / "tx-1/xps_cpus").write_text("30\n")
    return QueueHost(
        DirectoryFiles(str(where / "root")), LiveCommands(path=f"{where / 'bin'}:{STANDARD_PATH}"), is_root=True
    )


def call(where: Path, *words: str) -> None:
    """What an administrator does."""
    subprocess.run([where / "bin/ethtool", *words], check=True)


def state(where: Path) -> dict[str, object]:
    """What must be as it was; numbers of interrupts are not among it."""
    root = where / "root"
    queues = sorted((root / "sys/class/net/eth1/queues").glob("*/*"))
    vectors = sorted(int(one.name) for one in (root / "sys/devices/pci0000:00/0000:00:05.0/msi_irqs").iterdir())
    return {
        "channels": (root / "run/channels").read_text(),
        "table": (root / "run/table").read_text(),
        "queues": {f"{one.parent.name}/{one.name}": int(one.read_text(), 16) for one in queues},
        "irqs": [
            (
                (root / f"sys/kernel/irq/{number}/actions").read_text(),
                (root / f"proc/irq/{number}/smp_affinity_list").read_text(),
            )
            for number in vectors
        ],
    }


def plan_of(host: Host, values: dict[str, str] | None = None, known: Facts | None = None) -> Plan:
    """A plan of these values; the channels are set in the stand-in."""
    wanted = values or {f"link:{LINK}:channels.combined": "2"}
    plan = plan_of_values(host, wanted, runtime_only=True, known=known)
    return msgspec.structs.replace(plan, changes=tuple(_by_stand_in(one) for one in plan.changes))


def _by_stand_in(change: Change) -> Change:
    if ":channels." not in change.tunable:
        return change
    return msgspec.structs.replace(
        change, probe=ReadFile("/run/channels"), steps=_commands(change.steps), undo=_commands(change.undo)
    )


def _commands(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(RunCommand(step.argv) if isinstance(step, SetEthtool) else step for step in steps)


WAYS = ["rollback", *(shell[0] for shell in SHELLS)]


def applied(where: Path, host: Host, values: dict[str, str] | None = None) -> tuple[Record, Store]:
    store = store_of(where)
    return apply_locked(host, plan_of(host, values), store), store


def back(where: Path, host: Host, record: Record, store: Store, way: str) -> tuple[int, str]:
    """Exit code and what was said, of one of the ways back."""
    if way != "rollback":
        done = run_script(store.script_path(record.id), where, shell=next(one for one in SHELLS if one[0] == way))
        return done.returncode, done.stdout + done.stderr
    outcomes = roll_back_locked(host, record, store)
    return (0 if all(one.is_back for one in outcomes) else 5), "\n".join(map(outcome_line, outcomes))


def outcome_line(one: ItemOutcome) -> str:
    return f"{one.state:9} {one.what}: {one.detail}"
