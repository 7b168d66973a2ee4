"""A kernel attribute that tmpfiles.d(5) writes at boot: advisor's line, and other lines that are read first."""

from __future__ import annotations

from typing import ClassVar, Final, Self

from advisor.host import Host, Missing
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile
from advisor.tunables.own_files import with_last_word
from advisor.tunables.preflight import Preflight
from advisor.tunables.tunable import UnknownIdError

_DIRECTORIES: Final = ("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d")


class WrittenAtBoot(KernelFile, frozen=True):
    """An attribute that a line of advisor's writes at boot; ``about`` heads the file."""

    about: ClassVar[str] = "Kernel attributes"

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return tmpfiles_edit(host, self.path, value, profile=profile, about=self.about)

    def find_override(self, host: Host, value: str, *, profile: str) -> str | None:
        """The conflicting line that is carried out instead."""
        return written_first(host, self.path, value, profile=profile)


class NamedAttribute(WrittenAtBoot, frozen=True):
    """``KIND:NAME``, for a kind that lists its names and has each as a file below one directory."""

    name: str

    kind: ClassVar[str]
    directory: ClassVar[str]
    names: ClassVar[tuple[str, ...]]
    id_form = "{self.kind}:{self.name}"

    @classmethod
    def parse(cls, rest: str) -> Self:
        if rest not in cls.names:
            hint = f"write {cls.kind}:NAME, one of {', '.join(cls.names)}"
            raise UnknownIdError(rest, kind=cls.kind, hint=hint)
        return cls(rest)

    @property
    def path(self) -> str:
        return f"{self.directory}/{self.name}"

    def explain_choice(self, host: Host, wanted: str) -> str | None:
        """Why a file that lists its choices would not take a word."""
        text = host.read(self.path)
        if self.value_form == "words" or isinstance(text, Missing):
            return None
        offered = [word.strip("[]()") for word in text.split()]
        return None if wanted in offered else f"this kernel offers {', '.join(offered)}"

    def run_preflight(self, host: Host, before: str, after: str, *, profile: str) -> Preflight:
        unwritable = self.explain_unwritable(host)
        return Preflight(
            refusal=unwritable or self.explain_choice(host, after),
            state="not-applicable" if unwritable else "blocked",
            overridden=self.find_override(host, after, profile=profile),
        )


def tmpfiles_edit(
    host: Host, path: str, value: str, *, profile: str, about: str = "Kernel attributes"
) -> FileEdit | Missing:
    """The line that writes ``value`` into ``path`` at boot; Missing where nothing would carry it out."""
    if not any(host.is_dir(directory) for directory in _DIRECTORIES):
        return Missing("absent", "there is no tmpfiles.d here, so nothing would write it at boot")
    return _make_line(host, path, value, profile=profile, about=about)


def _make_line(host: Host, path: str, value: str, *, profile: str, about: str = "") -> FileEdit:
    file, header = f"/etc/tmpfiles.d/advisor-{profile}.conf", f"# {about} of the profile {profile}.\n"
    edit = FileEdit(file, "tmpfiles", path, value, header.encode())
    return with_last_word(host, edit, profile, first_counts=True)


def written_first(host: Host, path: str, wanted: str, *, profile: str) -> str | None:
    """The line of tmpfiles.d that hides advisor's: of those for one path, the first in order of file names counts."""
    # Files of tmpfiles.d that are read before advisor's; a name in one directory hides that name in later ones.
    ours = _make_line(host, path, wanted, profile=profile).path
    by_name: dict[str, str] = {}
    for directory in _DIRECTORIES:
        for name in host.names(directory):
            if name.endswith(".conf"):
                by_name.setdefault(name, f"{directory}/{name}")
    for file in [by_name[name] for name in sorted(by_name) if name < ours.rpartition("/")[2]]:
        for number, line in enumerate(host.read_or_empty(file).split("\n"), 1):
            words = line.split(None, 6)
            is_ours = len(words) == 7 and words[0].startswith("w") and words[1] == path
            value = words[6].strip() if is_ours else None
            if value not in (None, wanted):
                return f"{file} line {number} writes {value} at boot instead of advisor's line: remove that line"
    return None
