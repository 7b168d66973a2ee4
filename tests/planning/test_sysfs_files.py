"""Files below /sys that have two names, or that the kernel reads in another spelling than it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.errors import UsageError
from advisor.host import Host, MemoryFiles, NoCommands
from advisor.tunables.sysfs import SysfsAttribute
from tests.cases import cases
from tests.transaction.kernel_system import build, plan_of, reasons, values

CASES = cases(__file__)

QUEUES = "/sys/devices/virtual/workqueue"
BUS = "/sys/bus/workqueue/devices"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Two queues of work, one of which is listed on its bus, too."""
    found = build(tmp_path, {f"{QUEUES}/a/cpumask": "f\n", f"{QUEUES}/b/cpumask": "f\n", f"{BUS}/none": ""})
    (tmp_path / f"root{BUS}/b").symlink_to("../../../devices/virtual/workqueue/b")
    return found


def test_a_file_of_two_names_is_set_once(host: Host) -> None:
    """Set twice, it would be restored twice, and to a wrong value."""
    plan = plan_of(host, {f"sysfs:{BUS}/b/cpumask": "3", f"sysfs:{QUEUES}/*/cpumask": "3"})
    assert values(plan) == {f"sysfs:{BUS}/b/cpumask": ("f", "3"), f"sysfs:{QUEUES}/a/cpumask": ("f", "3")}
    why = f"is the same file as sysfs:{BUS}/b/cpumask"
    assert reasons(plan) == {f"sysfs:{QUEUES}/b/cpumask": ("not-applicable", why)}


def test_two_values_for_one_file_are_refused(host: Host) -> None:
    with pytest.raises(UsageError, match="are one file"):
        plan_of(host, {f"sysfs:{BUS}/b/cpumask": "3", f"sysfs:{QUEUES}/b/cpumask": "1"})


@pytest.mark.parametrize(("name", "live", "wanted", "written"), CASES["a mask is spelt as the kernel spells it"])
def test_a_mask_is_spelt_as_the_kernel_spells_it(name: str, live: str, wanted: str, written: str) -> None:
    place = f"/sys/devices/x/{name}"
    machine = Host(MemoryFiles({place: f"{live}\n".encode()}), NoCommands())
    assert SysfsAttribute(place).choose_value(machine, live, wanted) == written
