"""A kernel attribute that tmpfiles.d(5) writes at boot: advisor's line, and other lines that are read first."""

from __future__ import annotations

from typing import Final

from advisor.host import Host, Missing
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile
from advisor.tunables.own_files import with_last_word

_DIRECTORIES: Final = ("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d")


class WrittenAtBoot(KernelFile, frozen=True):
    """An attribute that a line of advisor's writes at boot."""

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return tmpfiles_edit(host, self.path, value, profile=profile)

    def find_override(self, host: Host, value: str, *, profile: str) -> str | None:
        """The conflicting line that is carried out instead."""
        return written_first(host, self.path, value, profile=profile)


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
    for file in _earlier_files(host, _make_line(host, path, wanted, profile=profile).path):
        text = host.read(file)
        for number, line in enumerate([] if isinstance(text, Missing) else text.split("\n"), 1):
            value = _written_value(line, path)
            if value not in (None, wanted):
                return f"{file} line {number} writes {value} at boot instead of advisor's line: remove that line"
    return None


def _written_value(line: str, path: str) -> str | None:
    words = line.split(None, 6)
    is_ours = len(words) == 7 and words[0].startswith("w") and words[1] == path
    return words[6].strip() if is_ours else None


def _earlier_files(host: Host, ours: str) -> list[str]:
    """Files of tmpfiles.d that are read before advisor's; a name in one directory hides that name in later ones."""
    by_name: dict[str, str] = {}
    for directory in _DIRECTORIES:
        for name in host.names(directory):
            if name.endswith(".conf"):
                by_name.setdefault(name, f"{directory}/{name}")
    return [by_name[name] for name in sorted(by_name) if name < ours.rpartition("/")[2]]
