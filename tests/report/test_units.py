"""Sizes, speeds and names as a person reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.block.block import natural as natural_fact
from advisor.report.format import clean, natural, ranked, runs
from advisor.report.units import cpu_text, format_binary, format_decimal, format_speed, times


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (4096, "4 KiB"),
        (87_380, "85.3 KiB"),
        (212_992, "208 KiB"),
        (8 << 20, "8 MiB"),
        (25_276_514_304, "23.5 GiB"),
        (384 << 30, "384 GiB"),
        ((1 << 30) - 1, "1 GiB"),
        (1 << 70, "1024 EiB"),
    ],
)
def test_binary(value: int, text: str) -> None:
    assert format_binary(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (512, "512 B"), (1_600_321_314_816, "1.6 TB"), (274_877_906_944, "275 GB"), (999_999_999, "1 GB")],
)
def test_decimal(value: int, text: str) -> None:
    assert format_decimal(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(10, "10 Mbit/s"), (1000, "1 Gbit/s"), (2500, "2.5 Gbit/s"), (25_000, "25 Gbit/s"), (1_200_000, "1.2 Tbit/s")],
)
def test_speed(value: int, text: str) -> None:
    assert format_speed(value) == text


@pytest.mark.parametrize(("count", "text"), [(0, "no links"), (1, "1 link"), (2, "2 links")])
def test_times(count: int, text: str) -> None:
    assert times(count, "link") == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("eth0", "eth0"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\u202eevil", r"\u202eevil"),
        ("\x9b31m", r"\x9b31m"),
        ("bad\udcff", r"bad\udcff"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
        ("Größe 大", "Größe 大"),
    ],
)
def test_clean(raw: str, text: str) -> None:
    assert clean(raw) == text


@given(st.text())
def test_clean_text_is_printable(raw: str) -> None:
    assert clean(raw).isprintable()
    assert clean(clean(raw)) == clean(raw)


IN_A_ROW: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sda1", "sdd1", "sde1"), "sda1, sdd1, sde1"),
    (("sda", "sdb", "sdc"), "sda … sdc"),
    (("sdy", "sdaa", "sdz", "sdab"), "sdy … sdab"),
    (("sdb", "sdd", "sdaa"), "sdb, sdd, sdaa"),
    (("md0", "md2", "md4"), "md0, md2, md4"),
    (("nvme9n1", "nvme10n1", "nvme11n1"), "nvme9n1 … nvme11n1"),
    (("stor09", "stor10", "stor11", "stor13"), "stor09 … stor11, stor13"),
    (("alpha", "beta", "gamma"), "alpha, beta, gamma"),
    (("sda1", "sda2", "sda3", "sdb1"), "sda1 … sda3, sdb1"),
    (("sda1", "sdb1", "sdc1", "sdc2", "sdc3"), "sda1 … sdc1, sdc2, sdc3"),
    (("sda1", "sdb1", "sdb2", "sdc2"), "sda1, sdb1, sdb2, sdc2"),
    (("sdzz", "sdaaa", "sdaab"), "sdzz … sdaab"),
)
DRIVES = tuple(f"nvme{n}n1" for n in range(12))


@pytest.mark.parametrize(
    ("names", "among", "text"),
    [
        (DRIVES, DRIVES, "nvme0n1 … nvme11n1"),
        (DRIVES[:2], DRIVES, "nvme0n1, nvme1n1"),
        (DRIVES[:5] + DRIVES[6:], DRIVES, "nvme0n1 … nvme4n1, nvme6n1 … nvme11n1"),
        (DRIVES[::6], DRIVES, "nvme0n1, nvme6n1"),
        (tuple(reversed(DRIVES)), DRIVES, "nvme0n1 … nvme11n1"),
        (("sda", "sdc"), ("sda", "sdb", "sdc"), "sda, sdc"),
        (("gone",), (), "gone"),
        *((names, names, text) for names, text in IN_A_ROW),
        ((), DRIVES, ""),
    ],
)
def test_runs(names: tuple[str, ...], among: tuple[str, ...], text: str) -> None:
    assert runs(names, ranked(among)) == text


@given(st.lists(st.text()))
def test_any_names_can_be_sorted(names: list[str]) -> None:
    assert sorted(map(natural, names)) == sorted(map(natural, reversed(names)))
    assert runs(names, ranked(names)) == runs(names[::-1], ranked(names[::-1]))


@pytest.mark.parametrize(
    ("cpus", "text"),
    [
        ("0-3,8", "0-3, 8"),
        (",".join(map(str, range(0, 576, 8))), "0, 8, 16 … 568 (72 CPUs)"),
        ("0-1,8-9,16-17,24-25", "0-1, 8-9, 16-17 … 24-25 (8 CPUs)"),
        ("whatever", "whatever"),
    ],
)
def test_cpu_lists_are_exact(cpus: str, text: str) -> None:
    assert cpu_text(cpus) == text


@pytest.mark.parametrize("key", [natural, natural_fact])
def test_disks_are_in_the_order_in_which_the_kernel_names_them(key: object) -> None:
    names = ["sda", "sda2", "sda10", "sdb", "sdz", "sdaa", "sdab", "vda", "vdaa"]
    assert sorted(names, key=key) == names  # type: ignore[call-overload]
