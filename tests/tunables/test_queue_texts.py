"""The RSS indirection table and the interrupts of a link, as Python and as the rollback script read them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import CommandError
from advisor.host import Host, Missing, ReadCommand, ReadIrqs, SetIrqs, Step, WriteFile, observe
from advisor.host.kernel_text import highest_queue, indirection, setting_words
from advisor.shell.rollback_script import probe_fields, step_fields
from tests.trees import host_of, listing, make_tree
from tests.tunables.form_shell import NOTHING, SHELLS, fields_command, functions, plain, read_batch, read_by_shell

TABLE = ReadCommand(("ethtool", "-x", "eth0"), "rss")
HEADER = "RX flow hash indirection table for eth0 with {} RX ring(s):\n"
HASH = "RSS hash key:\n6d:5a:56:da\nRSS hash function:\n    toeplitz: on\n    xor: off\n    crc32: off\n"


def printed(rings: int, table: list[int]) -> str:
    """As ethtool(8) prints it: eight entries a line."""
    rows = (table[at : at + 8] for at in range(0, len(table), 8))
    lines = (f"{8 * place:5}:  " + " ".join(f"{one:5}" for one in row) for place, row in enumerate(rows))
    return HEADER.format(rings) + "".join(f"{line}\n" for line in lines) + HASH


TEXTS = {
    printed(4, [place % 4 for place in range(128)]): "default 4 of 128",
    printed(64, [place % 16 for place in range(128)]): "equal 16 of 128",
    printed(8, [2 + place % 3 for place in range(64)]): "equal 3 start 2 of 64",
    printed(4, [0] * 8 + [1] * 4 + [3] * 4): "weight 8 4 0 4 of 16",
    printed(4, [2] * 16): "equal 1 start 2 of 16",
    printed(1, [0] * 16): "default 1 of 16",
    printed(4, [3, 0, 1, 2]): "table 3 0 1 2 of 4",
    # More queues than entries.
    printed(63, list(range(48))): "default 63 of 48",
    # A driver that has no table, and one that answers nothing.
    HEADER.format(1) + "Operation not supported\nRSS hash key:\nOperation not supported\n": NOTHING,
    HASH: NOTHING,
    "": NOTHING,
    "    0:  1 2 3\n": NOTHING,
    printed(4, [123456]): NOTHING,
    printed(123456, [0]): NOTHING,
}


@pytest.mark.parametrize(("text", "value"), TEXTS.items(), ids=range(len(TEXTS)))
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_an_indirection_table(text: str, value: str, shell: list[str]) -> None:
    assert (plain(indirection(text)), read_by_shell(TABLE, text, shell)) == (value, value)


def made(words: tuple[str, ...], rings: int, size: int) -> list[int]:
    """The table that ethtool makes of its words: fill_indir_table() in ethtool.c (version 6.1)."""
    kind, *rest = words
    if kind == "default":
        return [place % rings for place in range(size)]
    if kind == "equal":
        start = int(rest[2]) if len(rest) > 1 else 0
        return [start + place % int(rest[0]) for place in range(size)]
    weights, table, queue, partial = [int(word) for word in rest], [], -1, 0
    for place in range(size):
        while place >= size * partial // sum(weights):
            queue += 1
            partial += weights[queue]
        table.append(queue)
    return table


tables = st.one_of(
    st.lists(st.integers(0, 7), min_size=1, max_size=40),
    st.lists(st.integers(0, 7), min_size=1, max_size=40).map(sorted),
    st.tuples(st.integers(1, 9), st.integers(0, 5), st.integers(1, 40)).map(
        lambda given: [given[1] + place % given[0] for place in range(given[2])]
    ),
)


@given(rings=st.integers(1, 16), table=tables)
def test_the_words_for_a_table_make_that_table(rings: int, table: list[int]) -> None:
    value = indirection(printed(rings, table))
    assert isinstance(value, str)
    assert highest_queue(value) == (rings - 1 if value.startswith("default ") else max(table))
    words = setting_words(value)
    if words is None:
        assert table != sorted(table)
        assert value == f"table {' '.join(map(str, table))} of {len(table)}"
    else:
        assert made(words, rings, len(table)) == table


FUNCTION = "/sys/devices/pci0000:00/0000:00:05.0"


def tree(where: Path, irqs: dict[int, tuple[bytes, str]]) -> Path:
    """A link on a PCI function with these interrupts: name and affinity."""
    files: dict[str, str | bytes] = {
        f"{FUNCTION}/class": "0x020000\n",
        "/sys/devices/pci0000:00/msi_irqs/7": "",
        "/sys/class/net/eth1/mtu": "",
    }
    for number, (name, cpus) in irqs.items():
        files[f"{FUNCTION}/msi_irqs/{number}"] = ""
        files[f"/sys/kernel/irq/{number}/actions"] = name + b"\n"
        files[f"/proc/irq/{number}/smp_affinity_list"] = f"{cpus}\n"
    return make_tree(where / "root", files, {"/sys/class/net/eth1/device": "../../../devices/pci0000:00/0000:00:05.0"})


def by_shell(line: str, root: Path, shell: list[str] = SHELLS[0]) -> subprocess.CompletedProcess[str]:
    script = f"LC_ALL=C; root={root}\n{functions()}\n{line}"
    return subprocess.run([*shell, "-c", script], capture_output=True, text=True, check=False)


PROBE = ReadIrqs("eth1")
READING = fields_command(probe_fields(PROBE), "read_probe")


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_names_of_an_old_kernel_are_in_proc_interrupts(tmp_path: Path, shell: list[str]) -> None:
    root = tree(tmp_path, {9: (b"x", "1"), 10: (b"x", "2")})
    (root / "sys/kernel/irq/9/actions").unlink()
    (root / "sys/kernel/irq/10/actions").unlink()
    text = "           CPU0\n  9:   1  PCI-MSI 1-edge   eth1-rx\n 10:   2  PCI-MSI 2-edge   eth1-tx\n"
    (root / "proc/interrupts").write_text(text)
    assert observe(host_of(root), PROBE) == "eth1-rx=1 eth1-tx=2"
    assert by_shell(READING, root, shell).stdout == "eth1-rx=1 eth1-tx=2\n"


NAMES = st.text("ab=- \u00e4,-0\t\v\u00a0\u2028%\\", max_size=4).map(str.encode) | st.binary(max_size=3)
IRQS = st.dictionaries(
    st.integers(1, 200),
    st.tuples(NAMES.filter(lambda name: b"\0" not in name), st.sampled_from(["0", "0-3,8", "12", "x", "", " 1", "1 "])),
    max_size=5,
)


def check_batch(where: Path, listed: Iterable[dict[int, tuple[bytes, str]]]) -> None:
    roots = [tree(where / str(number), irqs) for number, irqs in enumerate(listed)]
    by_python = [plain(observe(host_of(root), PROBE)) for root in roots]
    for shell in SHELLS:
        for root, ours, value in zip(
            roots, read_batch(shell, [(str(root), PROBE) for root in roots]), by_python, strict=True
        ):
            assert ours == value, (shell[0], listing(root / "proc"), listing(root / "sys"))


@settings(max_examples=3, derandomize=True, database=None)
@given(st.lists(IRQS, min_size=15, max_size=15))
def test_shells_and_python_read_the_same_interrupts(
    tmp_path_factory: pytest.TempPathFactory, listed: list[dict[int, tuple[bytes, str]]]
) -> None:
    check_batch(tmp_path_factory.mktemp("irqs"), listed)


@pytest.mark.parametrize("cpus", ["x", ""])
def test_an_affinity_that_is_none_is_missing(tmp_path: Path, cpus: str) -> None:
    assert isinstance(observe(host_of(tree(tmp_path, {9: (b"a", "0"), 10: (b"b", cpus)})), PROBE), Missing)


class ManagingHost(Host):
    """A kernel that keeps interrupt 9 to itself."""

    def do(self, step: Step) -> None:
        if isinstance(step, WriteFile) and "/irq/9/" in step.path:
            raise CommandError(f"{step.path}: Input/output error")
        super().do(step)


MANAGING = 'write() { case $2 in */irq/9/*) return 1 ;; esac; printf "%s\\n" "$1" > "$2"; }'


@pytest.mark.parametrize("way", ["python", *(shell[0] for shell in SHELLS)])
def test_each_gets_its_own_and_what_is_refused_is_told(tmp_path: Path, way: str) -> None:
    root = tree(tmp_path, {9: (b"q1", "0-7"), 10: (b"q0", "0-7"), 11: (b"q2", "0-7"), 12: (b"q3", "4")})
    step = SetIrqs("eth1", ("q0=1", "q1=2", "q2=3", "q3=4"))
    if way == "python":
        host = host_of(root)
        with pytest.raises(CommandError, match="irq/9/"):
            ManagingHost(host.files, host.commands, is_root=True).do(step)
    else:
        shell = next(one for one in SHELLS if one[0] == way)
        done = by_shell(f"{MANAGING}\n{fields_command(step_fields(step), 'do_step')}", root, shell)
        assert done.returncode == 1
        assert "the kernel does not take the affinity of interrupt 9 (q1)" in done.stdout
    found = [(root / f"proc/irq/{number}/smp_affinity_list").read_text() for number in (9, 10, 11, 12)]
    assert found == ["0-7\n", "1\n", "3\n", "4\n"], "the others have got theirs"


def test_vectors_of_the_bridge_above_are_not_the_links(tmp_path: Path) -> None:
    found = observe(host_of(tree(tmp_path, {})), PROBE)
    assert isinstance(found, Missing)
    assert found.is_absent
