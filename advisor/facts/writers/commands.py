"""Commands that set something: sysctl, ethtool, ip, ifconfig, tc, blockdev, ovs-vsctl, and echo to /proc/sys or /sys.

Only what can be told from the words counts; a variable stands for any device where the caller says so.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from advisor.facts.settings.sysctl import dotted_key
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex

Pair = tuple[str, str]
"""A tunable's id and the value; of ``load:FILE`` and ``load:`` (all files) sysctl's files are what is set."""

ANY = "?*"
"""A device that a variable names: any, or none of those that are asked about."""
_SIGNS = frozenset({";", "&&", "||", "&", "|", "(", ")", ";;"})
_BEFORE = frozenset({"do", "then", "else", "if", "exec", "sudo", "time", "nohup", "env", "!", "command"})
_ETHTOOL: Mapping[str, str] = {
    **dict.fromkeys(("-G", "--set-ring"), "ring"),
    **dict.fromkeys(("-L", "--set-channels"), "channels"),
    **dict.fromkeys(("-C", "--coalesce"), "coalesce"),
    **dict.fromkeys(("-A", "--pause"), "pause"),
    **dict.fromkeys(("-K", "--offload", "--features"), "feature"),
}
FEATURES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("gro", "generic-receive-offload"), ("rx-gro",)),
    **dict.fromkeys(("lro", "large-receive-offload"), ("rx-lro",)),
    **dict.fromkeys(("gso", "generic-segmentation-offload"), ("tx-generic-segmentation",)),
    **dict.fromkeys(("tso", "tcp-segmentation-offload"), ("tx-tcp-segmentation", "tx-tcp6-segmentation")),
    **dict.fromkeys(("sg", "scatter-gather"), ("tx-scatter-gather",)),
    **dict.fromkeys(("rx", "rx-checksumming"), ("rx-checksum",)),
    **dict.fromkeys(("rxvlan", "rx-vlan-offload"), ("rx-vlan-hw-parse",)),
    **dict.fromkeys(("txvlan", "tx-vlan-offload"), ("tx-vlan-hw-insert",)),
    **dict.fromkeys(("ntuple", "ntuple-filters"), ("rx-ntuple-filter",)),
    **dict.fromkeys(("rxhash", "receive-hashing"), ("rx-hashing",)),
}
"""Short and long names of ethtool(8) for the kernel's own."""
_FILES: tuple[tuple[str, str], ...] = (
    (r"/sys/(?:block|class/block)/([^/]+)/queue/([^/]+)", r"block:\1:\2"),
    (r"/sys/(?:block|class/block)/([^/]+)/device/timeout", r"block:\1:io_timeout"),
    (r"/sys/class/net/([^/]+)/mtu", r"link:\1:mtu"),
    (r"/sys/class/net/([^/]+)/tx_queue_len", r"link:\1:txqueuelen"),
    (r"/sys/block/([^/]+)/md/([^/]+)", r"md:\1:\2"),
    (
        r"/sys/devices/system/cpu/cpufreq/([^/]+)/(?:scaling_)?(governor|energy_performance_preference)",
        r"cpufreq:\1:\2",
    ),
    (r"/sys/devices/system/cpu/cpufreq/([^/]+)/(scaling_(?:min|max)_freq)", r"cpufreq:\1:\2"),
    (r"/sys/devices/system/cpu/cpufreq/boost", "cpufreq:boost"),
    (r"/sys/devices/system/cpu/intel_pstate/([^/]+)", r"intel_pstate:\1"),
    (r"/sys/kernel/mm/transparent_hugepage/(.+)", r"thp:\1"),
    (r"/sys/module/([^/]+)/parameters/([^/]+)", r"module:\1:\2"),
    (r"(/sys/.+)", r"sysfs:\1"),
)
# Vendors' scripts that set the CPUs of interrupts: those of Intel's drivers, and mlnx-tools.
_AFFINITY = lazy_regex(r"set_irq_affinity\w*(?:\.sh)?|mlnx_affinity|mlnx_tune")
VARIABLE = lazy_regex(r".*[$%`].*")
NO_TIMEOUT = 2147483640
"""From this number on a request is never given up: the kernel turns it into its longest time, in ms."""
_LONGEST = 4096
_LONGEST_SCRIPT = 256 * 1024
_MOST_VALUES = 32
_LONGEST_VALUE = 200
_MOST_COMMANDS = 300
"""Lines of a script that are read as commands: one of a snapshot may be made to cost time."""
OF_INTEREST = lazy_regex(r"sysctl|ethtool|mtu|tx\w*qlen|txqueuelen|qlen|qdisc|--setra|/proc/sys/|/sys/|affinity|mlnx")
_ASSIGNED = lazy_regex(
    r"\bfor\s+(?P<loop>\w+)\s+in\s+(?P<values>[^;$`\n]+)|^\s*(?:export\s+|local\s+)?(?P<name>\w+)=(?P<value>[^\s;$`|&]+)"
)
_USED = lazy_regex(r"\$(?:\{(\w+)\}|(\w+))")


