"""``advisor mute`` and ``advisor unmute``."""

from __future__ import annotations

from typing import Annotated, Final

from advisor.cli.complete import accepted_days, finding_ids, muted_ids
from advisor.cli.output import say_wrapped
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


_BY_NUMBER: Final = N_("this entry alone, by its number: advisor scan --muted")
_MOST_LEFT: Final = 3


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
    from advisor.operations.muting import current_day, read_muting

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
        say_wrapped(done)
    if device and not of_host and find_missing_device(device, of):
        say_wrapped(msg("note: {device}: no such device here: nothing is muted by it now", device=device))
    rule = entries[0].id
    made = {(one.device, one.host) for one in entries}
    if any(one.id == rule and (one.device, one.host) not in made for one in read_muting()):
        # Its id alone would show what was muted before as well.
        for entry in entries:
            given = {"--device": entry.device, "--host": entry.host}
            words = [word for option, value in given.items() if value for word in (option, shell_quote(value))]
            call = " ".join(("advisor unmute", shell_quote(rule), *words))
            say_wrapped(msg("this entry alone: {call}", call=call) if words else _BY_NUMBER)
    elif len(entries) > 1:
        say_wrapped(
            msg("one entry for each of {count} devices; advisor unmute {id} removes all", count=len(entries), id=rule)
        )
    else:
        say_wrapped(msg("advisor unmute {id} shows it again", id=rule))
    # It was given by its number.
    if rule != identity and not device and not of_host:
        say_wrapped(N_("the numbers of later findings are lower now: advisor scan lists them"))
    return 0


def unmute(
    names: Annotated[
        list[str],
        Argument(
            metavar="ID|N…", help="Rules that are muted, or numbers of advisor scan --muted.", autocompletion=muted_ids
        ),
    ],
    device: Device = None,
    of_host: OfHost = None,
) -> int:
    """List accepted findings again. Needs root."""
    from advisor.operations.muting import read_muting, remove_muting

    before = read_muting()
    removed = remove_muting(names, device or "", of_host or "")
    for entry in removed:
        say_wrapped(msg("no longer muted: {what}", what=entry.label))
    rules = {entry.id for entry in removed}
    if rules.issuperset(names):
        return 0
    # A number was given: what it has left, and that numbers have changed.
    left = read_muting()
    same = [(number, entry) for number, entry in enumerate(left, 1) if entry.id in rules]
    for number, entry in same[:_MOST_LEFT]:
        say_wrapped(msg("still muted: {what}, number {number} now", what=entry.label, number=number))
    if before[: len(left)] != left:
        say_wrapped(N_("the numbers of later entries are lower now: advisor scan --muted"))
    return 0


COMMANDS: Final = {"mute": mute, "unmute": unmute}
