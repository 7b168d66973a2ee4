"""A kernel attribute that a line of tmpfiles.d(5) writes at boot."""

from __future__ import annotations

from typing import ClassVar, Self

from advisor.host import Host, Missing
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile
from advisor.tunables.own_files import with_last_word
from advisor.tunables.preflight import Preflight
from advisor.tunables.tunable import UnknownIdError

_DIRECTORIES = ("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d")


class WrittenAtBoot(KernelFile, frozen=True):
    """An attribute that a line of advisor's writes at boot; ``about`` heads the file."""

    about: ClassVar[str] = "Kernel attributes"

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return tmpfiles_edit(host, self.path, value, profile=profile, about=self.about)


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
