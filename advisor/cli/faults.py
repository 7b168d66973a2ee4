"""Errors as messages and exit codes."""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import Any

from advisor.cli.output import print_error
from advisor.errors import AdvisorError, near_names
from advisor.host.signals import Interrupted


def report_fault(error: BaseException, *, as_json: bool) -> int:
    """Say what has failed; the exit code. Raises the error itself where ADVISOR_TRACEBACK asks for it."""
    if isinstance(error, AdvisorError):
        print_error(error, as_json=as_json)
        return error.exit_code
    if isinstance(error, Interrupted) and error.rolled_back:
        sys.stderr.write(f"advisor: interrupted; everything has been rolled back ({error.rolled_back})\n")
        return 130
    if isinstance(error, KeyboardInterrupt | Interrupted):
        sys.stderr.write(f"advisor: {str(error) or 'interrupted'}\n")
        return 130
    if isinstance(error, EOFError):
        # The end of standard input, typed at a question.
        sys.stderr.write("\n")
        return 130
    if isinstance(error, OSError):
        # What the system refused; on standard error alone where standard output itself is what failed.
        place = error.filename or "standard output"
        failed = AdvisorError(f"{place}: {os.strerror(error.errno or errno.EIO)}")
        print_error(failed, as_json=as_json and error.filename is not None)
        if error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return failed.exit_code
    if not isinstance(error, Exception) or os.environ.get("ADVISOR_TRACEBACK"):
        raise error
    fault = AdvisorError(
        f"this is a fault in advisor: {type(error).__name__}: {error}",
        hint="report it with what ADVISOR_TRACEBACK=1 in the environment makes it print",
    )
    print_error(fault, as_json=as_json)
    return fault.exit_code


# A call that typer refuses, as a message of advisor: by the class of its exception and its fields.


def call_message(error: Any) -> str:
    """What is wrong with the call; typer's own text for an exception that this does not know."""
    text = str(error.format_message()).rstrip(".")
    kind = type(error).__name__
    if kind == "NoSuchOption":
        option, params = error.option_name, error.ctx.command.params
        if gone := _GONE.get(f"{error.ctx.command.name} {option}", _GONE.get(option)):
            return f"{option}: was removed; {gone}"
        known = {one.lstrip("-"): one for param in params for one in (*param.opts, *param.secondary_opts)}
        close = near_names(option.lstrip("-"), (name for name, one in known.items() if one.startswith("--")))
        word = option.lstrip("-")
        close = next(([target] for target, words in _MEANT.items() if target in known and word in words.split()), close)
        if not close:
            return f"No such option: {option}"
        names = ", ".join(known[one] for one in close)
        return f"No such option: {option}. Did you mean {names}?"
    if kind == "BadOptionUsage":
        option = error.option_name
        if error.message.endswith("does not take a value."):
            return f"Option '{option}' does not take a value"
        return f"Option '{option}' requires an argument"
    if kind == "MissingParameter":
        name = _parameter_name(error)
        if error.param.param_type_name == "argument":
            return f"Missing argument '{name}'"
        return f"Missing option '{name}'"
    if kind == "BadParameter":
        return _bad_value(error)
    if kind == "UsageError":
        # An error that has no class of its own: about the command where this is a group, else about what is left
        # over.
        if hasattr(error.ctx.command, "commands"):
            name = _first_quoted(text)
            if name in OTHER_WORDS and error.ctx.parent is None:
                return f"No such command '{name}'"
            names = ", ".join(f"'{one}'" for one in near_names(name, error.ctx.command.list_commands(error.ctx)))
            if names:
                return f"No such command '{name}'. Did you mean {names}?"
            return f"No such command '{name}'" if name else "Missing command"
        more = text.partition(" (")[2].removesuffix(")")
        if not more:
            return text
        return f"Got unexpected extra argument(s) ({more})"
    return text