def written_file(path: str, value: str) -> Iterator[Pair]:
    """Yield what a value in a file of the kernel sets."""
    if path.startswith("/proc/sys/"):
        yield f"sysctl:{dotted_key(path.removeprefix('/proc/sys/'))}", value
    elif path.startswith("/sys/"):
        if path.endswith("/queue/io_timeout") and is_count(value):
            value = str(min(int(value), NO_TIMEOUT))
        if path.endswith("/device/timeout") and is_count(value):
            # In seconds; the queue has the same number in milliseconds.
            value = f"{value}000"
        forms = ((found, identity) for form, identity in _FILES if (found := re.fullmatch(form, path)))
        yield from ((found.expand(identity), value) for found, identity in itertools.islice(forms, 1))


def ethtool(words: Sequence[str], link: str | None = None) -> Iterator[Pair]:
    """Yield what ethtool(8) sets, from its words without the program; ``link`` stands for the one that they name."""
    group = _ETHTOOL.get(words[0]) if len(words) > 3 else None
    name = link or _device(words[1]) if group else ""
    for key, value in zip(words[2::2], words[3::2], strict=False) if group else ():
        for one in FEATURES.get(key, (key,)) if group == "feature" else (key.lower(),):
            yield f"link:{name}:{group}.{one}", value


def parse_commands(line: str, depth: int = 0) -> Iterator[Pair]:
    """Yield what the commands of a line set, in their order. A variable that stands for a device becomes `ANY`."""
    if depth > 2 or len(line) > _LONGEST:
        return
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return
    said = ""
    statement: list[str] = []
    for word in (*words, ";"):
        if word not in _SIGNS:
            statement.append(word)
            continue
        while statement and (statement[0] in _BEFORE or re.fullmatch(r"\w+=.*", statement[0])):
            del statement[0]
        if statement:
            program, rest = statement[0].lstrip("-@:+!").rpartition("/")[2], statement[1:]
            targets = [after for sign, after in itertools.pairwise(rest) if sign in (">", ">>")]
            if program in ("echo", "printf"):
                end = next((place for place, one in enumerate(rest) if one in (">", ">>")), len(rest))
                said = " ".join(one for one in rest[:end] if one not in ("-n", "-e", "%s", "%s\\n"))
            elif program == "tee":
                targets += [one for one in rest if not one.startswith("-")]
            for target in targets:
                yield from written_file(_place(target), said)
            if program in ("sh", "bash", "dash") and "-c" in rest[:-1]:
                yield from parse_commands(rest[rest.index("-c") + 1], depth + 1)
            elif _AFFINITY.fullmatch(program):
                yield f"irq:{ANY}:affinity", ""
            elif program in PROGRAMS:
                yield from PROGRAMS[program](rest)
        statement = []


def parse_script(text: str, known: Mapping[str, str] = {}) -> Iterator[tuple[int, Pair]]:
    """Yield what the lines of a script set, each with its number. Variables that it sets itself, those of its loops and
    ``known`` ones are filled in; any other leaves a device that cannot be known."""
    # Most scripts need no look at their lines; a variable's value stands in the text, too.
    if not OF_INTEREST.search(text):
        return
    variables: dict[str, tuple[str, ...]] = {name: (value,) for name, value in known.items()}
    left = _MOST_COMMANDS
    for number, line in enumerate(text[:_LONGEST_SCRIPT].split("\n"), 1):
        if line.lstrip().startswith("#") or len(line) > _LONGEST:
            continue
        for found in _ASSIGNED.finditer(line):
            values = found["values"].split() if found["loop"] else (found["value"].strip("\"'"),)
            variables[found["loop"] or found["name"]] = tuple(one[:_LONGEST_VALUE] for one in values[:_MOST_VALUES])
        used = {one for pair in _USED.findall(line) for one in pair if one in variables}
        looped = max(used, key=lambda name: len(variables[name]), default=None)
        for value in variables[looped] if looped else ("",):
            filled = {name: value if name == looped else variables[name][0] for name in used if variables[name]}
            whole = _USED.sub(lambda one, now=filled: now.get(one[1] or one[2], one[0]), line)  # type: ignore[misc]
            if left and OF_INTEREST.search(whole):
                left -= 1
                yield from ((number, pair) for pair in parse_commands(whole))


_PATHS: Mapping[str, str] = {
    "block": "/sys/block/{}/queue/{}",
    "md": "/sys/block/{}/md/{}",
    "thp": "/sys/kernel/mm/transparent_hugepage/{}",
    "module": "/sys/module/{}/parameters/{}",
    "cpufreq": "/sys/devices/system/cpu/cpufreq/{}/{}",
    "intel_pstate": "/sys/devices/system/cpu/intel_pstate/{}",
    "sysfs": "{}",
}
_OPTIONS = {group: option for option, group in _ETHTOOL.items() if not option.startswith("--")}
_SECRET = lazy_regex(r"sysctl:.*(secret|_key)|sysfs:/sys/kernel/config/.*")


