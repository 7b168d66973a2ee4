"""What ``prove`` and ``bench`` have in common as commands: options, what the user chose, and printing a result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.parameters import Option

if TYPE_CHECKING:
    from advisor.proof.records import Proof
    from advisor.proof.series import Bench

Budget = Annotated[
    float | None, Option("--budget", metavar="SECONDS", help="Stop within this time. Default: no limit.")
]
ByteBudget = Annotated[
    int | None,
    Option("--byte-budget", metavar="MIB", min=1, help="Write at most this. Default: 8 GiB and 1 % of the device."),
]
Volume = Annotated[
    str | None,
    Option("--volume", metavar="TYPE:GIB", help="Spend at most 5 % of the credits of the EBS volume below."),
]
RawDevice = Annotated[
    Path | None,
    Option("--raw-device", metavar="DEV", help="Measure an unused disk itself; it is only read."),
]
ConfirmSerial = Annotated[
    str | None, Option("--confirm-serial", metavar="SERIAL", help="Name the exact serial number of that disk.")
]
Seconds = Annotated[
    float | None,
    Option(
        "--seconds",
        metavar="SECONDS",
        help="Run fio for this time, 0.1 to 600, past a throttle. Default: 2; 1 with --quick.",
    ),
]
FileSize = Annotated[
    str | None,
    Option(
        "--file-size", metavar="SIZE|Nx", help="Set the size of the scratch file: 64GiB, or 2x for twice the memory."
    ),
]
TargetMemory = Annotated[
    str | None,
    Option("--target-memory", metavar="SIZE", help="Name the memory of the storage server; 2x counts the larger one."),
]
Places = Annotated[
    list[str] | None,
    Option("--place", metavar="SECTION=DIR", help="Place a section of the workload, such as wij=/wij."),
]
AllowRawWrites = Annotated[
    bool, Option("--allow-raw-writes", help="Permit writing to that disk if it holds nothing at all.")
]


def repeated_options(given: Mapping[str, object]) -> tuple[str, ...]:
    """The options of a call as words that repeat it: those that were given, flags without a value."""
    words: list[str] = []
    for name, value in given.items():
        if isinstance(value, list | tuple):
            words += [f"{name}={one}" for one in value]
        elif value is True:
            words.append(name)
        elif value is not None and value is not False:
            words.append(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}")
    return tuple(words)


def exit_code(result: Proof | Bench) -> int:
    """0 for a gain as large as was asked for and without a cost, a self-test that invented none, or a series that can
    be relied on; 1 for everything else."""
    from advisor.proof.records import Proof

    if not isinstance(result, Proof):
        return 0 if result.quality == "sound" else 1
    if result.session.self_test:
        return 0 if result.verdict in ("no-difference", "inconclusive") else 1
    return 0 if result.is_gain else 1


def print_result(result: Proof | Bench, *, as_json: bool) -> None:
    """The result on standard output, as one JSON document or as text."""
    if as_json:
        print_json(result)
        return
    from advisor.proof.records import Proof

    width, color = terminal_width(), wants_color()
    if isinstance(result, Proof):
        from advisor.report.proof import proof_text

        print_text(proof_text(result, width=width, color=color))
    else:
        from advisor.report.bench import bench_text

        print_text(bench_text(result, width=width, color=color))


def say_where_kept(result: Proof | Bench) -> None:
    """Name the file that holds every run, on standard error."""
    if result.saved_to:
        say(f"every run is kept in {result.saved_to}")
