"""The forms in which a text gives settings, a row each, and a text as settings by its lines."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from textwrap import dedent

import msgspec

from advisor.errors import AdvisorError
from advisor.facts.host_facts import Facts
from advisor.facts.settings import find_setting
from advisor.facts.settings.sysctl import dotted_key
from advisor.facts.settings.value import value_of
from advisor.host import Host, PutFile
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.host.would_be import after_steps
from advisor.importers.pasted.shell import (
    KEY,
    PROGRAMS,
    VARIABLE,
    Found,
    Outcome,
    ethtool,
    file_setting,
    fill_in,
    json_words,
    kernel_words,
    module_options,
    mount_options,
    read_command,
    sysctl,
)
from advisor.importers.records import LACKS_KEY, Imported, ImportedSetting, shorten_text
from advisor.importers.saptune import import_saptune
from advisor.importers.source import Line, kind_of_text, read_lines, walk_block, without_prompt
from advisor.importers.to_profile import imported_targets
from advisor.profiles.profile import FieldSense

MAX_SETTINGS = 4000
"""Of one text; a longer list is no advice."""


class PastedSetting(msgspec.Struct, frozen=True):
    """A setting by its line.

    ``tunable`` is as the text names it, with ``*`` for a device that the reader fills in; None for a kind of setting
    that no tunable has. ``wanted`` is None where the text holds a variable. ``outcome``: a program that the text is for
    takes the value, refuses it, has no use for it on this host, or breaks something with it; ``note`` then says why.
    ``is_container``: it is for a container alone. ``rotational``: it is for disks alone that rotate, or do not.
    """

    file: str
    line: int
    text: str
    tunable: str | None
    wanted: str | None
    note: str = ""
    outcome: Outcome = "taken"
    is_container: bool = False
    sense: FieldSense | tuple[FieldSense, ...] = "exactly"
    rotational: bool | None = None


class PassedOver(msgspec.Struct, frozen=True):
    """A line that looks like a setting and is read as none."""

    file: str
    line: int
    text: str


class Pasted(msgspec.Struct, frozen=True):
    """The settings of a text in its order, how many of its lines are none, and which of these look like a setting."""

    settings: tuple[PastedSetting, ...]
    passed_over: int
    alike: tuple[PassedOver, ...] = ()


class _Text(msgspec.Struct):
    """What forms know of the text around a line."""

    lines: list[Line]
    name: str
    variables: Mapping[str, Sequence[str]]
    is_script: bool
    nr_open: int = -1
    container_indent: int | None = None
    has_containers: bool = False


def read_pasted(text: str, name: str, host: Host, facts: Facts) -> Pasted:
    """Return the settings of a text; ``host`` is where TuneD's and saptune's profiles, and what they include, apply."""
    lines = read_lines(text)
    taken: dict[int, list[PastedSetting]] = {}
    for begin, end in _profile_regions(lines):
        found = _read_profile(text, (lines[begin].number, lines[end - 1].number), name, host, facts)
        for line in lines[begin:end] if found is not None else ():
            taken.setdefault(line.number, [])
        for one in found or ():
            taken.setdefault(one.line, []).append(one)
    about = _Text(
        lines,
        os.path.basename(name),
        _find_variables(lines),
        nr_open=max(
            value_of("fs.nr_open", value).first
            for value in (facts.sysctl.get("fs.nr_open", ""), *re.findall(r"fs[./]nr_open\D{1,12}([0-9]{1,12})", text))
        ),
        is_script=text.startswith("#!") or name.endswith((".sh", ".conf", ".rules", ".yml", ".yaml", ".service")),
        has_containers=any(re.match(r"(?:image|services|apiVersion|containers)\s*:", line.text) for line in lines),
    )
    settings: list[PastedSetting] = []
    alike: list[PassedOver] = []
    passed_over = 0
    for place, line in enumerate(lines):
        if line.number in taken:
            own = taken[line.number]
            taken[line.number] = []
        else:
            own = [_make_setting(one, line, name) for one in _read_line(about, place)]
            if not own and _is_alike(line.text):
                alike.append(PassedOver(name, line.number, shorten_text(line.text, 200)))
        passed_over += not own
        settings += own[: MAX_SETTINGS - len(settings)]
    return Pasted(tuple(settings), passed_over, tuple(alike))


_COMMENT = ("#", ";", "//", "--", "<!--")


def _is_alike(text: str) -> bool:
    """Whether a line looks like a setting: a key with a record and a number behind it, or ``=`` behind a dotted
    name."""
    if text.startswith(_COMMENT):
        return False
    ends = ((one[0], text[one.end() :]) for one in re.finditer(KEY, text))
    is_valued = any(find_setting(dotted_key(key)) and re.search(r"[=0-9]", rest) for key, rest in ends)
    return is_valued or bool(_DOTTED.search(text))


def _make_setting(one: Found, line: Line, name: str) -> PastedSetting:
    value = one.value
    note = one.note
    # N is no for a parameter of a module.
    is_word = value == "N" and re.match(r"module:|cmdline:\w[\w-]*\.", one.tunable or "")
    if value is not None and not is_word and VARIABLE.search(value):
        note, value = f"{shorten_text(value, 60)} is a variable of the text", None
    return PastedSetting(
        *(name, line.number, shorten_text(line.text, 200), one.tunable, value, note),
        is_container=one.is_container,
        sense=one.sense,
        rotational=one.rotational,
        outcome=one.outcome,
    )


def _read_line(about: _Text, place: int) -> list[Found]:
    line = about.lines[place]
    if about.container_indent is not None and line.indent <= about.container_indent and not line.is_item:
        about.container_indent = None
    if about.has_containers and re.fullmatch(r"sysctls\s*:", line.text):
        above = next((one.text for one in reversed(about.lines[:place]) if one.indent < line.indent), "")
        # linuxNodeConfig and its like are for the host.
        about.container_indent = None if re.search("(?i)node|kubelet|host|machine", above) else line.indent
    found: list[Found] = []
    for form in FORMS:
        found = list(form(about, place))
        if found:
            break
    else:
        # Code within a sentence or a table of Markdown, each of it a line of its own.
        for part in line.text.split("`")[1::2] if line.text.count("`") > 1 else ():
            alone = msgspec.structs.replace(about, lines=[Line(line.number, part.strip())])
            found += _read_line(alone, 0)
        found = found or list(_stated(about, place))
    is_container = about.container_indent is not None
    return [one._replace(is_container=True) for one in found] if is_container else found


def _find_variables(lines: Iterable[Line]) -> Mapping[str, Sequence[str]]:
    """Variables of shell scripts and roles that have a plain value; of several the first."""
    found: dict[str, Sequence[str]] = {}
    for line in lines:
        one = re.fullmatch(
            r"(?:export\s+)?([A-Za-z_]\w{0,60})\s*[:=]\s*[\"']?([\w./:,-]{1,80})[\"']?\s*(?:#.*)?", line.text
        )
        if one and one[1] not in found:
            found[one[1]] = (one[2],)
    return found


_PAIR = lazy_regex(rf"[-\"'\[]{{0,2}}(?:/proc/sys/)?({KEY})[\"']?\]?\s*(=>|:=|=|:)(?!=)\s*(.*)")
_ROW = lazy_regex(rf"\|?\s*({KEY})\s*(?:\|\s*|\s)([0-9-][0-9 \t]*?)\s*(?:\|.*|\(.*)?")
_QUOTED = lazy_regex(r"\"([^\"]*)\"|'([^']*)'")


_DOTTED = lazy_regex(r"(?<![\w./-])[A-Za-z]\w*(?:\.[A-Za-z_][\w-]*)+\s*=(?![=~])\s*\S")
_NEXT = lazy_regex(rf"[\s,;]{KEY}\s*=")
_STATED = lazy_regex(
    rf"(?<![\w./-])(?:/proc/sys/)?({KEY})[\"'`]?"
    r"(?:\s*=(?!=)\s*(?=[0-9\"'${-])|=(?=\w)|\s*:\s*(?=[0-9\"'])|\s+(?:from\s+\S+\s+)?to\s+(?=[0-9\"']))"
    r"(?:\"([^\"]*)\"|'([^']*)'|((?:-?[0-9]+[ \t]+){1,5}-?[0-9]+(?![\w.])|-?\w+(?:[.:,/-]\w+)*"
    r"|\$\{?\w+\}?|\{\{[^{}]{1,80}\}\}))"
)
_DENIED = lazy_regex(r"(?i)(?:\b(?:not|never|avoid|without|instead of|defaults? (?:is|of))\b|n['’]t\b)[^.,;:!?]{0,40}$")


def _stated(about: _Text, place: int) -> Iterator[Found]:
    """``KEY=VALUE`` within a sentence, a list with commas or an argument of another program; not where the sentence
    says not to set it."""
    line = about.lines[place]
    if line.text.startswith(_COMMENT):
        return
    for one in _STATED.finditer(line.text):
        if not _DENIED.search(line.text[max(0, one.start() - 80) : one.start()]):
            value = next((text for text in one.groups()[1:] if text is not None), "")
            found = sysctl(one[1], fill_in(value, {name: words[0] for name, words in about.variables.items() if words}))
            yield _without_line(found, (line.text, *(other.text for other in _beside(about, place))))


def _beside(about: _Text, place: int) -> Iterable[Line]:
    """The lines of one mapping with a line that is a member of it."""
    is_member = re.match(r"[\w-]+\s*:\s", about.lines[place].text)
    return walk_block(about.lines, place) if is_member else ()


_ABSENT = lazy_regex(r"(?:.*[\s{,])?[\"']?(?:state|ensure)[\"']?\s*(?:=>|[:=])\s*[\"']?absent\b.*")


def _without_line(found: Found, texts: Iterable[str]) -> Found:
    """The setting, or a key without a value where the text takes a line out of a file."""
    if not any(map(_ABSENT.fullmatch, texts)):
        return found
    return found._replace(value=None, note="absent: it takes the line out of a file and sets no value")


def _sysctl_line(about: _Text, place: int) -> Iterator[Found]:
    """``KEY = VALUE`` of sysctl.conf, and ``KEY: VALUE`` of YAML, JSON and other configuration languages."""
    text = about.lines[place].text
    boot = text.removeprefix("boot.kernel.sysctl.")
    found = _PAIR.fullmatch(boot)
    if found:
        key, sign, rest = found.groups()
        is_file = sign == "=" and text == boot and not boot.startswith(('"', "'", "["))
        value = rest if is_file else _plain_value(rest)
        value = fill_in(value, {name: words[0] for name, words in about.variables.items() if words})
        is_list = _NEXT.search(re.split(r"\s#", rest)[0]) is not None
        if (value or is_file) and not is_list and not _is_prose(value):
            yield sysctl(key, value)
    elif row := _ROW.fullmatch(text):
        yield sysctl(row[1], row[2])


def _plain_value(rest: str) -> str:
    """A value as a configuration language has it: without quotes, commas and a comment behind it."""
    bare = re.split(r"\s#", rest.strip())[0].rstrip(",;} ")
    bare = re.sub(r"^(?:lib\.mk\w+|mk\w+)\s+", "", bare)
    found = _QUOTED.match(bare)
    return (found[1] or found[2] or "") if found else re.sub(r"\s*\(.*\)$", "", bare)


def _is_prose(value: str) -> bool:
    words = re.split(r"\s#", value)[0].split()
    return len(value) > 200 or sum(bool(re.fullmatch(r"[A-Za-z][a-z'’]+[.,;:]?", word)) for word in words) > 1


_NAMED = lazy_regex(rf"(?:.*[\s{{])?[\"']?(?:name|key|param)[\"']?\s*[:=]\s*[\"']?({KEY})[\"']?(?:[\s,}}].*)?")
_VALUE = lazy_regex(
    r"(?:.*[\s{,])?[\"']?val(?:ue)?[\"']?\s*(?:=>|[:=])\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s,}\"'][^,}\"']*))(?:[\s,}].*)?"
)


def _named_value(about: _Text, place: int) -> Iterator[Found]:
    """``name: KEY`` and ``value: VALUE`` in one line or in lines of one mapping: Ansible, Kubernetes, Salt, Puppet."""
    line = about.lines[place]
    named = _NAMED.fullmatch(line.text) or re.fullmatch(
        rf"(?:sysctl\s*\{{\s*)?[\"']?({KEY})[\"']?\s*:(?:\s*value\s*=>.*)?", line.text
    )
    if named is None:
        return
    others = [line, *walk_block(about.lines, place)]
    if line.text.endswith(":"):
        # A mapping of its own below the key: Salt, Puppet.
        others = [line, *about.lines[place + 1 : place + 5]]
    for other in others:
        value = _VALUE.fullmatch(other.text)
        if value:
            text = next(filter(None, value.groups()), "")
            known = {name: words[0] for name, words in about.variables.items() if words}
            # name=KEY value=V state=present: only quotes keep blanks together there.
            bare = value[3] and re.split(r"\s(?=\w+=)|\s#", value[3])[0]
            found = sysctl(named[1], fill_in(bare or text, known).strip())
            yield _without_line(found, (other.text for other in others))
            return
    if any(_ABSENT.fullmatch(other.text) for other in others):
        yield _without_line(sysctl(named[1], ""), (other.text for other in others))


def _boot_line(about: _Text, place: int) -> Iterator[Found]:
    text = about.lines[place].text
    found = re.match(
        r"(?:GRUB_CMDLINE_LINUX\w*|kernel_?(?:args|cmdline|params)|cmdline)[\"']?\s*(?:\+?=|:)\s*(.+)", text
    )
    if found is None:
        found = re.match(r"(?:linux\w*|kernel|append|options)\s+((?:\S*vmlinuz|root=|\$kernelopts|ro\s).*)", text)
    if found:
        yield from kernel_words(re.sub(r"\$\{?\w+\}?|[\"']", " ", found[1]))


def _udev_rule(about: _Text, at: int) -> Iterator[Found]:
    text = about.lines[at].text
    writes = re.findall(r'(ATTR|SYSCTL|RUN|RUN\{program\})(?:\{([^}"]{1,100})\})?\s*\+?=\s*"([^"]*)"', text)
    if "==" not in text or not writes or "=" not in re.sub("==|!=", "", text):
        return
    names = re.search(r'KERNEL\s*==\s*"([^"]{1,80})"', text)
    device = names[1] if names else "*"
    subsystem = re.search(r'SUBSYSTEMS?\s*==\s*"(\w+)"', text)
    place = f"class/{subsystem[1]}" if subsystem and subsystem[1] not in ("block", "scsi", "nvme") else "block"
    turns = re.search(r'ATTR\{queue/rotational\}\s*==\s*"([01])"', text)
    others = re.findall(
        r'(?:ATTRS?|ENV|DRIVERS?|TEST|RESULT)(?:\{[^}"]{1,80}\})?\s*[!=]=\s*"[^"]*"|PROGRAM\s*=+\s*"[^"]*"', text
    )
    note = f"for those with {', '.join(others)}" if others else ""
    for kind, name, value in writes:
        if kind == "SYSCTL":
            yield sysctl(name, value)
        elif kind.startswith("RUN"):
            yield from (one._replace(note=note) for one in read_command(value.replace("%k", "*"), about.variables))
        elif name:
            for pattern in device.split("|"):
                for one in file_setting(f"/sys/{place}/{pattern}/{name}", value):
                    yield one._replace(note=note, rotational=None if turns is None else turns[1] == "1")


_LIMITS: Mapping[str, tuple[int, str]] = {
    "nofile": (256, "programs of the session cannot open one more file"),
    "nproc": (32, "no program can be started, and logins fail"),
    "memlock": (64, "RDMA, io_uring and programs that lock keys or memory fail; its unit is KiB"),
    "as": (16 << 20, "programs that reserve much address space (Java, Go, databases) end; its unit is KiB"),
    "data": (4 << 20, "programs cannot take more memory; its unit is KiB"),
    "stack": (1024, "programs end when their stack grows; its unit is KiB"),
    "fsize": (1 << 20, "larger files are cut and their writers end; its unit is KiB"),
    "cpu": (60, "each process ends after so many minutes of CPU time"),
    "maxlogins": (2, "a second login of the user is refused, by scp and by monitoring too"),
    "maxsyslogins": (2, "a second login of anybody is refused"),
}
"""Items of limits.conf(5) with the least number that does no harm, and the harm below it."""


def _session_limit(about: _Text, place: int) -> Iterator[Found]:
    found = re.fullmatch(
        r"(?:.*\becho\s+[\"'])?([*%@]?[\w.:-]*)\s+(soft|hard|-)\s+([a-z]{2,12})\s+([^\s\"']{1,30})"
        r"(?:\s+#.*|[\"'].*\blimits\b.*)?",
        about.lines[place].text,
    )
    if found is None:
        return
    item, value = found[3], found[4]
    is_all = value in ("unlimited", "infinity", "-1")
    least, harm = _LIMITS.get(item, (0, ""))
    outcome: Outcome = "taken"
    note = f"limits.conf: {item} of login sessions; a service has LimitX= of its own unit"
    if item == "rss":
        note, outcome = "limits.conf: Linux does not keep to a limit of resident memory", "ignored"
    elif item == "nofile" and about.nr_open > 0 and (is_all or (is_count(value) and int(value) > about.nr_open)):
        asks = "pam_limits before 1.5.2 asks for more than" if is_all else f"{value} is above"
        note, outcome = f"every such login is refused: {asks} fs.nr_open, which is {about.nr_open}", "harmful"
    elif is_count(value) and int(value) < least:
        note, outcome = f"limits.conf: {harm}", "harmful"
    yield Found(None, value, note, outcome=outcome)


def _unit_directive(about: _Text, place: int) -> Iterator[Found]:
    found = re.fullmatch(
        r"(Limit[A-Z]{2,12}|DefaultLimit[A-Z]{2,12}|TasksMax|CPUAffinity)\s*=\s*(\S.{0,80})", about.lines[place].text
    )
    if found:
        unit = about.name if re.fullmatch(r"[\w@.-]+\.service", about.name) else None
        note = "" if unit else "the text does not name the unit: advisor apply unit:NAME.service:" + found[1]
        yield Found(f"unit:{unit}:{found[1]}" if unit else None, found[2].strip(), note)


def _file_line(about: _Text, place: int) -> Iterator[Found]:
    """``w`` lines of tmpfiles.d, and lines of sysfs.conf."""
    text = about.lines[place].text
    if made := re.fullmatch(r"[wf][+!-]{0,2}\s+(/\S+)\s+\S+\s+\S+\s+\S+\s+\S+\s+(.+)", text):
        yield from file_setting(made[1], made[2])
    elif found := re.fullmatch(
        r"((?:/sys/)?(?:block|devices|kernel|class|module|bus)/[\w*./:-]{3,200})\s*[=:]\s*(\S.{0,60})", text
    ):
        yield from file_setting(f"/sys/{found[1].removeprefix('/sys/')}", _plain_value(found[2]))


def _mount_line(about: _Text, place: int) -> Iterator[Found]:
    """A line of fstab(5) with options."""
    found = re.fullmatch(
        r"(?:/dev/|LABEL=|UUID=|PARTUUID=|[\w.-]+:/)\S*\s+/\S*\s+\w[\w.-]*\s+(\S+)(?:\s+[0-9]\s+[0-9])?\s*(?:#.*)?",
        about.lines[place].text,
    )
    if found and found[1] != "defaults":
        yield mount_options(found[1])


def _ethtool_options(about: _Text, place: int) -> Iterator[Found]:
    found = re.match(r"ETHTOOL_OPT(?:ION)?S\w*\s*=\s*[\"']?(.{1,400}?)[\"']?$", about.lines[place].text)
    for part in found[1].split(";") if found else ():
        yield from ethtool(part.split())


def _module_line(about: _Text, place: int) -> Iterator[Found]:
    found = re.fullmatch(r"options\s+([\w-]{2,40}(?:\s+\w+=\S+)+)\s*(?:#.*)?", about.lines[place].text)
    if found:
        yield from module_options(found[1].split())


_WRAPPED = lazy_regex(
    r"(?:Exec\w{4,12}=[-+@!:]*|RUN\s+|CMD\s+|ENTRYPOINT\s+|(?:post-|pre-)?up\s+|@reboot\s+(?:root\s+)?"
    r"|(?:[\w.]*\.)?(?:command|shell|cmd|run|raw|args|script|exec|entrypoint)\s*(?::|=>|=)\s*"
    r"|[A-Za-z][\w ,()-]{0,80}:\s+)(?=\S)"
)
_PROGRAM = lazy_regex(rf"\b(?:{'|'.join(map(re.escape, PROGRAMS))}|echo|printf)\s")


def _command(about: _Text, place: int) -> Iterator[Found]:
    """Commands of a shell, whatever they are wrapped in; behind a ``#`` where that may be the prompt of root."""
    text = about.lines[place].text
    if text.startswith("#"):
        if about.is_script:
            return
        text = text.lstrip("# ")
    elif not _PROGRAM.search(text) and '["' not in text:
        return
    wrapped = _WRAPPED.match(text)
    bare = without_prompt(text[wrapped.end() :] if wrapped else text)
    words = json_words(bare)
    if wrapped and words is None and (quoted := _QUOTED.fullmatch(bare)):
        bare = quoted[1] or quoted[2] or ""
    if words is not None:
        bare = " ".join(words) if "-c" not in words else words[-1]
    yield from read_command(bare, about.variables)


