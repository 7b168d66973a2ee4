"""What ``prove`` and ``bench`` have in common as commands: options, what the user chose, and printing a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.parameters import Option
from advisor.i18n import msg

if TYPE_CHECKING:
    from advisor.proof import target as proof_target
    from advisor.proof.records import Proof
    from advisor.proof.schedule import ModeName
    from advisor.proof.series import Bench
    from advisor.proof.session_runner import Settings

_BUDGET_MAX_SECONDS: Final = 7 * 86400
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


def chosen_settings(
    *,
    target: Path | None,
    raw_device: Path | None,
    confirm_serial: str | None,
    allow_raw_writes: bool,
    quick: bool,
    deep: bool,
    budget: float | None,
    byte_budget: int | None,
    volume: str | None,
    seed: int | None,
    force: bool,
    save: Path | None,
    seconds: float | None = None,
    size: str | None = None,
    target_memory: str | None = None,
    places: Sequence[str] = (),
) -> Settings:
    """What the user chose, with the defaults for what only one of the commands has.

    Raises UsageError for what cannot be, before anything is looked at: a volume that is none, a file that could not be
    written, a disk without its serial number.
    """
    from advisor.errors import UsageError
    from advisor.proof.credits import parse_volume
    from advisor.proof.session_runner import Settings

    if quick and deep:
        raise UsageError("--quick and --deep exclude each other")
    if budget is not None and not 0 < budget <= _BUDGET_MAX_SECONDS:
        raise UsageError(msg("--budget {budget:g}: expected a number of seconds above 0, up to a week", budget=budget))
    mode: ModeName = "quick" if quick else "deep" if deep else "default"
    if save is not None:
        from advisor.proof.archive import check_place

        check_place(save)
    return Settings(
        target=str(target.resolve()) if target else "",
        raw=_raw_device(target, raw_device, confirm_serial, allow_raw_writes=allow_raw_writes),
        mode=mode,
        budget_seconds=budget,
        byte_budget=None if byte_budget is None else byte_budget << 20,
        seconds=seconds,
        scratch_bytes=_file_bytes(size, target_memory, is_raw=raw_device is not None),
        places=_parse_places(places),
        volume=None if volume is None else parse_volume(volume),
        seed=seed,
        force=force,
        save_to=str(save.absolute()) if save else None,
        keep_result=save is None,
    )


def _file_bytes(size: str | None, target_memory: str | None, *, is_raw: bool) -> int | None:
    from advisor.errors import UsageError
    from advisor.host import live_host
    from advisor.proof.covariates import memory_bytes
    from advisor.proof.sizes import file_size, parse_size

    if size is None:
        if target_memory is not None:
            raise UsageError("--target-memory belongs to --file-size Nx")
        return None
    if is_raw:
        raise UsageError("--file-size: a disk that is measured itself has no scratch file")
    other = None if target_memory is None else parse_size(target_memory, "--target-memory")
    return file_size(size, memory_bytes(live_host()), other)


def _parse_places(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    from advisor.errors import UsageError

    found: dict[str, str] = {}
    for pair in given:
        name, equals, directory = pair.partition("=")
        if not (name and equals and directory):
            raise UsageError(msg("--place {pair}: expected SECTION=DIR, such as wij=/wij", pair=pair))
        if name in found:
            raise UsageError(msg("--place {pair}: section {name} is named twice", pair=pair, name=name))
        found[name] = str(Path(directory).resolve())
    return tuple(found.items())


def _raw_device(
    target: Path | None, path: Path | None, serial: str | None, *, allow_raw_writes: bool
) -> proof_target.RawDevice | None:
    from advisor.errors import UsageError
    from advisor.proof.target import RawDevice

    if path is None:
        if serial is not None or allow_raw_writes:
            raise UsageError("--confirm-serial and --allow-raw-writes belong to --raw-device")
        return None
    if target is not None:
        raise UsageError("--target and --raw-device exclude each other")
    if not serial:
        raise UsageError(
            "--raw-device needs --confirm-serial SERIAL, so that no other disk is meant",
            hint="advisor scan --json prints the serial number of each disk",
        )
    return RawDevice(str(path.absolute()), serial, allow_raw_writes)


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
