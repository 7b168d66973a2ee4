"""``advisor fleet compare``: which host differs, in what, and what to do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from advisor.cli.fleet_options import (
    Forks,
    Keep,
    Limit,
    Login,
    Timeout,
    logs_in,
    show_progress,
)
from advisor.cli.output import print_json, print_text, say, terminal_width, wants_color
from advisor.cli.parameters import Argument, Option
from advisor.cli.scan import Json, parse_severity
from advisor.fleet import FORKS, TIMEOUT_SECONDS
from advisor.i18n import msg

if TYPE_CHECKING:
    from advisor.fleet.compare.comparison import HostComparison
    from advisor.fleet.compare.gathering import CaptureSource
    from advisor.fleet.inventory import Inventory, InventoryHost

_MANY: Final = 50
"""Of fewer hosts, nobody waits long enough to ask how far it is."""


@logs_in
def compare(
    snapshots: Annotated[
        list[Path] | None, Argument(metavar="SNAPSHOT", help="Snapshots of hosts instead of an inventory.")
    ] = None,
    inventory: Annotated[
        list[str] | None,
        Option(
            "-i",
            "--inventory",
            metavar="INVENTORY",
            help="Read this inventory, as Ansible does: a file, a directory, or h1,h2,",
        ),
    ] = None,
    limit: Limit = None,
    kept: Annotated[bool, Option("--kept", help="Compare the stored captures; connect to no host.")] = False,
    pair: Annotated[
        tuple[str, str] | None,
        Option("--pair", metavar="A B", help="Compare only these two, with both values of each."),
    ] = None,
    group_by: Annotated[
        str | None,
        Option(
            "--group-by", metavar="WHAT", help="Compare within: llt-cluster, group, or a variable of the inventory."
        ),
    ] = None,
    probe: Annotated[bool, Option("--probe", help="Probe the paths between the hosts, too.")] = False,
    as_json: Json = False,
    html: Annotated[
        Path | None, Option("--html", metavar="FILE", help="Write the result as a page, too; - is stdout.")
    ] = None,
    fail_on: Annotated[
        str, Option("--fail-on", metavar="SEVERITY", help="Exit with 1 on a difference of this severity or above.")
    ] = "advice",
    forks: Forks = FORKS,
    timeout: Timeout = TIMEOUT_SECONDS,
    output: Keep = None,
    *,
    login: Login,
) -> int:
    """Find which host differs, in what, and what to do. Changes nothing. Exit code 1 where hosts differ in what is
    advice or warning, 4 where a host could not be read (the others are compared)."""
    from advisor.cli.scan_picture import check_files
    from advisor.host.signals import interruptible

    floor = parse_severity(fail_on)
    _check_call(snapshots, inventory, group_by=group_by, is_live=kept or probe or limit is not None)
    check_files({"--html": html}, printing="--json" if as_json else None)
    with interruptible():
        if inventory:
            meant = login(inventory, limit)
            run = InventoryRun(meant, forks, timeout, output)
            sources, failed = run.read_stored(group_by) if kept else run.capture_hosts_now(group_by)
            found = _compare_sources(sources, failed, pair, group_by, run=run, probe=probe)
        else:
            from advisor.fleet.compare.gathering import named_sources

            found = _compare_sources(named_sources(snapshots or ()), {}, pair, group_by)
    _print_comparison(found, as_json=as_json, html=html)
    return _exit_code(found, floor)


def _check_call(
    snapshots: Sequence[Path] | None, inventory: Sequence[str] | None, *, group_by: str | None, is_live: bool
) -> None:
    from advisor.errors import UsageError
    from advisor.fleet.compare.gathering import LLT_CLUSTER

    if bool(snapshots) == bool(inventory):
        raise UsageError(
            "give snapshots or an inventory", hint="advisor fleet compare a.tar.gz b.tar.gz, or -i INVENTORY"
        )
    if snapshots and is_live:
        raise UsageError("--limit, --kept and --probe are for an inventory (-i)")
    if snapshots and group_by not in (None, LLT_CLUSTER):
        raise UsageError(
            msg(
                "--group-by {group_by}: snapshots know of no groups but {llt_cluster}",
                group_by=group_by,
                llt_cluster=LLT_CLUSTER,
            )
        )


def _exit_code(found: HostComparison, floor: str | None) -> int:
    from advisor.fleet.compare.outliers import is_at_least

    if found.failed:
        return 4
    return 1 if floor and is_at_least(found, floor) else 0


class InventoryRun:
    """The inventory's hosts and their captures."""

    def __init__(self, inventory: Inventory, forks: int, timeout: int, output: Path | None) -> None:
        from advisor.fleet.inventory import read_hosts
        from advisor.fleet.store import FleetStore

        self.inventory = inventory
        self.forks = forks
        self.timeout = timeout
        self.hosts = read_hosts(inventory)
        self.store = FleetStore(output)

    def capture_hosts_now(self, group_by: str | None) -> tuple[tuple[CaptureSource, ...], dict[str, str]]:
        """A new capture of every host; those that fail, with the reason."""
        from advisor.fleet.scan import capture_hosts

        answers = capture_hosts(
            self.inventory,
            self.hosts,
            self.store,
            forks=self.forks,
            timeout_seconds=self.timeout,
            progress=show_progress("asked"),
        )
        got = {one.host: one for one in answers}
        sources: list[CaptureSource] = []
        failed: dict[str, str] = {}
        for host in self.hosts:
            one = got.get(host.name)
            if one is None or one.state != "ok" or one.path is None:
                failed[host.name] = f"{one.state}: {one.message}" if one else "no answer"
            else:
                sources.append(self._make_source(host, str(one.path), one.skew_seconds, group_by))
        return tuple(sources), failed

    def read_stored(self, group_by: str | None) -> tuple[tuple[CaptureSource, ...], dict[str, str]]:
        """The last capture of each host."""
        sources: list[CaptureSource] = []
        failed: dict[str, str] = {}
        for host in self.hosts:
            header = self.store.header(host.name)
            if header is None:
                failed[host.name] = "no capture of it is kept: run without --kept"
            else:
                sources.append(
                    self._make_source(host, str(self.store.archive(host.name)), header.skew_seconds, group_by)
                )
        return tuple(sources), failed

    def _make_source(self, host: InventoryHost, path: str, skew: float | None, group_by: str | None) -> CaptureSource:
        from advisor.fleet.compare.gathering import LLT_CLUSTER, CaptureSource, grouped_by

        group = None if group_by in (None, LLT_CLUSTER) else grouped_by(str(group_by), host.groups, host.variables)
        return CaptureSource(host.name, path, group, skew, is_capture=True)


