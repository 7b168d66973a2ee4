"""``advisor mute`` and ``advisor unmute``."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Final

from advisor.cli.complete import explainable_ids
from advisor.cli.output import say
from advisor.cli.parameters import Argument, Option
from advisor.errors import UsageError
from advisor.i18n import msg, translate

MOST_DEVICES: Final = 32
"""Entries that a number may make: one for each device of its findings."""

Device = Annotated[
    str | None, Option("--device", metavar="DEV", help="Only of this device, or of a pattern: md4, 'sd*'.")
]
OfHost = Annotated[
    str | None,
    Option("--host", metavar="NAME", help="On hosts of this name or pattern, in captures as well; else this host."),
]


def mute(
    identity: Annotated[
        str, Argument(metavar="ID|N", help="A rule, or the number of a finding.", autocompletion=explainable_ids)
    ],
    reason: Annotated[str, Option("--reason", metavar="TEXT", help="Why it is accepted; scan --muted prints it.")],
    until: Annotated[
        str | None, Option("--until", metavar="DATE", help="The last day, as 2027-01-31; without it, for good.")
    ] = None,
    device: Device = None,
    of_host: OfHost = None,
) -> int:
    """Accept a finding: it is counted, not listed. Needs root."""
    from advisor.operations.muting import MutingEntry, add_muting, current_day

    day = _parse_day(until)
    if day is not None and day < current_day():
        raise UsageError(msg("--until {until}: is in the past", until=until))
    rule, devices = _meant_by(identity, device)
    for name in devices:
        entry = MutingEntry(rule, _given("--reason", reason), name, of_host or "", day)
        add_muting(entry)
        done = msg("muted: {what}", what=entry.label)
        if day:
            done = msg("muted until {until}: {what}", until=day, what=entry.label)
        say(translate(done))
    say(translate(msg("advisor unmute {id} shows it again", id=rule)))
    return 0


def unmute(
    identity: Annotated[str, Argument(metavar="ID", help="A rule that is muted.", autocompletion=explainable_ids)],
    device: Device = None,
    of_host: OfHost = None,
) -> int:
    """List an accepted finding again. Needs root."""
    from advisor.operations.muting import remove_muting

    for entry in remove_muting(identity, device or "", of_host or ""):
        say(translate(msg("no longer muted: {what}", what=entry.label)))
    return 0


def _meant_by(identity: str, device: str | None) -> tuple[str, tuple[str, ...]]:
    """The rule, and the devices of a number of the page; an id without a device means all."""
    from advisor.host.numbers import is_count

    if not is_count(identity):
        return identity, (device or "",)
    from glob import escape

    from advisor.operations import scan
    from advisor.rules.finding import finding_devices
    from advisor.rules.numbering import find_numbered, number_findings

    group = find_numbered(number_findings(scan().findings), identity)[0]
    names = dict.fromkeys(escape(name) for one in group.findings for name in finding_devices(one))
    if device is None and len(names) > MOST_DEVICES:
        raise UsageError(
            msg("finding {name}: is about {count} devices", name=identity, count=len(names)),
            hint=msg("--device takes a pattern for all of them: advisor mute {id} --device PATTERN", id=group.id),
        )
    return group.id, (device,) if device is not None else tuple(names) or ("",)


def _given(option: str, text: str) -> str:
    if not text.strip():
        raise UsageError(msg("{option}: empty", option=option), hint="say why, for those who read it later")
    return text


def _parse_day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            msg("--until {until}: not a date", until=text), hint="year, month and day, as 2027-01-31"
        ) from error


COMMANDS: Final = {"mute": mute, "unmute": unmute}
