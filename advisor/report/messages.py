"""Errors and reasons in the reader's language: recognised by their English form, where they are printed.

They are raised and recorded far below, in English, as they are data too: in JSON documents, journals and scripts. So
each is found here by its form, ``there is no profile {name}``, and its fields go into the translation unchanged. A
message of no known form is printed as it is.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from advisor.patterns import lazy_regex
from advisor.words import N_, _, is_english

CALLS: Final = (
    N_("No such command '{name}'"),
    N_("No such command '{name}'. Did you mean {names}?"),
    N_("No such option: {option}"),
    N_("No such option: {option} (Possible options: {names})"),
    N_("No such option: {option} Did you mean {names}?"),
    N_("Missing argument '{name}'"),
    N_("Missing command"),
    N_("Option '{option}' requires an argument"),
    N_("Got unexpected extra argument(s) ({name})"),
    N_("Invalid value for '{option}': {reason}"),
    N_("'{text}' is not a valid {kind}"),
)
"""What typer says of a call."""

FORMS: Final = (
    # Who may, and who was asked.
    N_("changing a host needs root"),
    N_("run it with sudo; advisor plan needs no root"),
    N_("run it as root"),
    N_("{path}: only root can read it"),
    N_("{path}: only root may write there"),
    N_("sending ICMP echoes needs root, CAP_NET_RAW, or a group within net.ipv4.ping_group_range"),
    N_("run it with sudo, or allow it to everybody: {command}"),
    N_("nobody can be asked here"),
    N_("give --yes to go on without asking, or --dry-run to look"),
    N_("not agreed to; nothing was changed"),
    # The call.
    N_("{one} and {other} exclude each other"),
    N_("--set {pair}: not of the form NAME=VALUE"),
    N_("--set {name}: given twice"),
    N_("--set {name}: no such parameter of {profiles}"),
    N_("--fail-on {word}: not one of {words}"),
    N_("{option} {language}: no such language"),
    N_("languages: {names}"),
    N_("{command} --help says what it takes"),
    N_("--lang stands before the command: {command}"),
    N_("give a transaction or --all, not both"),
    N_("nothing to measure on"),
    N_("name a file"),
    N_("name a file that is new"),
    N_("make it first"),
    *CALLS,
    # Files and captured hosts.
    N_("{path}: not a directory"),
    N_("{path}: not a regular file"),
    N_("{path}: there is no such directory"),
    N_("{path}: is there and is no regular file"),
    N_("{path}: holds neither proc nor sys"),
    N_("--root takes the top of a captured host"),
    N_("--root takes a directory with a captured /proc and /sys"),
    N_("{path}: larger than {size} MiB"),
    N_("{path}: line {number}: damaged"),
    N_("{path}: is empty"),
    N_("{path}: is not there"),
    # Profiles and tunables.
    N_("there is no profile {name}"),
    N_("profiles: {names}"),
    N_("profile {profile} has no parameter {name}"),
    N_("parameters: {names}"),
    N_("the profile needs a value: --set {name}=…"),
    N_("there is no {kind} {pattern} on this host"),
    N_("{name} is not a tunable"),
    N_("{name} is no rule, profile, tunable or contradiction"),
    N_("did you mean {names}?"),
    N_("{tunable}: {profile} wants {value}, {other} wants {wanted}"),
    N_("apply one of the two, or bring them together with --set"),
    # Transactions.
    N_("there is no transaction {id}"),
    N_("{profile} is in force more than once: {ids}"),
    N_("give one of these ids"),
    N_("to look: {look}\n{roll}\nto keep its values, and set its records aside: {aside}"),
    N_("transaction {id} came later, and what it holds is unknown: {why}"),
    N_("{id} had been taken back by its watchdog ({why}): {result}"),
    N_("{id} was not finished ({why}): {result}"),
    N_("there is no transaction to put back"),
    N_("no transaction is in force: there is nothing to put back"),
    N_("no transaction is in force"),
    N_("no transaction waits for confirmation"),
    N_("transaction {id} waits for confirmation, {seconds} s left"),
    N_("advisor confirm {id}, or advisor rollback {other}"),
    N_("another transaction is under way ({holder})"),
    N_("wait for it to end"),
    N_("too late: nothing waits any more"),
    N_("too late: transaction {id} is being put back"),
    N_("advisor status lists them"),
    N_("advisor status lists what there is"),
    N_("advisor status shows what came of it"),
    N_("this is the ssh connection that the change was made over; that it lives on proves nothing about new ones"),
    N_("log in anew and run: advisor confirm {id} (or add --same-session)"),
    N_("nothing of this profile applies here: {reason}"),
    N_("nothing of it fits this host"),
    N_("advisor plan shows all that stands in the way"),
    N_("advisor plan lists every item"),
    N_("{what}: changed since the plan was made"),
    N_("{what}: cannot be read: {why}"),
    N_("nothing was changed; plan again once it can be read"),
    N_("make the plan again"),
    N_("{tunable}: set to {value}, but {found}"),
    N_("{reason}; everything has been put back"),
    N_("{reason}; {count} item(s) could not be put back"),
    N_("the watchdog took over ({why}); everything has been put back"),
    N_("{name} would change nothing here, so there is nothing to put back"),
    N_("{file}: run it as root: {command}"),
    N_("interrupted"),
    N_("nobody confirmed it in time"),
    N_("{reason} (and {count} more)"),
    # What became of values and files.
    N_("a reboot undoes it"),
    N_("no file sets them again"),
    N_("is as before the transaction"),
    N_("is as before the transaction; {note}"),
    N_("was changed since"),
    N_("was removed"),
    N_("no longer holds what the transaction wrote"),
    N_("cannot be read: {why}"),
    N_("somebody else set it to {value}"),
    N_("somebody else changed it since"),
    N_("as before"),
    N_("earlier content"),
    N_("removed"),
    N_("by the watchdog"),
    N_("put back"),
    N_("{id}, which came earlier, holds it at {value}"),
    N_("put back, but reads otherwise"),
    N_("written, but reads otherwise"),
    # Who else sets such values.
    N_(
        "TuneD is active with the profile {name}, which sets {values}: it does so again whenever it starts. "
        "To leave them to TuneD: {command}; to be rid of it: tuned-adm off, and then apply this anew"
    ),
    N_("TuneD is active with the profile {name}, which sets none of these values otherwise"),
    N_(
        "TuneD is active with the profile {name}: what it sets of these values gives way to /etc/sysctl.d, which it "
        "reads after its own"
    ),
    N_(
        "saptune has applied {name}, which set {values}: that is set again when it starts. "
        "Change such a value in /etc/saptune/override, or revert the note first (saptune note revert)"
    ),
    N_("saptune has applied {name}: it sets none of these values otherwise"),
    N_(
        "irqbalance runs, and moves interrupts that it is not told to leave: {options} in its options leaves these as "
        "they are set"
    ),
    N_("{managers} configures links here; the values of links are kept in {files}, so they last"),
    N_(
        "{managers} configures links here, and no file keeps {names}: such a value may be gone when the link is "
        "activated anew. Set it in the link's own configuration to keep it"
    ),
    N_(
        "{file} says that {manager} manages it: put the setting where {other} takes it from, or its next run undoes it "
        "(advisor verify then tells)"
    ),
    # A measurement.
    N_("the host is busy: {reason}"),
    N_("try again later; --force measures all the same, and the verdict is then indicative at most"),
    N_("see advisor status, then advisor rollback"),
    N_("this is a fault in advisor: {error}"),
    N_("report it with what ADVISOR_TRACEBACK=1 in the environment makes it print"),
)
"""Every form that is translated; a field stands for any text. The first that fits counts, a plain text before all."""

# Fields that hold a message in their turn; any other holds a name or a value, which stays as it is.
_MESSAGES: Final = frozenset({"why", "reason", "note", "found"})
_FIELD = lazy_regex(r"\{(\w+)\}")


def told(message: str) -> str:
    """The message in the chosen language; itself in English, and where it has no known form."""
    if is_english() or not message:
        return message
    if message in FORMS:
        return _(message)
    for form, pattern in _patterns():
        found = pattern.fullmatch(message)
        if found:
            fields = {name: told(text) if name in _MESSAGES else text for name, text in found.groupdict().items()}
            return _(form).format(**fields)
    return message


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Forms that have fields, those with most words of their own first."""
    forms = sorted((form for form in FORMS if _FIELD.search(form)), key=lambda form: -len(_FIELD.sub("", form)))
    return tuple((form, _pattern(form)) for form in forms)


def _pattern(form: str) -> re.Pattern[str]:
    # Parts alternate: text, the name of a field, text.
    parts = _FIELD.split(form)
    return re.compile(
        "".join(f"(?P<{part}>.+?)" if number % 2 else re.escape(part) for number, part in enumerate(parts)), re.DOTALL
    )