FORMS: tuple[Callable[[_Text, int], Iterator[Found]], ...] = (
    _named_value,
    _sysctl_line,
    _udev_rule,
    _boot_line,
    _module_line,
    _session_limit,
    _unit_directive,
    _ethtool_options,
    _file_line,
    _mount_line,
    _command,
)
"""What reads a line, in this order; the first that finds a setting counts. A new form is one row."""


_PASTED = "/advisor-judge/pasted/"
"""Where a profile of a text lies for the readers of profiles; no file of a host does."""
_HEADS = frozenset(
    {
        *("main", "sysctl", "vm", "cpu", "disk", "net", "sysfs", "bootloader", "scheduler", "modules", "service"),
        *("version", "block", "grub", "limits", "login", "mem", "pagecache", "sys", "rpm", "variables", "script"),
    }
)
_SETS = frozenset({"sysctl", "vm", "cpu", "disk", "net", "sysfs", "bootloader", "scheduler", "block", "grub"})


def _profile_regions(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Where a profile of TuneD or saptune stands in the text: from its first section to the end of its block."""
    begin, names = None, set[str]()
    for place, line in enumerate((*lines, Line(0, "```"))):
        head = re.fullmatch(r"\[([\w.-]+)(?::[^\]]*)?\]", line.text)
        if head and (begin is not None or head[1] in _HEADS):
            begin = place if begin is None else begin
            names.add(head[1])
        elif begin is not None and (line.indent < lines[begin].indent or not re.match(r"[#;\[\w/.*-]", line.text)):
            if names & _SETS:
                yield begin, place
            begin, names = None, set()


def _read_profile(
    text: str, region: tuple[int, int], name: str, host: Host, facts: Facts
) -> list[PastedSetting] | None:
    """The settings of a profile by their lines; None where the programs' own readers take it for none."""
    first, last = region
    rows = text.split("\n")
    # It may stand in a block of YAML.
    own = "\n" * (first - 1) + dedent("\n".join(rows[first - 1 : last])) + "\n"
    place = f"{_PASTED}tuned.conf"
    try:
        made = _import_profile(own, host, place)
    except AdvisorError:
        # What it includes is not here: its own lines are.
        try:
            made = _import_profile(re.sub(r"(?m)^\s*include\s*=.*", "", own), host, place)
        except AdvisorError:
            return None
    return [
        found
        for one in made.settings
        if not (one.sets_nothing or one.section.partition(":")[0] in _TALK)
        for found in _from_import(one, made, name if one.file == place else one.file, host, facts)
    ]


def _import_profile(own: str, host: Host, place: str) -> Imported:
    from advisor.importers.tuned.convert import import_tuned

    files = after_steps(host, [PutFile(place, own.encode())])
    read = import_saptune if kind_of_text(own) == "saptune" else import_tuned
    return read("pasted", host, "intent", files=files, path=place)


_TALK = ("rpm", "reminder", "version", "")
"""Sections of saptune's notes that set nothing."""


def import_profile(name: str, line: PastedSetting, host: Host, facts: Facts) -> Sequence[PastedSetting]:
    """Return what an installed profile of TuneD sets, at the line that chooses it; none where the host has none."""
    from advisor.importers.tuned.convert import import_tuned

    try:
        made = import_tuned(name, host, "intent")
    except AdvisorError:
        return ()
    found = (setting for one in made.settings if one.tunable for setting in _from_import(one, made, "", host, facts))
    return [msgspec.structs.replace(one, file=line.file, line=line.line, text=line.text) for one in found]


def _from_import(one: ImportedSetting, made: Imported, name: str, host: Host, facts: Facts) -> Iterator[PastedSetting]:
    base = PastedSetting(
        name,
        one.line,
        shorten_text(one.quoted.replace(_PASTED, ""), 200),
        one.tunable,
        one.value,
        # A capture holds some keys of its host, not all.
        one.note if host.is_live or one.note != LACKS_KEY else "",
        sense=one.sense,
    )
    if one.tunable is None:
        # A variable that whoever includes the profile defines is no value that is refused.
        is_refused = one.departs == "refused" and "${" not in one.raw
        outcome = "refused" if is_refused else "ignored" if one.outcome == "ignored" else "taken"
        yield msgspec.structs.replace(base, wanted=None, note=one.why.replace(_PASTED, ""), outcome=outcome)
    elif one.for_each is None:
        yield base
    else:
        alone = msgspec.structs.replace(made, settings=(one,))
        for target in imported_targets(alone, host, facts)[0]:
            yield msgspec.structs.replace(base, tunable=target.tunable, wanted=target.value)