def call_hint(error: Any) -> str:
    """Return what to call instead, else where to look."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "advisor"
    commands = getattr(getattr(context, "command", None), "commands", {})
    if commands and context is not None and context.parent is not None:
        return f"its commands: {', '.join(commands)}; {path} --help"
    word = _first_quoted(str(error.format_message())) if type(error).__name__ == "UsageError" else ""
    return OTHER_WORDS.get(word, f"{path} --help says what it takes")


_TABLE = """
undo revert restore reset unapply remove disable cancel abort: advisor rollback restores the old values
silence ignore snooze accept acknowledge ack suppress hide: advisor mute ID --reason TEXT accepts a finding
unsilence unignore unsnooze unhide: advisor unmute ID lists a finding again
check audit doctor diagnose inspect analyze analyse health findings issues problems detect assess:
 advisor scan lists what is wrong on this host
facts info hardware inventory show host summary detail details kernel cpu memory numa irq disk disks net network link
 links storage: advisor scan --all prints every fact of this host
report: advisor scan --html FILE writes a page with a picture and the findings
picture draw graph topology map: advisor scan --picture, --svg FILE or --html FILE
capture collect dump archive sosreport backup save: advisor snapshot -o FILE captures what a scan reads
diff: advisor verify compares this host with what was applied; advisor fleet compare compares hosts
drift validate: advisor verify compares this host with what was applied
history log logs list ls transactions changes state: advisor status --all lists transactions; advisor scan, findings
set sysctl enable activate install change write run start: advisor apply PROFILE or KEY=VALUE, after advisor plan
repair mend remediate correct heal: advisor fix ID fixes a finding
top monitor watch stat stats perf bottleneck live slow: advisor why --watch shows what binds this host now
preview simulate dry-run dryrun try test: advisor plan PROFILE or KEY=VALUE shows what would change
import export lint profile convert presets: advisor profiles list, show, lint, import and export
suggest advise advice recommendations optimize optimise auto improve: advisor recommend lists the profiles that fit
benchmark measure fio gain proof result results: advisor prove PROFILE measures a gain; advisor bench measures a host;
 advisor prove-replay FILE shows a saved proof
capacity ceiling ceilings max: advisor limits lists the ceilings of each path
ping mtu path reach latency: advisor probe PEER measures round-trip time and path MTU
keep commit yes: advisor confirm keeps a transaction that awaits confirmation
script: advisor rollback-script and advisor apply-script print POSIX sh scripts
hosts cluster ansible: advisor fleet does the same on many hosts
metrics prometheus exporter: advisor scan --prometheus FILE writes metrics
completion completions: advisor --install-completion installs it for the current shell
what how describe man doc docs example examples: advisor explain NAME; advisor COMMAND --help
config configure init setup tutorial wizard getting-started: advisor without a command leads through scan,
 plan and apply
