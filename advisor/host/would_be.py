"""A host as it would be after steps that are not carried out: what they would write is read, all else as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from advisor.errors import CommandError
from advisor.host.commands import DEADLINE_SECONDS, CommandRunner, Completed
from advisor.host.ethtool import Answer, answer_key
from advisor.host.files import FileSource
from advisor.host.lltconfig_text import FLOW_ALIASES
from advisor.host.machine import Host
from advisor.host.missing import ABSENT, Missing
from advisor.host.steps import PutFile, RunCommand, SetEthtool, SetMtu, SetTxqueuelen, Step, WriteFile


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
