"""Commands of a shell that set something: the words of a line, and a table of what each program sets."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Literal, NamedTuple

from advisor.facts.processors.cpulist import format_list, parse_mask
from advisor.facts.settings.sysctl import dotted_key, parse_sysctl_file
from advisor.facts.writers.commands import ANY
from advisor.facts.writers.commands import PROGRAMS as SCRIPT_PROGRAMS
from advisor.facts.writers.commands import ethtool as set_by_ethtool
from advisor.host.kernel_text import SET
from advisor.host.patterns import lazy_regex
from advisor.importers.tuned.plugin_boot import state_of
from advisor.profiles.profile import FieldSense
from advisor.tunables import all_kinds

KEY = (
    r"(?:abi|crypto|debug|dev|fs|kernel|net|sunrpc|user|vm)(?:[./][\w*?:@{}$-]+(?:\[[^\]\s]{1,20}\])?){1,8}(?![\w./-])"
)
"""A sysctl by the directories of /proc/sys, dotted or with slashes."""
VARIABLE = lazy_regex(r"\$|\{\{|<[\w -]+>|%[sdi]\b|^\[[\w -]+\]$|^(?:value|VALUE|number|N|X+|min default max)$")
"""A value that the reader fills in."""
_PLACEHOLDER = lazy_regex(r".*(?:[$<>{}%]|X$|XX).*|(?:eth|sd|nvme|ens|em|enp)[NYxn]|DEV\w*|IFACE|INTERFACE|NIC")
_SIGNS = frozenset({";", "&&", "||", "&", "(", ")", ";;", "{", "}"})
_WORDS_BEFORE = frozenset(
    {"do", "then", "else", "if", "while", "!", "time", "exec", "command", "nohup", "doas", "env", "builtin", "run"}
)
_ASSIGNMENT = lazy_regex(r"[A-Za-z_]\w*=.*", re.DOTALL)
_MOST_LOOPS = 16


Outcome = Literal["taken", "refused", "ignored", "harmful"]


class Found(NamedTuple):
    """A tunable as the text names it, where any device may stand as ``*``, and its value; ``note`` says what else is
    to be known. Without a tunable it is a setting of a kind that none of advisor's tunables has. ``rotational``: of
    disks, those alone that rotate, or do not."""

    tunable: str | None
    value: str | None
    note: str = ""
    is_container: bool = False
    sense: FieldSense | tuple[FieldSense, ...] = "exactly"
    rotational: bool | None = None
    outcome: Outcome = "taken"


def device_name(word: str) -> str:
    """Return the kernel's name of a device, ``*`` for a place that the reader fills in."""
    name = word.strip("\"'").removeprefix("/dev/")
    return "*" if _PLACEHOLDER.fullmatch(name) else name


def sysctl(written: str, value: str, note: str = "") -> Found:
    """Return a kernel parameter by its key as it is written."""
    key = re.sub(r"(?<=\.)[^.]*[$%{][^.]*(?=\.)", "*", dotted_key(written.strip()))
    return Found(f"sysctl:{key}", value.strip(), note)


def file_setting(path: str, value: str) -> Iterator[Found]:
    """Yield what a value written to a file of the kernel sets."""
    path = path.strip("\"'")
    if VARIABLE.search(path.rpartition("/")[2]):
        return
    if path.startswith("/proc/sys/"):
        yield sysctl(path.removeprefix("/proc/sys/").replace(".", "\0").replace("/", ".").replace("\0", "/"), value)
    elif path.startswith("/sys/"):
        # A variable names a device here: /sys/block/$disk/queue/scheduler.
        place = "/".join("*" if VARIABLE.search(part) else part for part in path.split("/"))
        place = re.sub(r"^/sys/block/(sd|nvme)X/", "/sys/block/*/", place)
        forms = (form for kind in all_kinds() for form in kind.sysfs)
        found = next((one.expand(identity) for pattern, identity in forms if (one := re.fullmatch(pattern, place))), "")
        yield Found(found or f"sysfs:{place}", value)
    elif irq := re.fullmatch("/proc/irq/([0-9]{1,6})/smp_affinity(_list)?", path):
        with suppress(ValueError):
            yield Found(f"irq:{irq[1]}:affinity", value if irq[2] else format_list(parse_mask(value)))
    elif path.startswith("/proc/"):
        yield Found(None, value, f"{path}: advisor has no tunable for it")