update upgrade uninstall: the package manager, or a newer checkout's setup.sh; before: advisor rollback --all
record workload: advisor observe -o FILE writes the load as a workload file
"""
OTHER_WORDS = {
    word: hint
    for words, _, hint in (line.partition(": ") for line in _TABLE.strip().replace("\n ", " ").split("\n"))
    for word in words.split()
}
"""Commands of other tools and first guesses, with the call that stands for them here."""

_MEANT = {
    "confirm-within": "trial trial-seconds timeout watchdog",
    "dry-run": "simulate check noop no-act preview n",
    "yes": "assume-yes assumeyes force noninteractive non-interactive",
    "runtime-only": "runtime temporary temp no-persist",
    "reason": "comment why because message m",
    "until": "expire expires expiry for",
    "seconds": "duration time for period",
    "budget": "duration time max-time",
    "snapshot": "file input from capture archive",
    "output": "file out",
    "inventory": "hosts host file",
    "forks": "jobs parallel j",
    "target": "dir path mount",
    "fail-on": "severity exit-code",
    "json": "format yaml",
    "all": "verbose v full details history long",
}
"""Options of advisor, each with the words of other tools for it; the first that the command has is meant."""


_GONE = {
    **dict.fromkeys(
        ("observe --target", "observe --check", "observe --svg"),
        "advisor bench --workload FILE --target DIR runs the twin, and compares",
    ),
    "prove --arms": "advisor prove-arms A B compares several profiles",
    "prove --live": "advisor prove-live PROFILE measures under the traffic that is there",
    "prove --replay": "advisor prove-replay FILE judges a saved proof again",
    **dict.fromkeys(("prove --ablate", "prove --reduced-profile"), "advisor prove-values PROFILE"),
    **dict.fromkeys(
        ("prove --period", "prove --tau", "prove --abort-if", "prove --yes"), "advisor prove-live PROFILE takes it"
    ),
    "--target-memory": "--file-size SIZE takes twice the larger memory as a size",
    "--lang": "pages and messages are English",
    "--junit": "--json prints each result",
    "--raw-device": "--target DIR measures a file on a file system of the disk",
    "--confirm-serial": "--target DIR measures a file on a file system of the disk",
    "--allow-raw-writes": "--target DIR measures a file on a file system of the disk",
    "--volume": "advisor limits --volumes FILE says what a volume's burst credits allow",
    "--allow-remount": "--reconnect COMMAND remounts after each toggle: \"sh -c 'umount DIR && mount DIR'\"",
    "--peer-ssh": "--command 'iperf3 -c PEER -t 2 -J' --metric json:.end.sum_received.bits_per_second:higher:bit/s",
    "--peer-address": "--peer ADDR asks that host whether the path carries the MTU",
    "--again": "advisor prove PROFILE repeats the whole proof",
    "--looks": "a session may end after 8, 16 or 24 pairs",
}
"""Options of earlier versions, each with its replacement."""


def _parameter_name(error: Any) -> str:
    hint = error.param.get_error_hint
    # From 0.29 on typer's own takes no context.
    name: str = hint(error.ctx) if hint.__code__.co_argcount > 1 else hint()
    return name.strip("'")


def _bad_value(error: Any) -> str:
    name = _parameter_name(error)
    given = _first_quoted(error.message)
    # The first error of a pydantic.ValidationError behind this one, as its `errors()` gives it; else None.
    behind = error.__cause__ or error.__context__
    refused = behind.errors()[0] if type(behind).__name__ == "ValidationError" else None
    if refused is not None:
        # From 0.29 on typer lets pydantic judge numbers.
        given, reason, bound = str(refused["input"]), refused["type"], refused.get("ctx", {})
        if reason in _PARSED:
            return f"{name}: {given!r} is {_number_words(error, _PARSED[reason])}"
        if "ge" in bound:
            return f"{name}: expected {bound['ge']} or more, found {given}"
        if "le" in bound:
            return f"{name}: expected {bound['le']} or less, found {given}"
    # From 0.29 on typer's parameters have no type: the message names it.
    known = getattr(error.param, "type", None)
    kind = known.name if known is not None else error.message.partition(" is not a valid ")[2].rstrip(".")
    words = kind.partition(" ")[0]
    if (given or error.message.startswith("''")) and words in _NUMBERS:
        return f"{name}: {given!r} is {_number_words(error, words)}"
    if found := _RANGE.fullmatch(error.message):
        low, high = found["low"], found["high"]
        if low and high:
            return f"{name}: expected {low} to {high}, found {found[1]}"
        if low:
            return f"{name}: expected {low} or more, found {found[1]}"
    if given and error.message.endswith(f"is not a valid {kind}."):
        return f"Invalid value for '{name}': '{given}' is not a valid {kind}"
    return f"Invalid value for '{name}': {error.message.rstrip('.')}"


def _number_words(error: Any, kind: str) -> str:
    in_seconds = "SECONDS" in (getattr(error.param, "metavar", None) or "")
    return _IN_SECONDS[kind] if in_seconds else _NUMBERS[kind]


_PARSED = {"int_parsing": "int", "int_from_float": "int", "float_parsing": "float", "finite_number": "float"}
_NUMBERS = dict.fromkeys(("int", "integer"), "not a whole number") | {"float": "not a number"}
_IN_SECONDS = dict.fromkeys(("int", "integer"), "not a whole number of seconds") | {"float": "not a number of seconds"}
_RANGE = re.compile(r"(-?[0-9.]+) is not in the range (?:(?P<low>-?[0-9.]+)<=)?x(?:<=(?P<high>-?[0-9.]*[0-9]))?\.?")


def _first_quoted(text: str) -> str:
    """What stands between the first quotes."""
    return text.partition("'")[2].partition("'")[0]
