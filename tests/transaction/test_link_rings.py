"""Which link is the one that was changed, within one boot and after one, on a tree: rings and channels of a stand-in
driver, and a queue's length, by both engines."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from advisor.host import Host, ReadCommand, RunCommand
from advisor.planning.records import Plan
from tests.cases import cases
from tests.transaction.system import MACHINE, apply_locked, plan_of_values, roll_back_locked, store_of
from tests.transaction.test_script import SHELLS, run_script
from tests.trees import host_of, make_command, make_tree

CASES = cases(__file__)

DRIVER = CASES["DRIVER"]
WAYS = ["command", *(shell[0] for shell in SHELLS)]


def build(where: Path) -> Host:
    """Links a, b and c, each of its own device, and v, a virtual one."""
    files = {"/etc/machine-id": f"{MACHINE}\n", "/proc/sys/kernel/random/boot_id": "first\n"}
    for number, name in enumerate("abcv", 2):
        base = f"/sys/class/net/{name}"
        files |= {
            f"{base}/ifindex": f"{number}\n",
            f"{base}/address": f"02:00:00:00:00:0{number}\n",
            f"{base}/addr_assign_type": "0\n",
            f"{base}/tx_queue_len": "1000\n",
            f"{base}/own-g": "256\n",
            f"{base}/own-l": "4\n",
        }
        if name != "v":
            files[f"/sys/devices/pci0000:00/0000:00:0{number}.0/vendor"] = "0x1af4\n"
    links = {
        f"/sys/class/net/{name}/device": f"../../../devices/pci0000:00/0000:00:0{number}.0"
        for number, name in enumerate("abc", 2)
    }
    root = make_tree(where / "root", files, links)
    make_command(where / "bin", "ethtool", DRIVER.format(root=root))
    return host_of(root, where / "bin")


def plan_of(host: Host, link: str) -> Plan:
    """Of a queue's length; the ring and the channels are set in the stand-in."""
    plan = plan_of_values(host, {f"link:{link}:txqueuelen": "555"}, runtime_only=True)
    (length,) = plan.changes
    changes = [length]
    for what, letter, before, after in (("ring.rx", "g", "256", "512"), ("channels.combined", "l", "4", "2")):
        word, _, key = what.partition(".")
        steps = [(RunCommand(("ethtool", f"-{letter.upper()}", link, key, value)),) for value in (after, before)]
        probe = ReadCommand(("ethtool", f"-{letter}", link), "words")
        assert word in ("ring", "channels")
        changes.append(
            msgspec.structs.replace(
                length,
                tunable=f"link:{link}:{what}",
                before=before,
                after=after,
                probe=probe,
                steps=steps[0],
                undo=steps[1],
            )
        )
    return msgspec.structs.replace(plan, changes=tuple(changes))


def own(root: Path, link: str) -> list[str]:
    return [(root / "sys/class/net" / link / name).read_text().strip() for name in ("tx_queue_len", "own-g", "own-l")]


BEFORE, AFTER = ["1000", "256", "4"], ["555", "512", "2"]


def rename(root: Path, old: str, new: str) -> None:
    (root / "sys/class/net" / old).rename(root / "sys/class/net" / new)


def swap(root: Path, one: str, two: str) -> None:
    for old, new in ((one, "aside"), (two, one), ("aside", two)):
        rename(root, old, new)


def text(root: Path, name: str, value: str) -> None:
    (root / "sys/class/net" / name).write_text(f"{value}\n")


def boot(root: Path) -> None:
    (root / "proc/sys/kernel/random/boot_id").write_text("second\n")
    for number, path in enumerate(sorted((root / "sys/class/net").iterdir(), reverse=True), 2):
        (path / "ifindex").write_text(f"{number}\n")