def only_writes(text: str, kept: str = "") -> str:
    """Return a script without anything but what it sets, each line's commands in that line, with what ``kept`` has of
    it already."""
    lines = [*kept.split("\n"), *[""] * text.count("\n")][: text.count("\n") + 1]
    if found := re.match(r"#!\S*", text):
        lines[0] = found[0]
    for number, (tunable, value) in parse_script(text):
        line = lines[number - 1]
        if (tunable, value) not in set(parse_commands(line)) and not _SECRET.fullmatch(tunable):
            lines[number - 1] = "; ".join(filter(None, (line, _command(tunable, value))))
    return "\n".join(lines)


def _command(tunable: str, value: str) -> str:
    """A command that sets it."""
    kind, _, rest = tunable.replace(ANY, "$X").partition(":")
    if kind == "irq":
        return "set_irq_affinity"
    if kind == "load":
        return f"sysctl -p {rest}" if rest else "sysctl --system"
    if kind == "sysctl":
        return f"sysctl -w {shlex.quote(f'{rest}={value}')}"
    device, _, name = rest.partition(":")
    if kind != "link":
        parts = rest.split(":", 1) if _PATHS[kind].count("{}") == 2 else [rest]
        place = _PATHS[kind].format(*parts, "").rstrip("/")
        return f"echo {shlex.quote(value)} > {place}"
    group, dot, key = name.partition(".")
    if dot:
        return f"ethtool {_OPTIONS[group]} {device} {key} {shlex.quote(value)}"
    if name == "qdisc":
        return f"tc qdisc replace dev {device} root {shlex.quote(value)}"
    return f"ip link set dev {device} {name} {shlex.quote(value)}"


def _place(path: str) -> str:
    return "/".join(ANY if VARIABLE.fullmatch(part) else part for part in path.split("/"))


def _device(word: str) -> str:
    return ANY if VARIABLE.fullmatch(word) else word.removeprefix("/dev/")


def _sysctl(words: Sequence[str]) -> Iterator[Pair]:
    for place, word in enumerate(words):
        key, equals, value = word.partition("=")
        if word == "--system":
            yield "load:", ""
        elif re.fullmatch(r"-[a-z]*[pf]|--load", word):
            after = words[place + 1 : place + 2]
            yield f"load:{after[0] if after and after[0].startswith('/') else '/etc/sysctl.conf'}", ""
        elif key == "--load":
            yield f"load:{value}", ""
        elif equals and not word.startswith("-"):
            yield f"sysctl:{dotted_key(key.strip())}", value.strip()


def _ip_link(words: Sequence[str]) -> Iterator[Pair]:
    after = [word for word in words if not word.startswith("-")]
    if len(after) < 4 or not "link".startswith(after[0]) or not "set".startswith(after[1]):
        return
    after = after[3:] if after[2] == "dev" else after[2:]
    yield from link_words(after)


def link_words(words: Sequence[str], link: str | None = None) -> Iterator[Pair]:
    """Yield what ``ip link set`` and ifconfig(8) set, from the link on; ``link`` stands for the one that they name."""
    for name, value in itertools.pairwise(words):
        if name in ("mtu", "txqueuelen", "txqlen", "qlen"):
            yield f"link:{link or _device(words[0])}:{'mtu' if name == 'mtu' else 'txqueuelen'}", value


def _qdisc(words: Sequence[str]) -> Iterator[Pair]:
    if words[:1] == ["qdisc"] and words[1:2] != ["del"] and "dev" in words[:-1] and "root" in words:
        after = [word for word in words[words.index("root") + 1 :] if not word.endswith(":") and word != "handle"]
        if after:
            yield f"link:{_device(words[words.index('dev') + 1])}:qdisc", after[0]


def _read_ahead(words: Sequence[str]) -> Iterator[Pair]:
    place = words.index("--setra") if "--setra" in words else len(words)
    for device in words[place + 2 :]:
        sectors = words[place + 1]
        value = str(int(sectors) // 2) if re.fullmatch(r"[0-9]{1,9}", sectors) else sectors
        yield f"block:{_device(device)}:read_ahead_kb", value


def _open_vswitch(words: Sequence[str]) -> Iterator[Pair]:
    names = [words[place + 1] for place in range(len(words) - 1) if words[place].lower() in ("interface", "int")]
    for word in words if names else ():
        if word.startswith("mtu_request="):
            yield f"link:{_device(names[0])}:mtu", word.partition("=")[2]


PROGRAMS: Mapping[str, Callable[[Sequence[str]], Iterator[Pair]]] = {
    "sysctl": _sysctl,
    "ethtool": ethtool,
    "ip": _ip_link,
    "ifconfig": link_words,
    "tc": _qdisc,
    "blockdev": _read_ahead,
    "ovs-vsctl": _open_vswitch,
}
