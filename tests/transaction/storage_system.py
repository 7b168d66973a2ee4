"""A tree with block devices, md arrays, huge pages, LLT timers, units and files, and a plan that sets each kind."""

from __future__ import annotations

import subprocess
from pathlib import Path

from advisor.host import Host
from advisor.planning.records import Plan
from tests.cases import cases
from tests.planning.system import llt
from tests.transaction.system import plan_of_values
from tests.trees import host_of, make_command, make_tree

CASES = cases(__file__)

SYSTEMCTL = CASES["SYSTEMCTL"]
FILES = CASES["FILES"]
WANTED = CASES["WANTED"]


def build(where: Path) -> Host:
    root, commands = make_tree(where / "root", FILES), where / "bin"
    make_command(commands, "lltconfig", llt(where)["lltconfig"])
    make_command(commands, "systemctl", SYSTEMCTL.format(root=root))
    make_command(commands, "udevadm", "exit 0")
    subprocess.run([commands / "lltconfig", "-c"], check=True)
    return host_of(root, commands)


def plan_of(host: Host) -> Plan:
    return plan_of_values(host, WANTED)
