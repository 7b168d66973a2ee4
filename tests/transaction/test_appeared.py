"""Devices that appear after a transaction: its udev rule gives them the value, verify names those that have it not, and
either rollback restores what they had when they appeared.

The trees play udev: a device that appears gets what the rule in the file says, and the property that it records."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from advisor.host import DirectoryFiles, Host, LiveCommands
from advisor.planning.compute import make_plan
from advisor.planning.expansion import expand_targets
from advisor.planning.observations import observe_targets
from advisor.planning.records import Plan, PlanTarget
from advisor.transaction.journal import Record, Store
from advisor.transaction.status import find_drift
from advisor.tunables import FileEdit, parse_tunable
from advisor.tunables.udev import RULES, DeviceClass
from tests.cases import cases
from tests.transaction.system import apply_locked, bare_facts, roll_back_locked
from tests.transaction.test_script import SHELLS, run_script
from tests.trees import host_of, make_command, make_tree

CASES = cases(__file__)

CLASS, RACE = "udev:block:nvme*/model/FAST DISK*:scheduler", "udev:link:virtio_net:txqueuelen"
AHEAD = "udev:block:nvme*:read_ahead_kb"
FILES = CASES["FILES"]
QUEUE = {"scheduler": "none [mq-deadline] kyber", "read_ahead_kb": "128", "rotational": "0"}


def plug_disk(
    root: Path, name: str, minor: int, queue: dict[str, str] | None = None, model: str = "FAST DISK 1"
) -> Path:
    """A drive as the kernel shows it, before udev has seen it."""
    files = {f"queue/{one}": f"{value}\n" for one, value in {**QUEUE, **(queue or {})}.items()}
    files |= {"dev": f"259:{minor}\n", "device/model": f"{model}    \n", "serial": f"S{minor}\n"}
    make_tree(root, {f"/sys/block/{name}/{one}": text for one, text in files.items()})
    return root / f"sys/block/{name}"


def plug_link(root: Path, name: str, index: int, driver: str) -> Path:
    place = f"/sys/class/net/{name}"
    links = {f"{place}/device/driver": f"../../../../bus/virtio/drivers/{driver}"}
    make_tree(root, {f"{place}/ifindex": f"{index}\n", f"{place}/tx_queue_len": "1000\n"}, links)
    (root / f"sys/bus/virtio/drivers/{driver}").mkdir(parents=True, exist_ok=True)
    return root / place.lstrip("/")


def let_udev_see(root: Path, device: Path, number: str, *records: str) -> None:
    """Carry out the rules of the file that record these properties (all without any)."""
    database = root / f"run/udev/data/{number}"
    text = database.read_text() if database.exists() else ""
    for line in (root / RULES.lstrip("/")).read_text().splitlines():
        found = re.search(r'ENV\{(\w+)\}="\$attr\{(.*?)\}", ATTR\{(.*?)\}="(.*?)"$', line)
        if found is None or (records and not found[1].startswith(records)) or not (device / found[2]).exists():
            continue
        had = (device / found[2]).read_text().strip()
        text += f"E:{found[1]}={re.sub(r'[^A-Za-z0-9#+.:=@_/ $%?,-]', '_', had)}\n"
        value = re.sub(r"[][]", "", had).replace(found[4], f"[{found[4]}]") if "[" in had else found[4]
        (device / found[2]).write_text(f"{value}\n")
    database.write_text(text)


def build(where: Path) -> Host:
    root = make_tree(where / "root", FILES)
    plug_disk(root, "nvme0n1", 0)
    make_command(where / "bin", "udevadm", "exit 0")
    return host_of(root, where / "bin")


def plan_of(host: Host, wanted: dict[str, str]) -> Plan:
    targets = tuple(PlanTarget(name, value, "exactly", "w", "h", ("s",), "test") for name, value in wanted.items())
    once, skipped = expand_targets(host, targets)
    return make_plan(("test",), once, skipped, observe_targets(host, once, {}), bare_facts())


def apply_values(host: Host, store: Store, wanted: dict[str, str]) -> Record:
    return apply_locked(host, plan_of(host, wanted), store)


def drifted(host: Host, *records: Record) -> dict[str, str]:
    return {one.what: one.reason for one in find_drift(host, records)}


WANTED = {CLASS: "kyber", AHEAD: "at-least 512", RACE: "5000", "block:nvme0n1:scheduler": "kyber"}


def with_later_devices(where: Path) -> tuple[Host, Store, Record, dict[str, Path]]:
    host, store = build(where), Store(str(where / "state"))
    record, root = apply_values(host, store, WANTED), where / "root"
    devices = {
        "nvme1n1": plug_disk(root, "nvme1n1", 1),
        "nvme2n1": plug_disk(root, "nvme2n1", 2, {"scheduler": "none mq-deadline [kyber]"}),
        "eth7": plug_link(root, "eth7", 7, "virtio_net"),
    }
    for name, number in {"nvme1n1": "b259:1", "nvme2n1": "b259:2", "eth7": "n7"}.items():
        let_udev_see(root, devices[name], number)
    return host, store, record, devices


def test_a_rule_reaches_and_verify_names_who_has_it_not(tmp_path: Path) -> None:
    host, _, record, devices = with_later_devices(tmp_path)
    root = tmp_path / "root"
    assert drifted(host, record) == {}
    assert (devices["nvme1n1"] / "queue/scheduler").read_text() == "none mq-deadline [kyber]\n"

    plug_disk(root, "nvme3n1", 3, {"read_ahead_kb": "8192"})
    plug_disk(root, "nvme4n1", 4, {"scheduler": "[none]"}, model="OTHER DISK")
    plug_disk(root, "nvme5n1", 5, {"scheduler": "[none] mq-deadline", "read_ahead_kb": "512"})
    (devices["eth7"] / "tx_queue_len").write_text("2000\n")
    assert drifted(host, record) == {
        "block:nvme3n1:scheduler": "the udev rule has not reached it: udevadm trigger /sys/block/nvme3n1",
        "block:nvme4n1:read_ahead_kb": "the udev rule has not reached it: udevadm trigger /sys/block/nvme4n1",
        "block:nvme5n1:scheduler": "the device offers mq-deadline and none",
        "link:eth7:txqueuelen": "modified since the udev rule set it",
    }
    make_tree(root, {"/etc/udev/rules.d/95-late.rules": 'SUBSYSTEM=="net", ATTR{tx_queue_len}="2000"\n'})
    assert "95-late.rules assigns tx_queue_len after" in drifted(host, record)["link:eth7:txqueuelen"]


@pytest.mark.parametrize("shell", [None, *SHELLS], ids=lambda shell: shell[0] if shell else "python")
def test_a_rollback_restores_what_they_had_when_they_appeared(tmp_path: Path, shell: list[str] | None) -> None:
    host, store, record, devices = with_later_devices(tmp_path)
    root = tmp_path / "root"
    # A drive that nothing has set by itself, and one that somebody set otherwise since.
    (devices["nvme2n1"] / "queue/read_ahead_kb").write_text("64\n")
    if shell is None:
        outcomes = {one.what: (one.state, one.detail) for one in roll_back_locked(host, record, store)}
        assert outcomes["block:nvme1n1:scheduler"] == ("restored", "kyber → mq-deadline")
        assert outcomes["block:nvme2n1:read_ahead_kb"] == ("already", "is 64, not what its udev rule gave it")
    else:
        done = run_script(store.script_path(record.id), tmp_path, shell=shell)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "block:nvme1n1:scheduler: kyber -> mq-deadline" in done.stdout
        assert run_script(store.script_path(record.id), tmp_path, shell=shell).returncode == 3
    assert (devices["nvme1n1"] / "queue/scheduler").read_text() == "mq-deadline\n"
    assert (devices["nvme1n1"] / "queue/read_ahead_kb").read_text() == "128\n"
    # It had this value when it appeared.
    assert (devices["nvme2n1"] / "queue/scheduler").read_text() == "none mq-deadline [kyber]\n"
    assert (devices["nvme2n1"] / "queue/read_ahead_kb").read_text() == "64\n"
    assert (devices["eth7"] / "tx_queue_len").read_text() == "1000\n"
    assert not (root / RULES.lstrip("/")).exists()


@pytest.mark.parametrize(("wanted", "words"), CASES["a device has one rule for a value"])
def test_a_device_has_one_rule_for_a_value(tmp_path: Path, wanted: dict[str, str], words: str | None) -> None:
    """Of two, nothing would say what a device had before both."""
    host = with_later_devices(tmp_path)[0]
    plan = plan_of(host, wanted)
    assert [words in one.reason for one in plan.blocking if words] == ([True] * len(wanted) if words else [])
    assert bool(plan.blocking) == bool(words)


@pytest.mark.parametrize("bound", [1, 9, 10, 100, 128, 4096, 90000])
def test_the_patterns_fit_what_is_less_and_nothing_else(bound: int) -> None:
    one = parse_tunable(AHEAD)
    assert isinstance(one, DeviceClass)
    edit = one.make_edit(
        Host(DirectoryFiles("/nowhere"), LiveCommands(), is_root=True), f"at-least {bound}", profile="x"
    )
    assert isinstance(edit, FileEdit)
    found = re.search(r'ATTR\{queue/read_ahead_kb\}=="(.*?)"', edit.value)
    assert found is not None
    patterns = found[1].split("|")
    near = {0, 1, bound - 1, bound, bound + 1, bound * 10, *range(0, 200000, 997), *range(300)}
    assert {n for n in near if any(fnmatchcase(str(n), one) for one in patterns)} == {n for n in near if n < bound}


ENGINES = [None, *SHELLS]
by_engine = pytest.mark.parametrize("shell", ENGINES, ids=lambda shell: shell[0] if shell else "python")


def undo(where: Path, host: Host, store: Store, record: Record, shell: list[str] | None, *options: str) -> list[str]:
    """Roll back by either engine; what is not restored."""
    if shell is None:
        outcomes = roll_back_locked(host, store.find_record(record.id), store)
        return [f"{one.what}: {one.detail}" for one in outcomes if not one.is_back]
    done = run_script(store.script_path(record.id), where, *options, shell=shell)
    assert done.returncode in (0, 3, 5), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith(("kept", "failed"))]


@by_engine
def test_a_device_is_restored_while_udev_still_has_its_record(tmp_path: Path, shell: list[str] | None) -> None:
    host, store, record, devices = with_later_devices(tmp_path)
    log = tmp_path / "log"
    make_command(
        tmp_path / "bin",
        "udevadm",
        f'[ "$*" != "control --reload" ] || cat {devices["nvme1n1"]}/queue/scheduler >>{log}',
    )
    assert undo(tmp_path, host, store, record, shell, "--reload") == []
    assert log.read_text() == "mq-deadline\n"


@by_engine
def test_a_device_that_appears_while_the_rule_goes_is_restored(tmp_path: Path, shell: list[str] | None) -> None:
    """A process of udev ends its work with the rules that it has read, whatever is in the file by then."""
    host, store, record, _ = with_later_devices(tmp_path)
    root = tmp_path / "root"
    new = plug_disk(root, "nvme7n1", 7)
    let_udev_see(root, new, "b259:7")
    late = {new / "queue/scheduler": None, new / "queue/read_ahead_kb": None, root / "run/udev/data/b259:7": None}
    texts = {path: path.read_text() for path in late}
    (root / "run/udev/data/b259:7").unlink()
    (new / "queue/scheduler").write_text("none [mq-deadline] kyber\n")
    (new / "queue/read_ahead_kb").write_text("128\n")
    writes = "; ".join(f"printf '%s' '{text}' >{path}" for path, text in texts.items())
    make_command(tmp_path / "bin", "udevadm", f'case "$1" in settle) {writes} ;; esac')
    assert undo(tmp_path, host, store, record, shell, "--reload") == []
    assert (new / "queue/scheduler").read_text() == "mq-deadline\n"
    assert (new / "queue/read_ahead_kb").read_text() == "128\n"


def two_rules(where: Path) -> tuple[Host, Store, Record, Record, Path]:
    # A script that works on a tree notes what it did only below that.
    host, store = build(where), Store(str(where / "root/var/lib/advisor"))
    first = apply_values(host, store, {AHEAD: "512"})
    return host, store, first, apply_values(host, store, {RACE: "5000"}), where / "root" / RULES.lstrip("/")


@by_engine
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_rules_of_two_transactions_go_one_by_one(
    tmp_path: Path, shell: list[str] | None, order: tuple[int, int]
) -> None:
    host, store, *records, rules = two_rules(tmp_path)
    assert isinstance(records[0], Record)
    assert isinstance(records[1], Record)
    both = rules.read_text()
    left = [line for line in both.splitlines() if "READ_AHEAD" not in line and "read_ahead" not in line]
    assert undo(tmp_path, host, store, records[order[0]], shell) == []
    if order == (0, 1):
        assert rules.read_text().splitlines() == left
    assert drifted(host, *store.readable_records()) == {}
    states = [one.is_active for one in store.readable_records()]
    assert states == [order[0] != 0, order[0] != 1]
    assert undo(tmp_path, host, store, records[order[1]], shell) == []
    assert not rules.exists()
    assert not any(one.is_active for one in store.readable_records())


@by_engine
def test_a_rule_that_somebody_edited_stays_and_is_named(tmp_path: Path, shell: list[str] | None) -> None:
    host, store, first, _, rules = two_rules(tmp_path)
    text = rules.read_text().replace('read_ahead_kb}="512"', 'read_ahead_kb}="1024"')
    rules.write_text(text)
    assert any(RULES in one and "modified externally" in one for one in undo(tmp_path, host, store, first, shell))
    assert rules.read_text() == text


def reboot(root: Path) -> None:
    """The kernel's own values again, and udev's rules carried out on each device."""
    make_tree(root, {"/proc/sys/kernel/random/boot_id": "22222222-2222-3333-4444-555555555555\n"})
    for database in (root / "run/udev/data").iterdir():
        database.unlink()


@by_engine
def test_a_device_that_was_there_gets_what_it_had_when_planned(tmp_path: Path, shell: list[str] | None) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    root = tmp_path / "root"
    drive, link = root / "sys/block/nvme0n1", plug_link(root, "eth5", 5, "virtio_net")
    (drive / "queue/read_ahead_kb").write_text("64\n")
    (link / "tx_queue_len").write_text("3000\n")
    record = apply_values(host, store, {AHEAD: "512", RACE: "5000"})
    reboot(root)
    # Found in another order, under other names.
    drive.rename(root / "sys/block/nvme8n1")
    drive = root / "sys/block/nvme8n1"
    (drive / "dev").write_text("259:8\n")
    (drive / "queue/read_ahead_kb").write_text("128\n")
    other = plug_disk(root, "nvme0n1", 0)
    (other / "serial").write_text("S-OTHER\n")
    (link / "tx_queue_len").write_text("1000\n")
    for device, number in ((drive, "b259:8"), (other, "b259:0"), (link, "n5")):
        let_udev_see(root, device, number)
    assert [(one / "queue/read_ahead_kb").read_text() for one in (drive, other)] == ["512\n"] * 2
    assert undo(tmp_path, host, store, record, shell) == []
    assert [(one / "queue/read_ahead_kb").read_text() for one in (drive, other)] == ["64\n", "128\n"]
    assert (link / "tx_queue_len").read_text() == "3000\n"


@by_engine
def test_another_drive_in_the_place_of_one_that_was_listed_gets_nothing_of_it(
    tmp_path: Path, shell: list[str] | None
) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    root = tmp_path / "root"
    record = apply_values(host, store, {AHEAD: "512"})
    gone, stays = plug_disk(root, "nvme1n1", 1, {"read_ahead_kb": "64"}), plug_disk(root, "nvme2n1", 2)
    for device, number in ((gone, "b259:1"), (stays, "b259:2")):
        let_udev_see(root, device, number)
    # While the rule goes: a drive is exchanged for one that a person has set, before the early attempt has written.
    swap = f"echo S-NEW >{gone}/serial; echo 512 >{gone}/queue/read_ahead_kb; rm -f {root}/run/udev/data/b259:1"
    make_command(tmp_path / "bin", "udevadm", f'[ "$*" != "control --reload" ] || {{ {swap}; }}')
    (gone / "queue/read_ahead_kb").chmod(0o444)
    assert undo(tmp_path, host, store, record, shell, "--reload") == []
    assert (gone / "queue/read_ahead_kb").read_text() == "512\n"
    assert (stays / "queue/read_ahead_kb").read_text() == "128\n"


@by_engine
def test_a_device_that_the_plan_sets_itself_follows_its_own_value(tmp_path: Path, shell: list[str] | None) -> None:
    """Also after a boot, when the rule for the class has reached it and recorded the kernel's own value."""
    host, store = build(tmp_path), Store(str(tmp_path / "root/var/lib/advisor"))
    root = tmp_path / "root"
    drive = root / "sys/block/nvme0n1"
    record = apply_values(host, store, {CLASS: "kyber", "block:nvme0n1:scheduler": "kyber"})
    reboot(root)
    (drive / "queue/scheduler").write_text("[none] mq-deadline kyber\n")
    let_udev_see(root, drive, "b259:0")
    assert drifted(host, record) == {}
    assert undo(tmp_path, host, store, record, shell) == []
    # A tree keeps the bare word that is written; the kernel would put it in brackets.
    assert (drive / "queue/scheduler").read_text() == "mq-deadline\n"


def test_a_device_that_an_upper_layer_holds_stays(tmp_path: Path) -> None:
    host, store = build(tmp_path), Store(str(tmp_path / "state"))
    root = tmp_path / "root"
    drive, one = root / "sys/block/nvme0n1", "block:nvme0n1:read_ahead_kb"
    first = apply_values(host, store, {AHEAD: "512", one: "256"})
    reboot(root)
    (drive / "queue/read_ahead_kb").write_text("128\n")
    let_udev_see(root, drive, "b259:0")
    (drive / "queue/read_ahead_kb").write_text("256\n")
    second = apply_values(host, store, {one: "512"})
    outcomes = roll_back_locked(host, first, store)
    assert [item.what for item in outcomes if not item.is_back and item.state != "passed"] == []
    assert (drive / "queue/read_ahead_kb").read_text() == "512\n"
    roll_back_locked(host, store.find_record(second.id), store)
    assert (drive / "queue/read_ahead_kb").read_text() == "128\n"