def other_slot(root: Path, name: str) -> None:
    shutil.copytree(root / "sys/devices/pci0000:00/0000:00:02.0", root / "sys/devices/pci0000:00/0000:00:09.0")
    (root / "sys/class/net" / name / "device").unlink()
    (root / "sys/class/net" / name / "device").symlink_to("../../../devices/pci0000:00/0000:00:09.0")


Change = Callable[[Path], object]


def at_boot(change: Change) -> Change:
    def both(root: Path) -> None:
        change(root)
        boot(root)

    return both


def twin(root: Path) -> None:
    shutil.copytree(root / "sys/class/net/a", root / "sys/class/net/z", symlinks=True)


FOUND: dict[str, tuple[Change, str]] = {
    "swapped": (lambda root: swap(root, "a", "b"), "b"),
    "swapped at boot": (at_boot(lambda root: swap(root, "a", "b")), "b"),
    "renamed at boot": (at_boot(lambda root: rename(root, "a", "z")), "z"),
}
LOST: dict[str, Change] = {
    "a twin at boot": at_boot(twin),
    "moved at boot": at_boot(lambda root: other_slot(root, "a")),
    "exchanged at boot": at_boot(lambda root: text(root, "a/address", "02:00:00:00:00:99")),
    "another device with its index": lambda root: other_slot(root, "a"),
    "pulled": lambda root: shutil.rmtree(root / "sys/class/net/a"),
}


def back(where: Path, host: Host, way: str) -> tuple[int, str]:
    store = store_of(where)
    (record,) = store.read_records()
    if way != "command":
        shell = next(one for one in SHELLS if one[0] == way)
        done = run_script(store.script_path(record.id), where, shell=shell)
        return done.returncode, done.stdout + done.stderr
    outcomes = roll_back_locked(host, record, store)
    said = "\n".join(f"{one.state} {one.what}: {one.detail}" for one in outcomes)
    return (0 if all(one.is_back for one in outcomes) else 5), said


def apply(where: Path, link: str = "a") -> Host:
    host, store = build(where), store_of(where)
    apply_locked(host, plan_of(host, link), store)
    assert own(where / "root", link) == AFTER
    return host


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", FOUND)
def test_our_link_is_found(tmp_path: Path, change: str, way: str) -> None:
    make, name = FOUND[change]
    host, root = apply(tmp_path), tmp_path / "root"
    # The other one reads as was set on ours.
    for other in "bc":
        for file, value in zip(("tx_queue_len", "own-g", "own-l"), AFTER, strict=True):
            text(root, f"{other}/{file}", value)
    make(root)
    code, said = back(tmp_path, host, way)
    assert code == 0, said
    assert own(root, name) == BEFORE, said
    others = {path.name for path in (root / "sys/class/net").iterdir()} - {name, "v"}
    assert [own(root, other) for other in sorted(others)] == [AFTER, AFTER], said
    assert said.count(f"a is now named {name}") == 3, said


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", LOST)
def test_a_link_that_is_not_certain_is_left_alone(tmp_path: Path, change: str, way: str) -> None:
    host, root = apply(tmp_path), tmp_path / "root"
    LOST[change](root)
    names = sorted(path.name for path in (root / "sys/class/net").iterdir())
    stands = [own(root, name) for name in names]
    code, said = back(tmp_path, host, way)
    assert (code, [own(root, name) for name in names]) == (5, stands), said
    # The values of a card went with it; those of one that cannot be told from another may still be set.
    state, why = ("kept", "is not there") if change == "pulled" else ("failed", "cannot be distinguished from")
    for what in ("txqueuelen", "ring.rx", "channels.combined"):
        assert any(f"link:a:{what}" in line and why in line and state in line for line in said.splitlines()), said


@pytest.mark.parametrize("way", WAYS)
def test_a_virtual_link_is_known_by_its_name_after_a_boot(tmp_path: Path, way: str) -> None:
    host, root = apply(tmp_path, "v"), tmp_path / "root"
    boot(root)
    assert back(tmp_path, host, way)[0] == 0
    assert own(root, "v") == BEFORE
