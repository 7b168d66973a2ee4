"""A host as it would be after steps that are not carried out: what they would write is read, all else as it is."""

from __future__ import annotations

import array
import fcntl
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from advisor.errors import CommandError
from advisor.host.commands import DEADLINE_SECONDS, CommandRunner, Completed
from advisor.host.config_text import FLOW_ALIASES
from advisor.host.device_identity import located
from advisor.host.ethtool import Answer, answer_key
from advisor.host.files import FileSource
from advisor.host.machine import Host
from advisor.host.missing import ABSENT, Missing
from advisor.host.steps import (
    PutFile,
    RunCommand,
    SetEthtool,
    SetIrqs,
    SetMtu,
    SetQdisc,
    SetTxqueuelen,
    Step,
    WriteFile,
)

# What would keep a step from being carried out on the running host: asked before anything is promised.

_NOT_ALLOWED = "this process may not write it, as in a container or without a capability"
FIXED = "the kernel lets nobody write it"
OF_FIRST_NETWORK = "not in this network namespace: run it on the host"
# linux/capability.h
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_MODULE": 16}
# linux/fs.h: FS_IOC_GETFLAGS, FS_IMMUTABLE_FL and FS_APPEND_FL.
_GET_FLAGS = 0x80086601
_FIXED = {0x10: "immutable (chattr -i makes it writable)", 0x20: "append-only (chattr -a makes it writable)"}


def step_obstacle(host: Host, step: Step) -> str | None:
    """Why this process could not carry the step out; None where it could, where only a try shows it, and
    for a host that is not the running one."""
    if not host.is_live:
        return None
    match step:
        case WriteFile(path, _, identity):
            place = located(host, path, identity)
            if isinstance(place, Missing):
                return None
            if why := _read_only(place):
                return why
            try:
                mode = os.stat(place).st_mode
            except OSError:
                return None
            if not mode & 0o222:
                is_of_first = path.startswith("/proc/sys/net/") and in_own_network()
                return OF_FIRST_NETWORK if is_of_first else FIXED
            return None if not host.is_root or os.access(place, os.W_OK) else _NOT_ALLOWED
        case SetIrqs():
            return _read_only("/proc/irq")
        case SetMtu() | SetTxqueuelen() | SetEthtool() | SetQdisc():
            return _missing_capability(host, "CAP_NET_ADMIN")
        case RunCommand(argv) if argv[0] in ("modprobe", "rmmod"):
            return _missing_capability(host, "CAP_SYS_MODULE")
    return None


def file_obstacle(host: Host, path: str) -> str | None:
    """Why a configuration file could not be replaced or made, as `step_obstacle`."""
    if not host.is_live:
        return None
    if why := other_names(path):
        return why
    directory = os.path.dirname(path)
    while not os.path.isdir(directory):
        if os.path.islink(directory):
            return f"{directory} is a symbolic link that leads to no directory"
        directory = os.path.dirname(directory)
    for place in (path, directory):
        fixed = _fixed_flag(place)
        if fixed is not None:
            return f"{'it' if place == path else place} is {fixed}"
    if why := _read_only(directory):
        return why
    # Another user than root asks what root could do.
    return None if not host.is_root or os.access(directory, os.W_OK) else _NOT_ALLOWED


def other_names(place: str) -> str | None:
    """Why a file of this machine is not replaced, as a file that takes its place would leave its other names behind;
    None where it has none, or is not there."""
    try:
        status = os.lstat(place)
    except OSError:
        return None
    is_linked = stat.S_ISREG(status.st_mode) and status.st_nlink > 1
    return f"it has {status.st_nlink} names (hard links), and only this one would change" if is_linked else None


def in_own_network() -> bool:
    """Whether this is another network namespace than the first: those have no key of the queues before the CPUs."""
    return os.path.exists("/proc/sys/net/core/somaxconn") and not os.path.exists(
        "/proc/sys/net/core/netdev_max_backlog"
    )


