"""The answers to a reader's commands in a support archive: which of its outputs stands for which command.

Every archive names an output by its command: sos and insights in the name of the file (``ip_-d_address``),
supportconfig in the heading of a section. `mangled` brings them all into the form that sos gives them; a row of `ROWS`
says in which forms a reader's command was run there. What has no row is found by the same program with the same words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import msgspec

from advisor.facts.block.smart import smartctl_as_json
from advisor.facts.redaction import without_credentials
from advisor.host import Completed, Missing, is_count, lazy_regex
from advisor.host.commands import DEADLINE_SECONDS

_PLACE = lazy_regex(r"^/(usr/|opt/\w+/|)(local/|)s?bin/")
_UNNAMED = lazy_regex(r"[^\w\-./]+")
_COPY = lazy_regex(r"\.[0-9]{1,3}$")
_REFUSED = lazy_regex(
    r"(?i)\A\W*(?:(?:ba)?sh: .*(?:not found|no such file)|timeout: failed to run|(?:error: )?command not found|"
    r".{0,80}: command not found|error - .* not found|.{0,120}permission denied|.{0,80}must be (?:run as )?root).*"
)
_MAX_WORDS = 12


def mangled(command: str) -> str:
    """The name that sos gives the output of a command (``_mangle_command`` of its plugins)."""
    return _UNNAMED.sub("_", _PLACE.sub("", command.strip())).replace("/", ".").strip(" ._-")


def _as_it_is(text: str, argv: Sequence[str]) -> str:
    return text


class Row(msgspec.Struct, frozen=True):
    """``asked`` fits a reader's command, its words joined by blanks. ``stored`` are patterns of mangled names, the best
    first; those of one text, joined by blanks, are taken together. ``{last}`` is the last word that was asked, mangled.

    ``ask`` and ``plugin`` say which command, and which of sos' plugins, give it; ``sign`` is a path that a host has on
    which this is worth asking for.
    """

    asked: str
    stored: tuple[str, ...]
    convert: Callable[[str, Sequence[str]], str] = _as_it_is
    ask: str = ""
    plugin: str = ""
    sign: str = ""


def _running_units(text: str, argv: Sequence[str]) -> str:
    """The lines of the running services in the table that ``systemctl list-units`` prints of all units."""
    lines = (line.lstrip(" \N{BLACK CIRCLE}*") for line in text.splitlines())
    return "\n".join(line for line in lines if re.match(r"\S+\.service +loaded +active +running\b", line))


def _version_of_manager(text: str, argv: Sequence[str]) -> str:
    """The version of systemd, which is a property of the manager as well."""
    found = re.search(r"^Version=(([0-9]+)\S*)$", text, re.MULTILINE)
    return f"systemd {found[2]} ({found[1]})" if found else text


def _asked_units(text: str, argv: Sequence[str]) -> str:
    """The properties of the asked units in what ``systemctl show`` prints of all."""
    asked = frozenset(argv)
    blocks = re.split(r"\n[ \t\r]*\n", text)
    return "\n\n".join(block for block in blocks if asked.intersection(re.findall(r"^Id=(\S+)$", block, re.MULTILINE)))


def _machine_of(text: str, argv: Sequence[str]) -> str:
    """The machine in what ``uname -a`` prints: the word before those that are no part of it."""
    words = re.findall(r"\b(x86_64|aarch64|ppc64le|ppc64|s390x|i[3-6]86|armv7l|riscv64|loongarch64)\b", text)
    return words[0] if words else ""


def _rules_as_json(text: str, argv: Sequence[str]) -> str:
    """What ``ip rule`` prints, as ``ip -j rule`` does: priority, source and table."""
    rules: list[dict[str, object]] = []
    for number, rest in re.findall(r"^([0-9]{1,9}):\s+(.*)$", text, re.MULTILINE):
        words = rest.split()
        pairs = dict(zip(words[::2], words[1::2], strict=False))
        source, _, length = pairs.get("from", "all").partition("/")
        rule: dict[str, object] = {"priority": int(number), "src": source, "table": pairs.get("lookup", "")}
        rules.append(rule | ({"srclen": int(length)} if is_count(length) else {}))
    return json.dumps(rules)


def _df_output(text: str, argv: Sequence[str]) -> str:
    """The tables of ``df -aT`` or ``df -a`` (blocks of 1 KiB) and ``df -i``, as `space.DF` prints them: a row for each
    file system, its kind ``-`` where no table gives it."""
    kinds = dict(re.findall(r"^\S+ on (/.*?) type (\w+) \(", text, re.MULTILINE))
    found: dict[str, dict[str, str]] = {}
    header: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["Filesystem"]:
            header = [word for word in words if word not in ("on",)]
        elif len(words) >= len(header) > 4 and words[-1].startswith("/"):
            row = dict(zip(header[:-1], words, strict=False))
            target = line.split(maxsplit=len(header) - 1)[-1]
            found.setdefault(target, {}).update(row)
    lines = []
    for target, row in found.items():
        sizes = [row.get(name, "-") for name in ("1K-blocks", "Used", "Available")]
        if all(map(is_count, sizes)):
            inodes = (row.get("Inodes", "-"), row.get("IFree", "-"))
            whole = (str(1024 * int(size)) for size in sizes)
            lines.append(" ".join((row.get("Type") or kinds.get(target, "-"), *whole, *inodes, target)))
    return "\n".join(lines)


ROWS = (
    Row(
        r"ip -d address",
        (
            r"ip_(-\w_)*-d_addr\w*(_show)?",
            r"ip_(-\w+_)*-d_link.* ip_(-\w+_)*addr\w*(_show)?",
            r"ip_(-\w+_)*link.* ip_(-\w+_)*addr\w*(_show)?",
            r"ip_addr\w*(_show)?",
        ),
        ask="ip -d address",
        plugin="networking",
        sign="/",
    ),
    Row(r"ip -j rule show", (r"ip_(-4_)?rule(_list|_show)?",), _rules_as_json),
    Row(
        r"lvs .*",
        (r"lvs_.*devices.*stripes.*", r"lvs_.*stripes.*devices.*", r"lvs_.*devices.*", r"lvs(_.*)?"),
        ask="lvs -a -o+devices,stripes,stripesize",
        plugin="lvm2",
        sign="/etc/lvm",
    ),
    Row(r"pvs .*", (r"pvs(_.*)?",)),
    Row(
        r"multipath (-v4 )?-ll",
        (r"multipath_-ll", r"multipath_-v[24]_-ll", r"multipath_(-\w+_)*-l"),
        ask="multipath -ll",
        plugin="multipath",
        sign="/etc/multipath.conf",
    ),
    Row(r"dmsetup table", (r"dmsetup_table",), ask="dmsetup table", plugin="devicemapper", sign="/"),
    Row(
        r"dmsetup status --noflush",
        (r"dmsetup_status(_--noflush)?",),
        ask="dmsetup status",
        plugin="devicemapper",
        sign="/",
    ),
    Row(r"mdadm --detail .*", (r"mdadm_(-D|--detail)_{last}", r"mdadm_(-D|--detail)_.*", r"mdadm_.*--detail.*")),
    Row(
        r"smartctl .*",
        (r"smartctl_-[ax]_{last}_-j", r"smartctl_.*-\w*[ax]\w*_{last}", r"smartctl_.*{last}", r"nvme_smart-log_{last}"),
        lambda text, argv: text if text.lstrip().startswith("{") else smartctl_as_json(text),
    ),
    Row(r"dumpe2fs -h .*", (r"dumpe2fs_(-h_)?{last}",)),
    Row(r"xfs_info .*", (r"xfs_info_{last}",)),
    Row(
        r"df .*",
        (r"df_-[^i_]*T[^i_]*(_.*)? df_-\w*i.*", r"df_-[^i_]+(_.*)? df_-\w*i.* mount(_-l)?", r"df(_-\w+.*)?"),
        _df_output,
    ),
    Row(r"systemctl list-units .*", (r"systemctl_(--[a-z-]+_)*list-units.*",), _running_units),
    Row(
        r"systemctl --version",
        (r"systemctl_--version", r"systemd_--version", r"systemctl_(--no-pager_)?show(_--all|_sort)?"),
        _version_of_manager,
    ),
    Row(r"systemctl show .*", (r"systemctl_show_service_--all", r"systemctl_show_.*service.*"), _asked_units),
    Row(r"dmidecode .*", (r"dmidecode(_.*)?",)),
    Row(r"zpool status .*", (r"zpool_status(_-\w+)*",)),
    Row(r"uname -m", (r"uname_-m", r"uname_-a"), _machine_of),
    Row(r"vxprint -ht", (r"vxprint(_-g_\w+)?_-\w*ht\w*", r"vxprint_-\w*t\w*"), ask="vxprint -ht", sign="/etc/vx"),
    Row(r"vxdisk -o alldgs list", (r"vxdisk_(-\w+_)*-o_alldgs_(-\w+_)*list", r"vxdisk_list"), sign="/etc/vx"),
    Row(r"vxdisk path", (r"vxdisk_path",)),
    Row(r"vxdmpadm getsubpaths", (r"vxdmpadm_getsubpaths(_all)?",)),
    Row(
        r"lltstat -nvv", (r"lltstat_-\w*n\w*v\w*.*", r"lltstat_-\w*v\w*n\w*.*"), ask="lltstat -nvv", sign="/etc/llttab"
    ),
)


def _program_of(name: str) -> str:
    """The program of a mangled command, or of a pattern of such."""
    return re.match(r"[\w-]*?(?=_|\(|$)|[^_(]*", _COPY.sub("", name))[0]  # type: ignore[index]


class ArchiveCommands:
    """The outputs of an archive. ``outputs`` are texts by mangled command; ``failed`` are reasons by mangled command,
    where it failed or timed out as the archive was made."""

    def __init__(self, outputs: Mapping[str, bytes], failed: Mapping[str, str]) -> None:
        self._outputs = outputs
        self.failed = failed
        self.unanswered: dict[str, Row] = {}
        """What a reader asked for and the archive does not hold, by the command to ask for."""

    @cached_property
    def _by_program(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for name in self._outputs:
            found.setdefault(_program_of(name), []).append(name)
        return found

    @cached_property
    def _by_words(self) -> dict[frozenset[str], str]:
        return {frozenset(name.split("_")): name for name in reversed(list(self._outputs))}

    def run(
        self, argv: Sequence[str], *, timeout: float = DEADLINE_SECONDS, stdin: str | None = None
    ) -> Completed | Missing:
        asked = " ".join(argv)
        row = next((row for row in ROWS if re.fullmatch(row.asked, asked)), None)
        if row is None:
            name = self._by_words.get(frozenset(mangled(asked).split("_")))
            return self._answer((name,), argv) if name else self._no_answer(argv[0], mangled(asked))
        last = re.escape(mangled(argv[-1]) if not argv[-1].startswith("/") else argv[-1].replace("/", "."))
        for patterns in row.stored:
            names = [self._find(pattern.replace("{last}", last)) for pattern in patterns.split(" ")]
            if all(names):
                return self._answer(tuple(name for name in names if name), argv, row.convert)
        if row.ask:
            self.unanswered[row.ask] = row
        return self._no_answer(argv[0], *(one.replace("{last}", last) for one in row.stored))

    def texts(self, pattern: str) -> list[str]:
        """Every output of a command whose mangled name fits."""
        names = self._by_program.get(_program_of(pattern), ())
        return [self._outputs[name].decode("utf-8", "replace") for name in names if re.fullmatch(pattern, name)]

    def named_texts(self, pattern: str) -> list[tuple[str, str]]:
        """As `texts`, each with the group of the pattern."""
        names = ((name, re.fullmatch(pattern, name)) for name in self._by_program.get(_program_of(pattern), ()))
        return [(found[1], self._outputs[name].decode("utf-8", "replace")) for name, found in names if found]

    def has_program(self, program: str) -> bool:
        """Whether there is any output in which it says something."""
        names = self._by_program.get(program, ())
        return any(self._outputs[name].strip() and not self._is_refusal(name) for name in names)

    def _find(self, pattern: str) -> str | None:
        fitting = re.compile(rf"(?:{pattern})(?:\.[0-9]{{1,3}})?")
        # Of several, the one that says most: others hold a part, or an error.
        names = (name for name in self._by_program.get(_program_of(pattern), ()) if fitting.fullmatch(name))
        return max(names, key=lambda name: (not self._is_refusal(name), len(self._outputs[name])), default=None)

    def _is_refusal(self, name: str) -> bool:
        return bool(_REFUSED.match(self._outputs[name][:400].decode("utf-8", "replace")))

    def _answer(
        self, names: tuple[str, ...], argv: Sequence[str], convert: Callable[[str, Sequence[str]], str] = _as_it_is
    ) -> Completed | Missing:
        texts = [without_credentials(self._outputs[name]).decode("utf-8", "replace") for name in names]
        for name, text in zip(names, texts, strict=True):
            if name in self.failed:
                return Missing("unreadable", self.failed[name])
            if self._is_refusal(name):
                return Missing("unreadable", f"in the archive: {' '.join(text.split())[:160]}")
        return Completed(0, convert("\n".join(texts), argv), "")

    def _no_answer(self, program: str, *patterns: str) -> Missing:
        for pattern in patterns:
            why = next((why for name, why in self.failed.items() if re.fullmatch(pattern.split(" ")[0], name)), None)
            if why:
                return Missing("unreadable", why)
        return Missing("absent", f"the archive holds no output of {program}")