def _compare_sources(
    sources: Sequence[CaptureSource],
    failed: dict[str, str],
    pair: tuple[str, str] | None,
    group_by: str | None,
    *,
    run: InventoryRun | None = None,
    probe: bool = False,
) -> HostComparison:
    from advisor.fleet.compare.gathering import gather_hosts
    from advisor.fleet.compare.outliers import find_outliers as compare_fleet
    from advisor.fleet.compare.remedies import CommandOrigin

    if pair:
        _check_pair(pair, [*(one.name for one in sources), *failed])
        sources = [one for one in sources if one.name in pair]
    fleet, unread = gather_hosts(
        sources, group_by=group_by, progress=show_progress("read") if len(sources) > _MANY else _ignore_progress
    )
    failed = {name: why for name, why in {**failed, **unread}.items() if not pair or name in pair}
    matrix = None
    if probe and run:
        from advisor.fleet.paths.asking import probe_paths

        matrix = probe_paths(run.inventory, run.hosts, fleet, forks=run.forks)
    first = run.inventory.sources[0] if run else None
    missing = bool(pair) and any(name in failed for name in pair or ())
    return compare_fleet(
        fleet,
        controller=CommandOrigin(first),
        failed=failed,
        pair=None if missing else pair,
        group_by=group_by,
        matrix=matrix,
    )


def _check_pair(pair: tuple[str, str], known: Sequence[str]) -> None:
    """Before any capture is read: which names there are is known by then."""
    from advisor.errors import UsageError

    for name in pair:
        if name not in known:
            raise UsageError(
                msg("--pair {name}: no such host among {count}", name=name, count=len(known)),
                hint=", ".join(sorted(known)[:8]),
            )


def _print_comparison(found: HostComparison, *, as_json: bool, html: Path | None) -> None:
    from advisor.report.fleet_compare import comparison_document, comparison_text

    if html is not None:
        from advisor.report.fleet_compare_page import comparison_page

        page = comparison_page(found)
        if str(html) == "-":
            sys.stdout.buffer.write(page.encode("utf-8", "replace"))
            return
        from advisor.host.putfile import save_output

        save_output(str(html), page.encode("utf-8", "replace"), mode=0o644)
        say(f"{html}: the comparison as a page")
    if as_json:
        print_json(comparison_document(found))
    else:
        print_text(comparison_text(found, width=terminal_width(), color=wants_color()))


def _ignore_progress(_done: int, _total: int) -> None:
    return None


COMMANDS: Final = {"compare": compare}