def _read_only(path: str) -> str | None:
    try:
        return "its file system is mounted read-only here" if os.statvfs(path).f_flag & os.ST_RDONLY else None
    except OSError:
        return None


def _missing_capability(host: Host, name: str) -> str | None:
    """What root lacks; of another user nothing is said, as root may have it."""
    status = host.read("/proc/self/status")
    if not host.is_root or isinstance(status, Missing):
        return None
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), None)
    if effective is None or int(effective, 16) >> _CAPABILITIES[name] & 1:
        return None
    return f"this process lacks {name}, as in a container"


def _fixed_flag(path: str) -> str | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    flags = array.array("L", [0])
    try:
        fcntl.ioctl(fd, _GET_FLAGS, flags)
    except OSError:
        # A file system without such flags.
        return None
    finally:
        os.close(fd)
    return next((words for flag, words in _FIXED.items() if flags[0] & flag), None)


def after_steps(host: Host, steps: Iterable[Step]) -> Host:
    """Return the host as it would be read after the steps. Changes nothing, and the result cannot be changed.

    Kernel attributes, configuration files, MTU, queue lengths, driver values and LLT's numbers are as the steps set
    them. Other commands have no effect here, nor has anything that the kernel changes along with a value.
    """
    done = tuple(steps)
    return _WouldBeHost(host, done)


class _WouldBeHost(Host):
    def __init__(self, host: Host, steps: Sequence[Step]) -> None:
        vars(self).update(vars(host))
        self.files = self._source = _WouldBeFiles(host.files, steps)
        self.commands = _WouldBeCommands(host.commands, steps)
        self._below = host
        self._driver_values: dict[tuple[str, str], dict[str, int | str | bool]] = {}
        for step in steps:
            if isinstance(step, SetEthtool):
                value = step.value == "on" if step.value in ("on", "off") else int(step.value)
                values = self._driver_values.setdefault((step.link, step.group), {})
                values[answer_key(step.group, step.key)] = value

    def ethtool(self, link: str, what: str) -> Answer | Missing:
        answer = self._below.ethtool(link, what)
        values = self._driver_values.get((link, what))
        return answer if values is None or isinstance(answer, Missing) else {**answer, **values}

    def do(self, step: Step) -> NoReturn:
        raise CommandError("a host as it would be cannot be changed")


class _WouldBeFiles:
    """Files of another source with those that the steps write, by the paths that they name and where these lead."""

    def __init__(self, below: FileSource, steps: Sequence[Step]) -> None:
        self._below = below
        self._written: dict[str, bytes | None] = {}
        self._added: dict[str, frozenset[str]] = {}
        for step in steps:
            match step:
                case WriteFile(path, value):
                    self._place(path, _attribute_text(self.read(path), value))
                case SetMtu(link, mtu):
                    self._place(f"/sys/class/net/{link}/mtu", b"%d\n" % mtu)
                case SetTxqueuelen(link, packets):
                    self._place(f"/sys/class/net/{link}/tx_queue_len", b"%d\n" % packets)
                case PutFile(path, content):
                    self._place(path, content)
                    if content is not None:
                        self._add_names(path)

    def _place(self, path: str, content: bytes | None) -> None:
        real = self._below.real(path)
        for place in (path,) if isinstance(real, Missing) else (path, real):
            self._written[place] = content

    def _add_names(self, path: str) -> None:
        """The name of a new file in its directory, and of each directory that is new."""
        while isinstance(self._below.real(path), Missing) and path != "/":
            parent, _, name = path.rpartition("/")
            self._added[parent or "/"] = self._added.get(parent or "/", frozenset()) | {name}
            path = parent or "/"

    def read(self, path: str) -> bytes | Missing:
        if path not in self._written:
            return self._below.read(path)
        content = self._written[path]
        return ABSENT if content is None else content

    def listdir(self, path: str) -> tuple[str, ...] | Missing:
        listed, added = self._below.listdir(path), self._added.get(path, frozenset())
        if isinstance(listed, Missing):
            return tuple(sorted(added)) if added else listed
        return tuple(sorted(added.union(name for name in listed if not self._is_gone(f"{path}/{name}"))))

    def _is_gone(self, path: str) -> bool:
        return path in self._written and self._written[path] is None

    def readlink(self, path: str) -> str | Missing:
        return self._below.readlink(path)

    def real(self, path: str) -> str | Missing:
        if path in self._written or path in self._added:
            real = self._below.real(path)
            return ABSENT if self._is_gone(path) else path if isinstance(real, Missing) else real
        return self._below.real(path)

    def is_dir(self, path: str) -> bool:
        return path in self._added or self._below.is_dir(path)


