"""The hosts of an inventory, captured by Ansible with nothing installed there: scanned, compared, added up.

Captures are kept in the state directory of the controller, or below ``output``. ``progress`` is called with what is
counted (``asked``, ``read``), and what it returns with the number of hosts done and of all. A host that cannot be read
is in the result, with the reason. Nothing is changed on any host.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

from advisor.errors import InvalidInputError, UsageError
from advisor.fleet import FORKS, TIMEOUT_SECONDS
from advisor.fleet import scan as scanning
from advisor.fleet.compare.columns import LLT_CLUSTER, gather_hosts, grouped_by, named_sources
from advisor.fleet.compare.comparison import HostComparison
from advisor.fleet.compare.outliers import find_outliers
from advisor.fleet.compare.path_matrix import probe_paths
from advisor.fleet.compare.remedies import CommandOrigin
from advisor.fleet.compare.summary import CaptureSource
from advisor.fleet.inventory import Access, Inventory, InventoryHost, named_hosts, read_hosts
from advisor.fleet.limits import gather_ceilings
from advisor.fleet.runs import changes
from advisor.fleet.runs import status as standing
from advisor.fleet.runs.changes import RunResult, Wish
from advisor.fleet.runs.executor import SILENT, Say
from advisor.fleet.runs.journal import RunRecord
from advisor.fleet.runs.planning import FleetPlan
from advisor.fleet.runs.run import Options
from advisor.fleet.runs.status import FleetStanding
from advisor.fleet.runs.waves import WaveShape, batch_of, canary_of
from advisor.fleet.scan import FleetScan, FleetStore, capture_hosts, parse_facts
from advisor.fleet.scan import receive_capture as keep_capture
from advisor.fleet.why import FleetDiagnosis
from advisor.fleet.why import diagnose_fleet as diagnose_sources
from advisor.host.signals import Interrupted, interruptible
from advisor.limits.cluster import Cluster, cluster_of
from advisor.limits.declared import Declared, read_declared
from advisor.limits.storage_use import parse_measured, with_measured
from advisor.operations.muting import apply_muting, current_day, read_muting
from advisor.planning.records import refuse_warnings
from advisor.recommend import declared as parse_workload

Progress = Callable[[str], Callable[..., None]]


class Collection(msgspec.Struct, frozen=True):
    """How the captures of an inventory are come by: ``kept`` takes the stored ones and connects to no host.

    ``forks`` hosts are worked on at a time, each for ``timeout_seconds`` at most; captures are stored below
    ``output``, by default in the state directory. With ``max_age_seconds`` a host is connected to only where its stored
    capture is older or there is none, so that a collection that was interrupted goes on where it was.
    """

    inventory: Inventory
    kept: bool = False
    forks: int = FORKS
    timeout_seconds: int = TIMEOUT_SECONDS
    output: Path | None = None
    max_age_seconds: float | None = None


def parse_age(text: str) -> float:
    """Seconds of ``90s``, ``30m``, ``2h``, ``1d`` or a number of seconds. Raises UsageError."""
    found = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text, re.ASCII)
    if found is None:
        raise UsageError(f"--max-age {text}: expected seconds, 30m, 2h or 1d")
    return float(int(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]])


@contextlib.contextmanager
def _collecting(collection: Collection | None) -> Iterator[None]:
    """Signals stop it, with a word on how to go on: what has arrived is stored."""
    with interruptible():
        try:
            yield
        except Interrupted as error:
            if collection is not None and not collection.kept:
                words = "interrupted; captures that arrived are stored: with --max-age 1h the other hosts are asked"
                error.args = (words,)
            raise


def scan_fleet(
    collection: Collection, *, workload: str | None = None, progress: Progress = lambda what: lambda *counts: None
) -> FleetScan:
    """Capture and judge every host of the inventory.

    ``workload`` is what ``--workload`` takes. What the controller's file of accepted findings says about a host by its
    name, in the inventory or its own, is counted as muted. Raises UsageError for an invalid workload, InvalidInputError
    for an inventory or a file of accepted findings that cannot be read, RefusedError without Ansible.
    """
    wanted = parse_workload(workload) if workload else None
    entries, today = read_muting(), current_day()
    with _collecting(collection):
        return scanning.scan_fleet(
            collection.inventory,
            FleetStore(collection.output),
            workload=wanted,
            mute=lambda names, found: apply_muting(found, entries, names=names, is_live=False, today=today).findings,
            forks=collection.forks,
            timeout_seconds=collection.timeout_seconds,
            max_age_seconds=collection.max_age_seconds,
            progress=progress("asked"),
        )


def receive_capture(stream: IO[bytes], host: str, *, facts: str = "{}", output: Path | None = None) -> Path:
    """Store what the capture script printed on a host, without passwords and keys; return the archive.

    ``facts`` is what Ansible's worker knows of it, as JSON. Raises InvalidInputError for a stream that is no capture,
    RefusedError where others can write to the store.
    """
    return keep_capture(stream, host, parse_facts(facts), FleetStore(output))


def compare_fleet(
    captures: Sequence[Path] = (),
    collection: Collection | None = None,
    *,
    pair: tuple[str, str] | None = None,
    group_by: str | None = None,
    probe: bool = False,
    progress: Progress = lambda what: lambda *counts: None,
) -> HostComparison:
    """Return which host differs, in what, and what to do: of captures, or of the hosts of an inventory.

    ``pair`` compares two hosts alone, ``group_by`` within ``llt-cluster``, ``group`` or the values of a variable of
    the inventory, ``probe`` asks the paths between the hosts as well. Raises UsageError, InvalidInputError for an
    inventory that cannot be read, RefusedError.
    """
    if bool(captures) == (collection is not None):
        raise UsageError(
            "give snapshots or an inventory", hint="advisor fleet compare a.tar.gz b.tar.gz, or -i INVENTORY"
        )
    if captures and group_by not in (None, LLT_CLUSTER):
        raise UsageError(f"--group-by {group_by}: snapshots know of no groups but {LLT_CLUSTER}")
    with _collecting(collection):
        sources, failed, hosts = _collect_sources(captures, collection, group_by, progress)
        if pair:
            _check_pair(pair, [*(one.name for one in sources), *failed])
            sources = tuple(one for one in sources if one.name in pair)
        fleet, unread = gather_hosts(sources, group_by=group_by, progress=progress("read"))
        failed = {name: why for name, why in {**failed, **unread}.items() if not pair or name in pair}
        matrix = None
        if probe and collection is not None:
            members = {row.name: row.memberships for row in fleet.hosts}
            matrix = probe_paths(collection.inventory, hosts, members, forks=collection.forks)
        return find_outliers(
            fleet,
            controller=CommandOrigin(collection.inventory.sources[0] if collection else None),
            failed=failed,
            # One of two that could not be read leaves nothing to set against the other.
            pair=None if pair and any(name in failed for name in pair) else pair,
            group_by=group_by,
            matrix=matrix,
        )


def _check_pair(pair: tuple[str, str], known: Sequence[str]) -> None:
    """Before any capture is read: which names there are is known by then."""
    for name in pair:
        if name not in known:
            raise UsageError(f"--pair {name}: no such host among {len(known)}", hint=", ".join(sorted(known)[:8]))


def add_up_ceilings(
    captures: Sequence[Path] = (),
    collection: Collection | None = None,
    *,
    volumes: Sequence[str] = (),
    measured: str | None = None,
    progress: Progress = lambda what: lambda *counts: None,
) -> tuple[Cluster, Mapping[str, str]]:
    """Return what the storage servers and clients of a cluster carry together, in MB/s and IOPS, and the hosts that
    could not be read, with the reason.

    ``volumes`` are files as ``[HOST=]FILE``, ``measured`` is a throughput to compare with. Raises UsageError,
    InvalidInputError, RefusedError.
    """
    if bool(captures) == (collection is not None):
        raise UsageError(
            "give captures or an inventory", hint="advisor fleet limits a.tar.gz b.tar.gz, or -i INVENTORY"
        )
    given = parse_measured(measured) if measured is not None else ()
    declared, of_host = _read_volumes(volumes)
    with _collecting(collection):
        sources, failed, _ = _collect_sources(captures, collection, None, progress)
        names = {one.name for one in sources} | set(failed)
        for name in of_host:
            if name not in names:
                raise UsageError(
                    f"--volumes {name}=: no such host among {len(names)}", hint=", ".join(sorted(names)[:8])
                )
        found, unread, quotas = gather_ceilings(sources, declared, of_host, progress("read"))
    cluster = cluster_of(found, quotas)
    if given:
        cluster = msgspec.structs.replace(cluster, cluster=with_measured(cluster.cluster, given))
    return cluster, {**failed, **unread}


def diagnose_fleet(
    captures: Sequence[Path] = (),
    collection: Collection | None = None,
    *,
    seconds: float = 10.0,
    progress: Progress = lambda what: lambda *counts: None,
) -> FleetDiagnosis:
    """Return what binds each host, and the devices and hosts that stand out from their peers: of snapshots that hold a
    span, or of the hosts of an inventory, which are observed for ``seconds`` at the same time.

    Raises UsageError, InvalidInputError for an inventory that cannot be read and a snapshot that does not exist,
    RefusedError.
    """
    if bool(captures) == (collection is not None):
        raise UsageError("give snapshots or an inventory", hint="advisor fleet why a.tar.gz b.tar.gz, or -i INVENTORY")
    for path in captures:
        if not path.exists():
            raise InvalidInputError(f"{path}: no such file")
    with interruptible():
        sources, failed, _ = _collect_sources(captures, collection, None, progress, seconds)
        return diagnose_sources(sources, failed, progress=progress("read"))


def _read_volumes(given: Sequence[str]) -> tuple[Declared, dict[str, Declared]]:
    """What is declared of all hosts, and of single ones."""
    every: Declared | None = None
    of_host: dict[str, Declared] = {}
    for text in given:
        name, is_named, path = text.rpartition("=")
        if is_named and not Path(text).exists():
            of_host[name] = read_declared(Path(path))
        elif every is not None:
            raise UsageError(f"--volumes {text}: one file for all hosts is given already", hint="--volumes HOST=FILE")
        else:
            every = read_declared(Path(text))
    return every or Declared(), of_host


def _collect_sources(
    captures: Sequence[Path],
    collection: Collection | None,
    group_by: str | None,
    progress: Progress,
    seconds: float | None = None,
) -> tuple[tuple[CaptureSource, ...], dict[str, str], tuple[InventoryHost, ...]]:
    """The captures to read, the hosts without one and why, and the hosts of the inventory."""
    if collection is None:
        return named_sources(captures), {}, ()
    hosts, store = read_hosts(collection.inventory), FleetStore(collection.output)
    sources: list[CaptureSource] = []
    failed: dict[str, str] = {}

    def add(host: InventoryHost, path: Path, skew: float | None) -> None:
        group = None if group_by in (None, LLT_CLUSTER) else grouped_by(str(group_by), host.groups, host.variables)
        sources.append(CaptureSource(host.name, str(path), group, skew, is_capture=True))

    if collection.kept:
        for host in hosts:
            header = store.header(host.name)
            if header is None:
                failed[host.name] = "no capture of it is kept: run without --kept"
            else:
                add(host, store.archive(host.name), header.skew_seconds)
        return tuple(sources), failed, hosts
    answers = capture_hosts(
        collection.inventory,
        hosts,
        store,
        forks=collection.forks,
        timeout_seconds=collection.timeout_seconds,
        seconds=seconds,
        max_age_seconds=None if seconds is not None else collection.max_age_seconds,
        progress=progress("asked"),
    )
    got = {one.host: one for one in answers}
    for host in hosts:
        one = got.get(host.name)
        if one is None or one.state != "ok" or one.path is None:
            failed[host.name] = f"{one.state}: {one.message}" if one else "no answer"
        else:
            add(host, one.path, one.skew_seconds)
    return tuple(sources), failed, hosts


# Profiles on the hosts of an inventory: planned, applied in waves, verified, rolled back, from a controller with
# Ansible.


def make_wish(
    inventory: Inventory,
    profiles: Sequence[str],
    settings: Mapping[str, str],
    *,
    canary: Sequence[str] = (),
    batch: str | None = None,
    failover: str | None = None,
    forks: int = FORKS,
    confirm_within: int = 0,
    gate_command: str | None = None,
    rollback_all: bool = False,
    prove: str | None = None,
    prove_options: Sequence[str] = (),
) -> Wish:
    """Return what is asked of a fleet; the arguments are what the options of their names take.

    ``canary`` are hosts or a number, ``batch`` a number or a percentage, ``failover`` a group or ``var=NAME``;
    ``confirm_within`` is in seconds. ``prove`` is the directory on the canary in which the profile is proven there
    first, ``-`` for none, with ``prove_options``, words of ``advisor prove``. Raises UsageError, InvalidInputError for
    an inventory that cannot be read.
    """
    known = [host.name for host in named_hosts(inventory)] if canary else []
    shape = WaveShape(canary_of(canary, known), batch_of(batch), failover)
    proof = None if prove is None else (*_place_words(prove, prove_options), *prove_options)
    options = Options(confirm_within, gate_command, rollback_all, proof)
    return Wish(inventory, tuple(dict.fromkeys(profiles)), settings, shape, forks, options)


def _place_words(directory: str, options: Sequence[str]) -> tuple[str, ...]:
    """How ``advisor prove`` takes the directory: for fio's file, or for a command of the user's to work in."""
    if directory == "-":
        return ()
    has_command = any(word.startswith("--command") for word in options)
    return (f"--directory={directory}" if has_command else f"--target={directory}",)


def plan_fleet(wish: Wish, *, say: Say = SILENT) -> RunResult:
    """Return what the profiles would change on each host, in waves, and the exit code of that; changes nothing there.

    A machine with several names (one machine-id and boot id) is planned for under the first, and changed once.
    Captures every host again. Raises UsageError, InvalidInputError, RefusedError without Ansible.
    """
    made = changes.make_fleet_plan(wish, FleetStore(), say)
    return RunResult(made, None, changes.nothing_code(made))


def write_fleet_plan(plan: FleetPlan, directory: Path) -> int:
    """Write a script for each host that would be changed, and ``waves.json``, for use with plain Ansible or ssh; return
    the number of scripts. Raises UsageError where they cannot be written."""
    return len(changes.write_plan(plan, directory)) - 1


def apply_fleet(
    wish: Wish, *, agree: Callable[[FleetPlan], bool] | None = None, force: bool = False, say: Say = SILENT
) -> RunResult:
    """Apply the profiles wave by wave; each host rolls back automatically unless its wave passes its gate.

    ``agree`` is called once with the plan before anything is changed; without it, a plan because of which a scan of a
    host would newly warn is refused, unless with ``force``. Changes the hosts; what became of each is in the
    record. Raises UsageError, RefusedError with nothing changed.
    """
    return changes.apply_fleet(wish, FleetStore(), agree=agree or agree_unasked(force=force), say=say)


def agree_unasked(*, force: bool) -> Callable[[FleetPlan], bool]:
    """Return the agreement where nobody is asked: it raises RefusedError for a plan because of which a scan of a host
    would newly warn, unless with ``force``."""

    def agree(made: FleetPlan) -> bool:
        for name in () if force else made.changing:
            refuse_warnings(made.plan(name).warnings, f"{name}: ")
        return True

    return agree


def resume_fleet(
    run: str,
    access: Access,
    *,
    rollback_all: bool = False,
    agree: Callable[[FleetPlan], bool] | None = None,
    force: bool = False,
    say: Say = SILENT,
) -> RunResult:
    """Resume a run (by number, or ``last``) that was interrupted, with the profiles and inventory that it was begun
    with. Changes the hosts. Raises UsageError for a run that there is not, RefusedError for one that has ended."""
    agreed = agree or agree_unasked(force=force)
    return changes.resume_fleet(run, FleetStore(), access, agree=agreed, say=say, rollback_all=rollback_all)


def verify_fleet(
    inventory: Inventory | None, access: Access, run: str | None = None, *, forks: int = FORKS, say: Say = SILENT
) -> FleetStanding:
    """Capture the hosts again and compare their values with what was applied: ``code`` is 0 where all match.

    With a run, its hosts and values alone; without an inventory, the last run is meant. Changes nothing. Raises
    UsageError for a run that there is not, RefusedError for one that has nothing active.
    """
    return standing.verify_fleet(inventory, access, run, FleetStore(), forks=forks, say=say)


def roll_back_fleet(
    run: str | None,
    access: Access,
    *,
    inventory: Inventory | None = None,
    only: str | None = None,
    force: bool = False,
    say: Say = SILENT,
) -> RunRecord:
    """Roll back a run, by default the last, on every host, its last wave first; what became of each is in the record.

    ``inventory`` replaces that of the run, of whose hosts those that it names are rolled back, ``only`` is a pattern
    as of ``--limit``. ``force`` restores values that were modified externally, too. Changes the hosts. Raises
    UsageError for a run that there is not, RefusedError where nothing of it is active.
    """
    return standing.rollback_fleet(run, access, FleetStore(), inventory=inventory, only=only, force=force, say=say)


def read_fleet_status(
    inventory: Inventory | None, *, kept: bool = False, forks: int = FORKS, say: Say = SILENT
) -> FleetStanding:
    """Return the runs of this controller and, with an inventory, what is active on each host: captured again, or with
    ``kept`` as it was last. Changes nothing. Raises InvalidInputError, RefusedError."""
    return standing.fleet_status(inventory, FleetStore(), kept=kept, forks=forks, say=say)