def sysctl_text(text: str) -> Iterator[Found]:
    """Yield the settings of lines of a sysctl file."""
    for line in parse_sysctl_file(text, ""):
        if not line.excludes and re.fullmatch(KEY, line.key):
            yield sysctl(line.key, line.value)


def kernel_words(text: str) -> Iterator[Found]:
    """Yield the parameters of a kernel's command line, without those that say how it is booted."""
    for word in text.split():
        name, equals, value = word.partition("=")
        if re.fullmatch(r"[\w.-]{2,60}", name) and not _BOOTS.fullmatch(name):
            sign = name.removeprefix("sysctl.")
            yield sysctl(sign, value) if sign != name and equals else Found(f"cmdline:{name}", value if equals else SET)


_BOOTS = lazy_regex(
    r"quiet|splash|ro|rw|rhgb|root|resume|console|vt\.handoff|crashkernel|initrd|rd\..*|BOOT_IMAGE|boot|nomodeset|net"
    r"|biosdevname|net\.ifnames|locale|LANG|loglevel|init|linux|earlyprintk|earlycon|no_timer_check|[0-9]+"
)


def _write_sysctls(words: Sequence[str]) -> Iterator[Found]:
    for word in words:
        key, equals, value = word.partition("=")
        if equals and re.fullmatch(KEY, key.strip().removeprefix("-")):
            yield sysctl(key.strip(), value)


def ethtool(words: Sequence[str]) -> Iterator[Found]:
    """Yield what ethtool(8) is asked to set."""
    if words[:1] in (["-s"], ["--change"], ["-N"], ["-X"], ["--set-priv-flags"]):
        yield Found(None, None, f"ethtool {words[0]}: advisor has no tunable for it")
        return
    for tunable, value in set_by_ethtool(words, device_name(words[1]) if len(words) > 1 else ""):
        if tunable.endswith(":feature.tx"):
            yield Found(None, value, "tx stands for several checksum offloads, of which a driver has some")
        else:
            yield Found(tunable, value)


def _as_scripts_do(program: str) -> Callable[[Sequence[str]], Iterator[Found]]:
    """What start-up scripts set with the same words; a place that the reader fills in stands for any device."""

    def read(words: Sequence[str]) -> Iterator[Found]:
        marked = ["$DEVICE" if "$" not in word and device_name(word) == "*" else word for word in words]
        note = "in sectors of 512 bytes" if program == "blockdev" else ""
        for tunable, value in SCRIPT_PROGRAMS[program](marked):
            yield Found(tunable.replace(ANY, "*"), value, note)

    return read


def module_options(words: Sequence[str]) -> Iterator[Found]:
    """Yield what ``modprobe MODULE NAME=VALUE…`` and a line ``options MODULE …`` set."""
    names = [word for word in words if not word.startswith("-")]
    if not names or "-r" in words or not re.fullmatch(r"[\w-]{2,40}", names[0]):
        return
    for name, _, value in (word.partition("=") for word in names[1:]):
        yield Found(f"module:{names[0]}:{name}", value or "1")
    if len(names) == 1:
        yield Found(f"module:{names[0]}", "loaded")


def _set_unit(words: Sequence[str]) -> Iterator[Found]:
    """Services that are stopped; that one is started says that a program is there, and no more."""
    names = [word for word in words if not word.startswith("-")]
    states = {"stop": ["stop"], "disable": ["disable"], "mask": ["disable"]}.get(names[0], []) if names else []
    states = [*states, "stop"] if "--now" in words and states else states
    for name in filter(lazy_regex(r"[\w@.-]+").fullmatch, names[1:] if states else ()):
        value, sense = state_of(states)
        yield Found(f"unit:{name if '.' in name else f'{name}.service'}:state", value, sense=sense)


def _set_frequency(words: Sequence[str]) -> Iterator[Found]:
    for option, value in pairwise(words):
        if option in ("-g", "--governor") and "frequency-set" in words:
            yield Found("cpufreq:*:governor", value)


def _run_container(words: Sequence[str]) -> Iterator[Found]:
    for option, value in zip(words, (*words[1:], ""), strict=True):
        name, _, given = option.partition("=")
        for one in _write_sysctls([given or value]) if name == "--sysctl" else ():
            yield one._replace(is_container=True)


def _set_boot_words(words: Sequence[str]) -> Iterator[Found]:
    for word in words:
        if word.startswith("--args="):
            yield from kernel_words(word.partition("=")[2])