def _attribute_text(now: bytes | Missing, value: str) -> bytes:
    """Return the text of a kernel attribute after ``value`` is written: where it marks one of several words by
    brackets, that word is marked."""
    words = [] if isinstance(now, Missing) else now.decode("utf-8", "replace").split()
    plain = [word[1:-1] if word.startswith("[") and word.endswith("]") else word for word in words]
    if plain != words and value in plain:
        return " ".join(f"[{word}]" if word == value else word for word in plain).encode() + b"\n"
    return value.encode("utf-8", "surrogateescape") + b"\n"


class _WouldBeCommands:
    """Answers of ip(8) and lltconfig with the values of the steps."""

    def __init__(self, below: CommandRunner, steps: Sequence[Step]) -> None:
        self._below = below
        self._links: dict[str, dict[str, int]] = {}
        self._llt: dict[str, dict[str, str]] = {}
        for step in steps:
            match step:
                case SetMtu(link, mtu):
                    self._links.setdefault(link, {})["mtu"] = mtu
                case SetTxqueuelen(link, packets):
                    self._links.setdefault(link, {})["txqlen"] = packets
                case RunCommand(("lltconfig", option, setting)):
                    name, _, value = setting.partition(":")
                    self._llt.setdefault(option, {})[name] = value

    def run(
        self, argv: Sequence[str], *, timeout: float = DEADLINE_SECONDS, stdin: str | None = None
    ) -> Completed | Missing:
        done = self._below.run(argv, timeout=timeout, stdin=stdin)
        if isinstance(done, Missing) or not done.ok:
            return done
        match tuple(argv):
            case ("lltconfig", option, "query") if option in self._llt:
                text = _with_settings(done.stdout, self._llt[option])
            case ("ip", "-j", *_) if self._links:
                text = _with_links(done.stdout, self._links)
            case ("ip", "-d", "address") if self._links:
                text = _with_printed_links(done.stdout, self._links)
            case _:
                return done
        return msgspec.structs.replace(done, stdout=text)


def _with_settings(printed: str, values: Mapping[str, str]) -> str:
    spelled = {**{alias: values[name] for alias, name in FLOW_ALIASES.items() if name in values}, **values}
    for name, value in spelled.items():
        printed = re.sub(rf"(?m)^([ \t]*{re.escape(name)}[ \t]*[=:][ \t]*)-?[0-9]+", rf"\g<1>{value}", printed)
    return printed


def _with_links(printed: str, links: Mapping[str, Mapping[str, int]]) -> str:
    try:
        listed: Any = msgspec.json.decode(printed)
    except msgspec.DecodeError:
        return printed
    entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    for entry in entries:
        entry |= {key: value for key, value in links.get(str(entry.get("ifname")), {}).items() if key in entry}
    return msgspec.json.encode(listed).decode()


def _with_printed_links(printed: str, links: Mapping[str, Mapping[str, int]]) -> str:
    for name, values in links.items():
        for key, value in values.items():
            word = "qlen" if key == "txqlen" else key
            heading = rf"(?m)^([0-9]+: {re.escape(name)}[@:][^\n]* {word} )[0-9]+"
            printed = re.sub(heading, rf"\g<1>{value}", printed)
    return printed
