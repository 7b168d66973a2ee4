"""``file:PATH:KEY`` — a key of a product's own configuration file; comments and all other lines stay.

Known are BeeGFS (/etc/beegfs, ``tune…``, ``conn…`` and ``sys…`` keys), multipath.conf and files of its conf.d
(``defaults/path_selector``; a subsection such as ``devices/device/…`` where there is one of it, of several
``devices/device[VENDOR,PRODUCT]/…`` and ``multipaths/multipath[WWID]/…``), iscsid.conf and the node records of
open-iscsi in /etc/iscsi/nodes and /var/lib/iscsi/nodes (``node.session…``, ``node.conn[0]…``), LLT's llttab
(set-bcasthb, set-arp, set-strictsrc, and ``link.TAG.mtu``: the MTU field of a link line) and InterSystems' iris.cpf
(``config/globals``). The file must be there. ``(unset)`` stands for a key that it does not give, so that the program's
own default holds. Keys that name programs, files or secrets cannot be set.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

import msgspec

from advisor.host import Host, Missing, Probe, ReadFile, RunCommand
from advisor.host.config_text import UNSET, Layout, key_value, multipath_layout
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit
from advisor.tunables.kind import Effect, Kind, Risk, StoredValue, UnknownIdError
from advisor.tunables.preflight import Preflight

_VALUE = lazy_regex(r"[A-Za-z0-9_.,:+*-]+( [A-Za-z0-9_.,:+*-]+)*")
_LINK_MTU = lazy_regex(r"link\.([\w.-]{1,60})\.mtu", re.ASCII)
# TARGET/ADDRESS,PORT,TPGT/INTERFACE; a name that begins with a dot is none of open-iscsi's.
_RECORD_NAME = r"(?!\.)[\w.:,%\[\]-]{1,255}"

_MULTIPATH_KEYS = (
    r"path_selector|path_grouping_policy|path_checker|prio|prio_args|failback|no_path_retry|features|hardware_handler"
    r"|rr_min_io(_rq)?|rr_weight|fast_io_fail_tmo|dev_loss_tmo|eh_deadline|polling_interval|max_polling_interval"
    r"|checker_timeout|max_sectors_kb|max_fds|detect_\w+|retain_attached_hw_handler|deferred_remove|flush_on_last_del"
    r"|(san_path_err|marginal_path|delay)_\w+|ghost_delay|skip_kpartx|queue_without_daemon|user_friendly_names"
)

# Which of several sections: VENDOR,PRODUCT or a WWID, in signs that neither awk nor a tunable's id takes for its own.
_MEANT = r"\[[\w.,*+^$()|? -]{1,100}\]"


class Dialect(msgspec.Struct, frozen=True):
    """A kind of configuration file: where such files lie, which of their keys may be set, and how their lines look."""

    product: str
    path: re.Pattern[str]
    key: re.Pattern[str]
    probe: Literal["conf", "multipath", "directive", "llttab-mtu", "cpf"]
    edit: Literal["conf", "multipath", "llttab-directive", "llttab-mtu", "cpf"]
    risk: Risk
    notes: Callable[[Host, str, str], tuple[str, ...]] = lambda *_: ()


def _drop_ins(host: Host, place: str, _: str) -> tuple[str, ...]:
    """Files of conf.d are read after multipath.conf, and what they say about the same key holds."""
    directory = "/etc/multipath/conf.d"
    said = []
    for name in host.names(directory):
        layout = multipath_layout(host.read_or_empty(f"{directory}/{name}").split("\n"))
        if isinstance(layout, Layout) and layout.at(place):
            said.append(f"{directory}/{name} gives {place} too; it is read after multipath.conf")
    return tuple(said)


def _restart_llt(*_: object) -> tuple[str, ...]:
    return (
        "manual step: restart LLT, which reads /etc/llttab when it starts, on one node at a time (VCS, fencing and GAB "
        "stop with it); make the same change on every node",
    )


def _at_start(*_: object) -> tuple[str, ...]:
    return (
        "IRIS reads its cpf when it starts (iris restart INSTANCE), and rewrites it when settings are changed in "
        "its Management Portal",
    )


RECORDS = "a node record of open-iscsi"

DIALECTS = (
    Dialect(
        "BeeGFS",
        lazy_regex(r"/etc/beegfs/([\w-]+\.d/)?beegfs-[\w-]+\.conf", re.ASCII),
        lazy_regex(r"(tune|conn(?!Auth|DisableAuth)|sys(?!Mgmtd))[A-Z]\w{0,60}(?<!File)", re.ASCII),
        "conf",
        "conf",
        "restart",
    ),
    Dialect(
        "multipath",
        lazy_regex(r"/etc/multipath(\.conf|/conf\.d/[\w.-]+\.conf)", re.ASCII),
        lazy_regex(
            rf"(defaults|overrides|(devices/device|multipaths/multipath)(?:{_MEANT})?)/({_MULTIPATH_KEYS})", re.ASCII
        ),
        "multipath",
        "multipath",
        "none",
        _drop_ins,
    ),
    Dialect(
        "open-iscsi",
        lazy_regex(r"/etc/iscsi/iscsid\.conf"),
        lazy_regex(r"node\.(session|conn\[0\])\.(?!auth)[A-Za-z][\w.]{0,80}", re.ASCII),
        "conf",
        "conf",
        "none",
    ),
    Dialect(
        RECORDS,
        lazy_regex(rf"/(etc|var/lib)/iscsi/nodes/{_RECORD_NAME}/{_RECORD_NAME}(/{_RECORD_NAME})?", re.ASCII),
        lazy_regex(r"node\.(session|conn\[0\])\.(?!auth)[A-Za-z][\w.]{0,80}", re.ASCII),
        "conf",
        "conf",
        "none",
    ),
    Dialect(
        "LLT",
        lazy_regex(r"/etc/llttab"),
        lazy_regex(r"set-(bcasthb|arp|strictsrc)"),
        "directive",
        "llttab-directive",
        "restart",
        _restart_llt,
    ),
    Dialect("LLT", lazy_regex(r"/etc/llttab"), _LINK_MTU, "llttab-mtu", "llttab-mtu", "restart", _restart_llt),
    Dialect(
        "InterSystems",
        lazy_regex(r"(/(?!\.\.?/)[\w.-]+){1,20}/iris\.cpf", re.ASCII),
        lazy_regex(r"config/(?!LibPath|Console)[A-Za-z]\w{0,60}", re.ASCII),
        "cpf",
        "cpf",
        "restart",
        _at_start,
    ),
)


class FileKey(StoredValue, frozen=True):
    path: str
    key: str

    id_form = "file:{self.path}:{self.key}"

    @classmethod
    def parse(cls, rest: str) -> FileKey:
        path, _, key = rest.rpartition(":")
        known = [one for one in DIALECTS if one.path.fullmatch(path)]
        if not known:
            files = (
                "/etc/beegfs/beegfs-*.conf, /etc/multipath.conf, /etc/iscsi/iscsid.conf, "
                "/etc/iscsi/nodes/TARGET/PORTAL/INTERFACE, /etc/llttab, …/iris.cpf"
            )
            raise UnknownIdError(rest, kind="file", hint=f"write file:PATH:KEY with one of {files}")
        if not any(one.key.fullmatch(key) for one in known):
            hint = f"{key[:80]!r} is no key of {known[0].product} that is set here"
            raise UnknownIdError(rest, kind="file", hint=hint)
        return cls(path, key)

    @property
    def dialect(self) -> Dialect:
        """What kind of file it is."""
        return next(one for one in DIALECTS if one.path.fullmatch(self.path) and one.key.fullmatch(self.key))

    @property
    def risk(self) -> Risk:
        return self.dialect.risk

    @property
    def takes_effect(self) -> Effect:
        # A record is read at each login; the session that is there keeps what it has.
        return "new-sockets" if self.dialect.product == RECORDS else "service-restart"

    @property
    def restart_command(self) -> RunCommand | None:
        """What makes the program read its file again; None where that is more than one command."""
        if self.dialect.product == "multipath":
            return RunCommand(("multipathd", "reconfigure"))
        found = re.fullmatch(r"/etc/beegfs/(?:([\w-]+)\.d/)?(beegfs-[\w-]+)\.conf", self.path)
        if not found:
            return None
        return RunCommand(
            ("systemctl", "restart", f"{found[2]}@{found[1]}.service" if found[1] else f"{found[2]}.service")
        )

    @property
    def probe(self) -> Probe:
        return ReadFile(self.path, f"{self.dialect.probe}:{self._name}")

    @property
    def _name(self) -> str:
        """The word by which the file knows the key: the tag of a link line."""
        tag = _LINK_MTU.fullmatch(self.key) if self.dialect.edit == "llttab-mtu" else None
        return tag[1] if tag else self.key

    def check_value(self, value: str) -> str | None:
        if self.dialect.edit == "llttab-directive":
            return None if value in ("0", "1") else "is not 0 or 1"
        if self.dialect.edit == "llttab-mtu":
            is_size = re.fullmatch("[0-9]{3,5}", value, re.ASCII) and 512 <= int(value) <= 65535
            return None if is_size or value == "-" else "is neither - (LLT's default) nor an MTU of 512 to 65535 bytes"
        if _VALUE.fullmatch(value) and len(value) <= 400:
            return None
        return "holds signs that are set here in no configuration file: letters, digits, blanks and _.,:+*- are"

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return FileEdit(self.path, self.dialect.edit, self._name, value)

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        text = host.read(self.path)
        refusal = None if isinstance(text, Missing) else _explain_no_place(self.dialect, text, self.key)
        is_drop_in = "/conf.d/" in self.path
        return Preflight(refusal=refusal, notes=() if is_drop_in else self.dialect.notes(host, self.key, after))


def _spelt_otherwise(text: str, section: str, name: str) -> str | None:
    """The key as a line of the section has it that differs in capital letters alone."""
    is_inside = False
    for line in text.split("\n"):
        key, equals, _ = line.strip().partition("=")
        if key.startswith("["):
            is_inside = line.strip() == f"[{section}]"
        elif is_inside and equals and key.rstrip() != name and key.rstrip().lower() == name.lower():
            return key.rstrip()
    return None


def _explain_no_place(dialect: Dialect, text: str, key: str) -> str | None:
    """Why the file has no place for a key that it does not give yet."""
    section, _, name = key.rpartition("/")
    if dialect.product == RECORDS and key_value(text, key) == UNSET:
        return "the record has no such key: the open-iscsi that made it does not know it"
    if dialect.edit == "cpf" and not any(line.strip() == f"[{section}]" for line in text.split("\n")):
        return f"the file has no section [{section}]"
    if dialect.edit == "cpf" and (other := _spelt_otherwise(text, section, name)):
        return f"the file spells it {other}, and which of two spellings counts is not documented: name it so"
    if dialect.edit == "multipath" and "/" in section:
        layout = multipath_layout(text.split("\n"))
        if isinstance(layout, Layout) and not layout.homes(section):
            return f"the file has no section {section}, and what a new one would be for is not said"
    return None


KIND = Kind(
    name="file",
    order=90,
    parse=FileKey.parse,
    noun="configuration key",
    examples=(("file:/etc/beegfs/beegfs-storage.conf:tuneNumWorkers", "32"),),
    capture=None,
    namespaces=((".+", "mnt"),),
    written_by=frozenset(),
)
