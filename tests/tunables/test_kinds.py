"""One file is a kind of tunable: what each says of its examples, its capture and its files below /sys holds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.host import ReadFile
from advisor.tunables import Kind, all_kinds, find_kind, parse_tunable
from advisor.tunables.sysfs_owner import owner_of
from tests.fleet.captures import is_captured
from tests.trees import host_of


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.name)
def test_a_kind_is_whole(kind: Kind) -> None:
    for identity, value in kind.examples:
        assert find_kind(identity) is kind
        assert parse_tunable(identity).id == identity
        assert parse_tunable(identity).check_value(value) is None, f"{identity} refuses its example {value}"
    assert kind.noun


@pytest.mark.parametrize("kind", [kind for kind in all_kinds() if kind.capture], ids=lambda kind: kind.name)
def test_a_capture_holds_what_the_examples_of_a_kind_read(kind: Kind) -> None:
    assert kind.capture is not None
    named = [identity for identity in kind.capture.values if "*" not in identity] or [kind.examples[0][0]]
    read = [parse_tunable(identity).probe for identity in named]
    missing = [one.path for one in read if isinstance(one, ReadFile) and not is_captured(one.path)]
    assert not missing, f"{kind.name}: the kind's capture does not hold {missing}"


@pytest.mark.parametrize("kind", [kind for kind in all_kinds() if kind.sysfs], ids=lambda kind: kind.name)
def test_a_file_below_sys_leads_to_its_kind(kind: Kind) -> None:
    read = [parse_tunable(identity).probe for identity, _ in kind.examples]
    for one in (one for one in read if isinstance(one, ReadFile) and one.path.startswith("/sys/")):
        owners = [found.expand(to) for pattern, to in kind.sysfs if (found := re.fullmatch(pattern, one.path))]
        assert "/queues/" in one.path or [parse_tunable(name).probe for name in owners] == [one]


def test_no_two_kinds_have_one_file_below_sys() -> None:
    paths = [
        probe.path
        for kind in all_kinds()
        for name, _ in kind.examples
        if isinstance(probe := parse_tunable(name).probe, ReadFile)
    ]
    for path in paths:
        owners = {kind.name for kind in all_kinds() for pattern, _ in kind.sysfs if re.fullmatch(pattern, path)}
        assert len(owners) < 2, path


def test_an_example_is_the_id_that_a_plan_has_for_its_file(tmp_path: Path) -> None:
    """A new kind takes files over from ``sysfs``, whose example on the page of tunables would then be another's."""
    examples = [name for kind in all_kinds() for name, _ in kind.examples if name.startswith("sysfs:")]
    taken = {name: owner for name in examples if (owner := owner_of(name.removeprefix("sysfs:"), host_of(tmp_path)))}
    assert not taken, f"advisor/tunables/sysfs.py: another example, this one is of another kind: {taken}"


@pytest.mark.parametrize(
    "identity", ["", "folds", ":run", "edits:x", "pm_qos:cpu_dma_latency", "link_mtu:a", "Sysctl:a"]
)
def test_a_module_that_declares_no_kind_is_none(identity: str) -> None:
    assert find_kind(identity) is None


def test_an_id_loads_its_own_kind_only() -> None:
    code = (
        "import sys; from advisor.tunables import parse_tunable; parse_tunable('md:md0:skip_copy'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "advisor.tunables.md" in done.stdout.split()
    assert not {f"advisor.tunables.{one}" for one in ("sysctl", "link", "unit", "sysfs", "file")} & {
        *done.stdout.split()
    }
