"""``advisor mute`` and ``advisor unmute``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from typer import Argument, Option

from advisor.cli.complete import accepted_days, finding_ids, muted_ids
from advisor.cli.output import say_wrapped
from advisor.cli.scan import Root, Snapshot, Volumes, Workload
from advisor.errors import UsageError
from advisor.shell.quote import shell_quote

Device = Annotated[
    list[str] | None,
    Option("--device", metavar="DEV", help="Only of this device, or of a pattern: md4, 'sd*'. Several: repeat it."),
]
OfHost = Annotated[
    str | None,
    Option("--host", metavar="NAME", help="On hosts of this name or pattern, in captures as well; else this host."),
]


_BY_NUMBER = "this entry alone, by its number: advisor scan --muted"
_MOST_LEFT = 3


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

    from advisor.operations import open_host
    from advisor.operations.findings import accept_finding, find_idle_muting
    from advisor.operations.muting import current_day, read_muting

    if reason is None:
        day = shell_quote(until) if until else (current_day() + timedelta(days=30)).isoformat()
        raise UsageError(
            "mute needs a reason, for those who read it later",
            hint=f'advisor mute {shell_quote(identity)} --reason "spare ordered" --until {day}',
        )
    of = open_host(root, snapshot) if root or snapshot else None
    entries = accept_finding(
        identity,
        reason,
        until=until,
        device=_split_names(device),
        host=of_host or "",
        of=of,
        workload=workload,
        volumes=volumes,
    )
    for entry in entries:
        done = f"muted: {entry.label}"
        if entry.until:
            again = entry.until + timedelta(days=1) if entry.until.year < 9999 else entry.until
            done = f"muted until {entry.until}, shown again on {again}: {entry.label}"
        say_wrapped(done)
    # What is for other hosts says nothing about this one.
    if not of_host:
        for entry, others in find_idle_muting(entries, of, workload=workload, volumes=volumes).items():
            say_wrapped(_explain_idle(entry.label, others))
    rule = entries[0].id
    made = {(one.device, one.host) for one in entries}
    of_rule = [one for one in read_muting() if one.id == rule]
    if any((one.device, one.host) not in made for one in of_rule):
        # Its id alone would show what was muted before as well.
        for entry in entries:
            given = {"--device": entry.device, "--host": entry.host}
            words = [word for option, value in given.items() if value for word in (option, shell_quote(value))]
            call = " ".join(("advisor unmute", shell_quote(rule), *words))
            # What is left out of the call means any: it may be about more than this entry.
            meant = [one for one in of_rule if entry.device in ("", one.device) and entry.host in ("", one.host)]
            say_wrapped(f"this entry alone: {call}" if len(meant) == 1 else _BY_NUMBER)
    elif len(entries) > 1:
        say_wrapped(f"one entry for each of {len(entries)} devices; advisor unmute {rule} removes all")
    else:
        say_wrapped(f"advisor unmute {rule} shows it again")
    # It was given by its number.
    if rule != identity and not device and not of_host:
        say_wrapped("the numbers of later findings are lower now: advisor scan lists them")
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
    removed = remove_muting(names, _split_names(device) or "", of_host or "")
    for entry in removed:
        say_wrapped(f"no longer muted: {entry.label}")
    rules = {entry.id for entry in removed}
    if rules.issuperset(names):
        return 0
    # A number was given: what it has left, and that numbers have changed.
    left = read_muting()
    same = [(number, entry) for number, entry in enumerate(left, 1) if entry.id in rules]
    for number, entry in same[:_MOST_LEFT]:
        say_wrapped(f"still muted: {entry.label}, number {number} now")
    if before[: len(left)] != left:
        say_wrapped("the numbers of later entries are lower now: advisor scan --muted")
    return 0


def _split_names(given: list[str] | None) -> list[str] | None:
    """The devices of an option that is repeated, or that holds several with commas between."""
    names = [name.strip().removeprefix("/dev/") for words in given or () for name in words.split(",")]
    if given and not all(names):
        raise UsageError("--device: empty", hint="--device md4, or --device 'sd*'")
    return names or None


def _explain_idle(what: str, others: Sequence[str]) -> str:
    from advisor.report.findings import short_names

    if not others:
        return f"note: {what}: no finding here is muted by it now"
    return f"note: {what}: still listed, since the finding is about {short_names(others)} as well"


COMMANDS = {"mute": mute, "unmute": unmute}
