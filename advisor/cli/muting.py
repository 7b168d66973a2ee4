"""``advisor mute`` and ``advisor unmute``."""

from __future__ import annotations

from typing import Annotated, Final

from advisor.cli.complete import explainable_ids
from advisor.cli.output import say
from advisor.cli.parameters import Argument, Option
from advisor.i18n import msg

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
    from advisor.operations.findings import accept_finding

    entries = accept_finding(identity, reason, until=until, device=device, host=of_host or "")
    for entry in entries:
        done = msg("muted: {what}", what=entry.label)
        if entry.until:
            done = msg("muted until {until}: {what}", until=entry.until, what=entry.label)
        say(done)
    say(msg("advisor unmute {id} shows it again", id=entries[0].id))
    return 0


def unmute(
    identity: Annotated[str, Argument(metavar="ID", help="A rule that is muted.", autocompletion=explainable_ids)],
    device: Device = None,
    of_host: OfHost = None,
) -> int:
    """List an accepted finding again. Needs root."""
    from advisor.operations.muting import remove_muting

    for entry in remove_muting(identity, device or "", of_host or ""):
        say(msg("no longer muted: {what}", what=entry.label))
    return 0


COMMANDS: Final = {"mute": mute, "unmute": unmute}
