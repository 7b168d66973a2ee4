"""Whole hosts to damage: those of the articles, of quiet machines, taken apart into files and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, NamedTuple

from advisor.host import Completed, Host, MemoryFiles, Missing, RecordedCommands
from tests import captured
from tests.articles.table import SYSTEMS, cases
from tests.quiet_hosts import quiet_host
from tests.whole_hosts import DISTRIBUTIONS

QUIET: Final = ("laptop", "web-server", "kubernetes-node", "postgresql")


class Parts(NamedTuple):
    """A host as data. A place is a file's path, or a command's words with ``$ `` before them."""

    files: Mapping[str, bytes]
    links: Mapping[str, str]
    directories: frozenset[str]
    answers: Mapping[tuple[str, ...], Completed | Missing]
    unreadable: Mapping[str, str] = {}
    is_root: bool = True

    def places(self) -> list[str]:
        asked = [_place(argv) for argv, answer in self.answers.items() if isinstance(answer, Completed)]
        return sorted((*self.files, *asked))

    def content(self, place: str) -> bytes:
        if not place.startswith("$ "):
            return self.files[place]
        answer = self.answers[_argv(place)]
        return answer.stdout.encode("utf-8", "replace") if isinstance(answer, Completed) else b""

    def with_content(self, place: str, data: bytes) -> Parts:
        if not place.startswith("$ "):
            return self._replace(files={**self.files, place: data})
        return self.with_answer(_argv(place), Completed(0, data.decode("utf-8", "replace"), ""))

    def with_answer(self, argv: tuple[str, ...], answer: Completed | Missing) -> Parts:
        return self._replace(answers={**self.answers, argv: answer})

    def host(self) -> Host:
        files = MemoryFiles(self.files, self.links, self.directories, self.unreadable)
        return Host(files, RecordedCommands(self.answers), is_root=self.is_root)


def _place(argv: tuple[str, ...]) -> str:
    return "$ " + "\0".join(argv)


def _argv(place: str) -> tuple[str, ...]:
    return tuple(place.removeprefix("$ ").split("\0"))


def parts_of(host: Host) -> Parts:
    """What a host in memory holds."""
    files, commands = host.files, host.commands
    assert isinstance(files, MemoryFiles)
    answers = commands._answers if isinstance(commands, RecordedCommands) else {}
    directories = frozenset(files._children)
    return Parts(files._contents, files._links, directories, answers, files._unreadable, bool(host.is_root))


def _articles() -> dict[str, Callable[[], Host]]:
    """Each host of the articles' rows once."""
    first = {row.host: f"{system}: {row.case}" for system in SYSTEMS for row in reversed(cases(system))}
    return {name: cache(host) for host, name in first.items()}


def _quiet(kind: str, distribution: str) -> Callable[[], Host]:
    return cache(lambda: quiet_host(kind, distribution))


def _captured(name: str) -> Callable[[], Host]:
    return cache(lambda: captured.host(name))


ARTICLES: Final = _articles()
HOSTS: Final[Mapping[str, Callable[[], Host]]] = {
    **ARTICLES,
    **{f"{kind} on {one}": _quiet(kind, one) for kind in QUIET for one in DISTRIBUTIONS},
}
CAPTURED: Final[Mapping[str, Callable[[], Host]]] = {
    name: _captured(name)
    for name in (
        *(f"hwloc/{one}" for one in captured.HWLOC_HOSTS),
        *(f"pepc/{one}" for one in captured.PEPC_HOSTS),
        "procfs/procfs-fixtures",
    )
}
"""Hosts that answer no command; each skips the calling test where it does not lie next to the project."""
