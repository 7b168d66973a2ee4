"""``advisor mute`` and ``advisor unmute``."""

from __future__ import annotations

from typing import Annotated, Final

from advisor.cli.complete import accepted_days, finding_ids, muted_ids
from advisor.cli.output import say
from advisor.cli.parameters import Argument, Option
from advisor.cli.scan import Root, Snapshot, Volumes, Workload
from advisor.i18n import N_, msg
from advisor.shell.quote import shell_quote

Device = Annotated[
    str | None, Option("--device", metavar="DEV", help="Only of this device, or of a pattern: md4, 'sd*'.")
]
OfHost = Annotated[
    str | None,
    Option("--host", metavar="NAME", help="On hosts of this name or pattern, in captures as well; else this host."),
]


def mute(
    identity: Annotated[
        str, Argument(metavar="ID|N", help="A rule, or the number of a finding.", autocompletion=finding_ids)
    ],
    reason: Annotated[
        str | None, Option("--reason", metavar="TEXT", help="Why it is accepted, required; scan --muted prints it.")
    ] = None,
    until: Annotated[
        str | None,
        Option(
            "--until",
            metavar="WHEN",
            help="The last day (2027-01-31), a month before which it ends (January, 2027-01), or a time from now (30d, "
            "2w). Default: for good.",
            autocompletion=accepted_days,
        ),
    ] = None,
    device: Device = None,
    of_host: OfHost = None,
    workload: Workload = None,
    volumes: Volumes = None,
    root: Root = None,
    snapshot: Snapshot = None,
) -> int:
    """Accept a finding: it is counted, not listed. Written to /etc/advisor/ignore.toml, or where ADVISOR_IGNORE_FILE
    points; needs root."""
    from datetime import timedelta

    from advisor.errors import UsageError
    from advisor.operations import open_host
    from advisor.operations.findings import accept_finding, find_missing_device
    from advisor.operations.muting import current_day

    if reason is None:
        day = shell_quote(until) if until else (current_day() + timedelta(days=30)).isoformat()
        raise UsageError(
            "mute needs a reason, for those who read it later",
            hint=msg('advisor mute {id} --reason "spare ordered" --until {day}', id=shell_quote(identity), day=day),
        )
    of = open_host(root, snapshot) if root or snapshot else None
    entries = accept_finding(
        identity, reason, until=until, device=device, host=of_host or "", of=of, workload=workload, volumes=volumes
    )
    for entry in entries:
        done = msg("muted: {what}", what=entry.label)
        if entry.until:
            again = entry.until + timedelta(days=1) if entry.until.year < 9999 else entry.until
            done = msg(
                "muted until {until}, shown again on {again}: {what}", until=entry.until, again=again, what=entry.label
            )
        say(done)
    if device and not of_host and find_missing_device(device, of):
        say(msg("note: {device}: no such device here: nothing is muted by it now", device=device))
    say(msg("advisor unmute {id} shows it again", id=entries[0].id))
    # It was given by its number.
    if entries[0].id != identity and not device and not of_host:
        say(N_("the numbers of later findings are lower now: advisor scan lists them"))
    return 0


def unmute(
    identity: Annotated[
        str,
        Argument(
            metavar="ID|N", help="A rule that is muted, or a number of advisor scan --muted.", autocompletion=muted_ids
        ),
    ],
    device: Device = None,
    of_host: OfHost = None,
) -> int:
    """List an accepted finding again. Needs root."""
    from advisor.operations.muting import remove_muting

    for entry in remove_muting(identity, device or "", of_host or ""):
        say(msg("no longer muted: {what}", what=entry.label))
    return 0


COMMANDS: Final = {"mute": mute, "unmute": unmute}
