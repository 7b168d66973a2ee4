"""``advisor fleet limits``: what a cluster carries at most, and what binds it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from advisor.cli.fleet_options import Forks, Keep, Limit, Login, Timeout, logs_in, show_progress
from advisor.cli.limits import Measured
from advisor.cli.output import print_json, print_text, terminal_width, wants_color
from advisor.cli.parameters import Argument, Option
from advisor.cli.scan import Json
from advisor.fleet import FORKS, TIMEOUT_SECONDS
from advisor.i18n import msg

if TYPE_CHECKING:
    from advisor.limits.declared import Declared

_MANY: Final = 20
"""Of fewer hosts, nobody waits long enough to ask how far it is."""


@logs_in
def limits(
    captures: Annotated[
        list[Path] | None,
        Argument(metavar="CAPTURE", help="Snapshots or captured trees of hosts instead of an inventory."),
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
    kept: Annotated[bool, Option("--kept", help="Read the stored captures; connect to no host.")] = False,
    volumes: Annotated[
        list[str] | None,
        Option(
            "--volumes",
            metavar="[HOST=]FILE",
            help="Read what volumes and drives carry, of one host or of all, as in advisor limits; may be repeated.",
        ),
    ] = None,
    measured_text: Measured = None,
    as_json: Json = False,
    forks: Forks = FORKS,
    timeout: Timeout = TIMEOUT_SECONDS,
    output: Keep = None,
    *,
    login: Login,
) -> int:
    """Add up the ceilings of a cluster, and name what binds it. Of its storage servers and of their clients. Measures
    and changes nothing. Exit code 4 where a host could not be read (the others are added up)."""
    import msgspec

    from advisor.cli.fleet_compare import InventoryRun
    from advisor.errors import UsageError
    from advisor.fleet.compare.gathering import named_sources
    from advisor.fleet.limits import gather_ceilings
    from advisor.host.signals import interruptible
    from advisor.limits.cluster import cluster_of
    from advisor.limits.measured import parse_measured, with_measured
    from advisor.report.fleet_limits import fleet_limits_document, fleet_limits_text

    if bool(captures) == bool(inventory):
        raise UsageError(
            "give captures or an inventory", hint="advisor fleet limits a.tar.gz b.tar.gz, or -i INVENTORY"
        )
    if captures and (kept or limit is not None):
        raise UsageError("--limit and --kept are for an inventory (-i)")
    given = parse_measured(measured_text) if measured_text is not None else ()
    declared, of_host = _read_volumes(volumes or ())
    with interruptible():
        failed: dict[str, str] = {}
        sources = named_sources(captures or ())
        if inventory:
            run = InventoryRun(login(inventory, limit), forks, timeout, output)
            sources, failed = run.read_stored(None) if kept else run.capture_hosts_now(None)
        names = {one.name for one in sources} | set(failed)
        for name in of_host:
            if name not in names:
                raise UsageError(
                    msg("--volumes {name}=: no such host among {count}", name=name, count=len(names)),
                    hint=", ".join(sorted(names)[:8]),
                )
        progress = show_progress("read") if len(sources) > _MANY else lambda done, total: None
        found, unread, quotas = gather_ceilings(sources, declared, of_host, progress)
    failed = {**failed, **unread}
    cluster = cluster_of(found, quotas)
    if given:
        cluster = msgspec.structs.replace(cluster, cluster=with_measured(cluster.cluster, given))
    if as_json:
        print_json(fleet_limits_document(cluster, failed))
    else:
        print_text(fleet_limits_text(cluster, failed, width=terminal_width(), color=wants_color()))
    return 4 if failed else 0


def _read_volumes(given: Sequence[str]) -> tuple[Declared, dict[str, Declared]]:
    """What is declared of all hosts, and of single ones. Raises InvalidInputError, UsageError."""
    from advisor.errors import UsageError
    from advisor.limits.declared import Declared, read_declared

    every: Declared | None = None
    of_host: dict[str, Declared] = {}
    for text in given:
        name, is_named, path = text.rpartition("=")
        if is_named and not Path(text).exists():
            of_host[name] = read_declared(Path(path))
        elif every is not None:
            raise UsageError(
                msg("--volumes {text}: one file for all hosts is given already", text=text), hint="--volumes HOST=FILE"
            )
        else:
            every = read_declared(Path(text))
    return every or Declared(), of_host


COMMANDS: Final = {"limits": limits}
