"""Values that are one file of the kernel each: read from it, written into it, effective at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Self

import msgspec

from advisor.host import Host, Missing, ReadFile, Step, WriteFile
from advisor.tunables.edits import FileEdit, apply_edit, mentions_key
from advisor.tunables.kind import Tunable, UnknownIdError
from advisor.tunables.preflight import Preflight

# advisor's files in a directory of which one file for each name is read, in the order of names, each profile with
# one.

_HIGHEST = 9999


def with_last_word(
    host: Host, edit: FileEdit, profile: str, *, first_counts: bool = False, also: Iterable[FileEdit] = ()
) -> FileEdit:
    """The edit in the profile's file that has the last word among advisor's.

    ``first_counts`` where of several lines for one key the first is carried out (tmpfiles.d). ``also`` are edits whose
    keys undo this one wherever they come later.
    """
    directory, _, name = edit.path.rpartition("/")
    stem = name.removesuffix(f"-{profile}.conf")
    pattern = re.compile(rf"{re.escape(stem)}(?:[.+]([0-9]{{4}}))?-(.+)\.conf")
    found = {one: match for one in host.names(directory) if (match := pattern.fullmatch(one))}
    if not found.keys() - {name}:
        return edit
    contents = {one: host.read_bytes(f"{directory}/{one}") for one in found}
    readable = {one: content for one, content in contents.items() if isinstance(content, bytes)}
    own = [one for one, content in readable.items() if found[one][2] == profile and mentions_key(content, edit)]
    last = min if first_counts else max
    place = last(own, default=name)
    others = [one for one in readable if found[one][2] != profile and last(one, place) == one]
    if not any(_overrides(readable[one], edit, also) for one in others):
        return msgspec.structs.replace(edit, path=f"{directory}/{place}")
    numbers = (_file_number(match, first_counts=first_counts) for match in found.values() if match[2] != profile)
    number = 1 + max(numbers, default=0)
    sign = f"+{_HIGHEST - number:04d}" if first_counts else f".{number:04d}"
    return msgspec.structs.replace(edit, path=f"{directory}/{stem}{sign}-{profile}.conf")


def _file_number(match: re.Match[str], *, first_counts: bool) -> int:
    if match[1] is None:
        return 0
    return _HIGHEST - int(match[1]) if first_counts else int(match[1])


def _overrides(content: bytes | Missing, edit: FileEdit, also: Iterable[FileEdit]) -> bool:
    if isinstance(content, Missing):
        return False
    is_other = mentions_key(content, edit) and apply_edit(content, edit) != content
    return is_other or any(mentions_key(content, one) for one in also)


class KernelFile(Tunable, frozen=True):
    """A kind gives the path, and the form that reduces the file to a value where its words alone do not do."""

    path_form: ClassVar[str]
    """The path, with the fields of ``self`` in it."""

    @property
    def path(self) -> str:
        return self.path_form.format(self=self)

    @property
    def value_form(self) -> str:
        """As `advisor.host.probes` lists them."""
        return "words"

    @property
    def probe(self) -> ReadFile:
        return ReadFile(self.path, self.value_form)

    def format_value(self, value: str) -> str:
        """What is written into the file for a value."""
        return value

    def make_steps(self, value: str) -> tuple[Step, ...]:
        return (WriteFile(self.path, self.format_value(value)),)

    def explain_unwritable(self, host: Host) -> str | None:
        """Why no value can be written: the file's mode; None where one can be, and where the mode is unknown."""
        real = host.real(self.path)
        owner = host.owner(real) if isinstance(real, str) else real
        return None if isinstance(owner, Missing) or owner[0] & 0o222 else "the kernel lets it be read alone"


_DIRECTORIES = ("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d")


class WrittenAtBoot(KernelFile, frozen=True):
    """An attribute that a line of advisor's writes at boot; ``about`` heads the file."""

    about: ClassVar[str] = "Kernel attributes"

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return tmpfiles_edit(host, self.path, value, profile=profile, about=self.about)


class NamedAttribute(WrittenAtBoot, frozen=True):
    """``KIND:NAME``, for a kind that lists its names and has each as a file below one directory."""

    name: str

    directory: ClassVar[str]
    names: ClassVar[tuple[str, ...]]
    id_form = "{self.kind}:{self.name}"
    path_form = "{self.directory}/{self.name}"

    @classmethod
    def parse(cls, rest: str) -> Self:
        if rest not in cls.names:
            hint = f"write {cls.kind}:NAME, one of {', '.join(cls.names)}"
            raise UnknownIdError(rest, kind=cls.kind, hint=hint)
        return cls(rest)

    def explain_choice(self, host: Host, wanted: str) -> str | None:
        """Why a file that lists its choices would not take a word."""
        text = host.read(self.path)
        if self.value_form == "words" or isinstance(text, Missing):
            return None
        offered = [word.strip("[]()") for word in text.split()]
        return None if wanted in offered else f"this kernel offers {', '.join(offered)}"

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        unwritable = self.explain_unwritable(host)
        return Preflight(
            refusal=unwritable or self.explain_choice(host, after), state="not-applicable" if unwritable else "blocked"
        )


def tmpfiles_edit(
    host: Host, path: str, value: str, *, profile: str, about: str = "Kernel attributes"
) -> FileEdit | Missing:
    """The line that writes ``value`` into ``path`` at boot; Missing where nothing would carry it out."""
    if not any(host.is_dir(directory) for directory in _DIRECTORIES):
        return Missing("absent", "there is no tmpfiles.d here, so nothing would write it at boot")
    file, header = f"/etc/tmpfiles.d/advisor-{profile}.conf", f"# {about} of the profile {profile}.\n"
    edit = FileEdit(file, "tmpfiles", path, value, header.encode())
    return with_last_word(host, edit, profile, first_counts=True)