def _choose_profile(words: Sequence[str]) -> Iterator[Found]:
    if words[:1] == ["profile"]:
        for name in words[1:]:
            yield Found(f"tuned:{name}", None)


def _limit_session(words: Sequence[str]) -> Iterator[Found]:
    if re.fullmatch(r"-[SH]*[a-zA-Z]", words[0] if words else "") and len(words) == 2:
        yield Found(
            None, words[1], f"ulimit {words[0]}: a limit of this shell's own processes; a service has its unit's"
        )


def _set_connection(words: Sequence[str]) -> Iterator[Found]:
    """``nmcli connection modify NAME PROPERTY VALUE…``: a connection mostly has the name of its link."""
    places = [place for place, word in enumerate(words) if word in ("mod", "modify")]
    after = words[places[0] + 1 :] if places else ()
    after = after[1:] if after[:1] and after[0] in ("id", "ifname") else after
    for name, value in pairwise(after[1:]):
        if re.fullmatch(r"(?:802-3-ethernet|ethernet|infiniband|bond|bridge|vlan)\.mtu", name):
            yield Found(f"link:{device_name(after[0])}:mtu", value)
        elif re.fullmatch(r"[+-]?ethtool\.\S+", name):
            yield Found(None, value, f"nmcli {name}: advisor sets it by the link's own tunable")


def mount_options(text: str) -> Found:
    """Return options of a mount, which no tunable has."""
    return Found(None, text, "options of a mount: advisor has no tunable for them")


def _mount(words: Sequence[str]) -> Iterator[Found]:
    for option, value in zip(words, (*words[1:], ""), strict=True):
        given = value if option in ("-o", "--options") else option[2:] if option.startswith("-o") else ""
        if given := ",".join(word for word in given.split(",") if word not in ("remount", "bind", "loop", "")):
            yield mount_options(given)


_NO_TUNABLE: Mapping[str, str] = {
    "hdparm": r"-[WABMSKm]\d+|-a\d+|--(?:set|write)\S*",
    "tune2fs": r"-[oOECcimreJ]\S*",
    "sdparm": r"-s\S*|--(?:set|clear)\S*",
    "smartctl": r"-[so]|--(?:set|smart)\S*",
    "nvme": r"set-feature|format",
    "mdadm": r"--grow|-G|--bitmap\S*",
    "xfs_admin": r"-[cLU]\S*",
    "swapoff": r"-a|/\S+",
    "irqbalance": r"-\S+",
    "mlnx_tune": r"-p",
    "mlxconfig": r"set|s",
    "mstconfig": r"set|s",
    "setpci": r"\S+=\S+",
    "x86_energy_perf_policy": r"\S+",
    "chrt": r"-[frobid]\S*",
    "ionice": r"-c\S*",
    "zfs": r"set",
    "zpool": r"set",
}
"""Programs that set what no tunable is: by the words with which each sets something."""


def _without_tunable(program: str) -> Callable[[Sequence[str]], Iterator[Found]]:
    def read(words: Sequence[str]) -> Iterator[Found]:
        if any(re.fullmatch(_NO_TUNABLE[program], word) for word in words):
            yield Found(None, None, f"{program}: advisor has no tunable for it")

    return read


PROGRAMS: Mapping[str, Callable[[Sequence[str]], Iterator[Found]]] = {
    "sysctl": _write_sysctls,
    "ethtool": ethtool,
    **{program: _as_scripts_do(program) for program in ("ip", "ifconfig", "blockdev", "tc", "ovs-vsctl")},
    "modprobe": module_options,
    "systemctl": _set_unit,
    "cpupower": _set_frequency,
    "docker": _run_container,
    "podman": _run_container,
    "nerdctl": _run_container,
    "grubby": _set_boot_words,
    "tuned-adm": _choose_profile,
    "ulimit": _limit_session,
    "nmcli": _set_connection,
    "mount": _mount,
    **{program: _without_tunable(program) for program in _NO_TUNABLE},
}
"""What each program sets, by its words. A new form of a command is one row."""
_SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh", "su"})
_PRINTS = frozenset({"echo", "printf"})


def read_command(text: str, variables: Mapping[str, Sequence[str]], depth: int = 0) -> Iterator[Found]:
    """Yield what the commands of a line set; none for a line without one. Variables of the text are filled in."""
    loop = re.match(r"\s*for\s+(\w+)\s+in\s+([^;]{1,400})", text)
    known = dict(variables)
    if loop:
        known[loop[1]] = loop[2].split()[:_MOST_LOOPS]
    text = re.sub(r"\s[0-9&]?>\s?(?:/dev/null|&[0-9])", " ", text)
    # <interface> is a place that the reader fills in, not a redirection.
    text = re.sub(r"<[A-Za-z][\w-]{0,30}(?: [\w-]{1,30})?>", "$PLACE", text)
    text = re.sub(r"\{\{\s*([\w.]+)\s*\}\}", r"{{\1}}", text)
    # A page whose lines ran together: the prompt is in their midst.
    text = re.sub(r"(?<=[\w'\"])[$#] (?=(?:sudo |echo |sysctl |modprobe ))", "; ", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        # A quotation mark that nothing closes: prose, or a part of a script.
        words = text.replace('"', " ").split()
    statement: list[str] = []
    for word in (*words, ";"):
        if word in _SIGNS or word.startswith("#"):
            yield from _read_statement(statement, known, depth)
            statement = []
            if word.startswith("#"):
                return
        else:
            statement.append(word)


def _read_statement(words: Sequence[str], variables: Mapping[str, Sequence[str]], depth: int) -> Iterator[Found]:
    named = dict.fromkeys(name for word in words for name in re.findall(r"\$\{?(\w+)", word) if name in variables)
    looped = next((name for name in named if len(variables[name]) > 1), None)
    for value in variables[looped] if looped else ("",):
        known = {name: value if name == looped else variables[name][0] for name in named if variables[name]}
        filled = [fill_in(word, known) for word in words]
        yield from _run_words(filled, variables, depth)


def fill_in(word: str, known: Mapping[str, str]) -> str:
    """Return a word with the variables of a shell or of a template that are known."""
    pattern = (
        r"\$\{(\w+)(?::?-[^}]{0,80})?\}|\$(\w+)|\{\{\s*(\w+)\s*(?:\|\s*(?:d|default|int|string)\b[^}|]{0,80})?\}\}"
    )
    return re.sub(pattern, lambda one: known.get(one[1] or one[2] or one[3], one[0]), word)


def _run_words(words: Sequence[str], variables: Mapping[str, Sequence[str]], depth: int) -> Iterator[Found]:
    begin = 0
    while begin < len(words) and _is_before(words[begin]):
        begin += 1
    stages = _split(words[begin:])
    for stage in stages:
        program = stage[0].rpartition("/")[2] if stage else ""
        if program in _SHELLS and "-c" in stage[:-1] and depth < 3:
            yield from read_command(stage[stage.index("-c") + 1], variables, depth + 1)
        elif program in _PRINTS:
            yield from _read_print(stage, stages)
        elif program in PROGRAMS:
            rest = stage[1 : stage.index(">")] if ">" in stage else stage[1:]
            yield from PROGRAMS[program](rest)


def _is_before(word: str) -> bool:
    return word in _WORDS_BEFORE or word == "sudo" or word in ("-E", "-n") or bool(_ASSIGNMENT.fullmatch(word))


def _split(words: Sequence[str]) -> list[list[str]]:
    """The stages of a pipeline."""
    stages: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            stages.append([])
        elif not (word == "sudo" and not stages[-1]):
            stages[-1].append(">" if word == ">>" else word)
    return stages


def _read_print(stage: Sequence[str], stages: Sequence[Sequence[str]]) -> Iterator[Found]:
    """``echo VALUE > FILE`` and ``echo VALUE | tee FILE``: a file of the kernel, or lines of a sysctl file."""
    end = stage.index(">") if ">" in stage else len(stage)
    said = [word for word in stage[1:end] if not re.fullmatch(r"-[neE]+", word)]
    if stage[0] == "printf" and len(said) > 1 and "%" in said[0]:
        said = said[1:]
    value = " ".join(said).replace("\\n", "\n")
    targets = [*stage[end + 1 : end + 2]]
    for other in stages:
        if other[:1] == ["tee"]:
            targets += [word for word in other[1:] if not word.startswith("-")]
    for target in targets:
        if target.startswith(("/proc/", "/sys/")):
            yield from file_setting(target, value.strip())
        elif "sysctl" in target:
            yield from sysctl_text(value)


def json_words(text: str) -> list[str] | None:
    """Return the words of a command that is a list of strings, as in a Dockerfile or a pod; None for another text."""
    begin, end = text.find('["'), text.rfind("]")
    if begin < 0 or end < begin:
        return None
    try:
        words = json.loads(text[begin : end + 1])
    except ValueError:
        return None
    return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else None
