"""The INI dialect of TuneD: Python's configparser with ``=`` alone, ``#`` behind a blank as an inline comment, names as
they are written, repeated sections and options allowed, and nothing interpolated. A property test compares the two.

With the values it keeps the line of each, and the comment that stands above it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from advisor.errors import AdvisorError, InvalidInputError
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

MAX_BYTES = 256 * 1024
DEFAULT = "DEFAULT"
HEADERLESS = ""
"""The section of a file of variables, which has no header."""

_SECTION = lazy_regex(r"\[(?P<header>.+)\]", re.DOTALL)
_NOT_BLANK = lazy_regex(r"\S")


class IniOption(msgspec.Struct, frozen=True):
    """A value with where it stands, and what the author says about it in the comment above; None for an option that has
    no value at all, which only files of variables may have."""

    value: str | None
    path: str
    line: int
    comment: str = ""
    earlier: tuple[tuple[int, str], ...] = ()
    """Line and value of what the same file says about it before, in vain."""


Sections = Mapping[str, Mapping[str, IniOption]]


def decode_text(data: bytes, path: str, what: str = "TuneD profile", *, is_strict: bool = True) -> str:
    """The text of a file, with line ends as Python's text mode gives them. ``what`` it should be.

    Raises InvalidInputError, for what is not UTF-8 naming the line; without ``is_strict`` a byte of that is a lone
    surrogate.
    """
    if len(data) > MAX_BYTES:
        raise InvalidInputError(f"{path}: larger than {MAX_BYTES // 1024} KiB: no {what} is")
    try:
        text = data.decode("utf-8", "strict" if is_strict else "surrogateescape")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(f"{path}: line {line}: not UTF-8 at byte {error.start}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_tuned_ini(text: str, path: str, *, is_variables: bool = False) -> Sections:
    """Sections in the order of the file, and the options of each in theirs.

    ``is_variables``: a file of variables, which needs no section and may name an option without a value. Raises
    InvalidInputError naming file and line, as TuneD then loads nothing of it.
    """
    reader = _Reader(path, is_variables=is_variables)
    for number, line in enumerate(text.split("\n"), 1):
        reader.take(line, number)
    return reader.sections()


class _Reader:
    def __init__(self, path: str, *, is_variables: bool) -> None:
        self._path = path
        self._is_variables = is_variables
        self._sections: dict[str, dict[str, list[str] | None]] = {}
        self._places: dict[tuple[str, str], tuple[int, str]] = {}
        self._earlier: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self._defaults: dict[str, list[str] | None] = {}
        self._current: dict[str, list[str] | None] | None = None
        self._name = HEADERLESS
        self._option: str | None = None
        self._indent = 0
        self._comment: list[str] = []
        if is_variables:
            self._current = self._sections.setdefault(HEADERLESS, {})

    def take(self, line: str, number: int) -> None:
        # The line without its comment and outer blanks, and whether it had one.
        if line.strip().startswith(("#", ";")):
            bare, is_comment = "", True
        else:
            at = line.find("#")
            while at > 0 and not line[at - 1].isspace():
                at = line.find("#", at + 1)
            bare, is_comment = (line.strip(), False) if at < 0 else (line[:at].strip(), True)
        if not bare:
            self._take_blank(line, is_comment=is_comment)
            return
        found = _NOT_BLANK.search(line)
        indent = found.start() if found else 0
        values = self._current.get(self._option) if self._current is not None and self._option else None
        if self._current is not None and self._option and indent > self._indent:
            if values is None:
                raise self._make_error(number, "a line that continues an option without a value")
            values.append(bare)
            return
        self._indent = indent
        header = _SECTION.match(bare)
        if header:
            name = header["header"]
            self._name = name
            self._option = None
            self._current = self._defaults if name == DEFAULT else self._sections.setdefault(name, {})
        else:
            if self._current is None:
                raise self._make_error(number, "a setting before the first section")
            option_name, equals, given = bare.partition("=")
            option = option_name.rstrip()
            if not equals and not self._is_variables:
                raise self._make_error(number, f"neither a section nor NAME=VALUE: {bare[:40]!r}")
            if not option:
                raise self._make_error(number, "a value without a name")
            if option in self._current:
                before = "\n".join(self._current[option] or ()).rstrip()
                self._earlier.setdefault((self._name, option), []).append((self._places[self._name, option][0], before))
            self._current[option] = [given.strip()] if equals else None
            self._option = option
            self._places[self._name, option] = number, " ".join(filter(None, self._comment))
        self._comment = []

    def _take_blank(self, line: str, *, is_comment: bool) -> None:
        if is_comment:
            self._comment.append(line.strip().lstrip("#; \t"))
            return
        self._comment = []
        values = self._current.get(self._option) if self._current is not None and self._option else None
        if values is not None:
            values.append("")

    def _make_error(self, number: int, message: str) -> InvalidInputError:
        return InvalidInputError(f"{self._path}: line {number}: {message}", hint="TuneD does not load such a file")

    def sections(self) -> Sections:
        found: dict[str, dict[str, IniOption]] = {}
        for name, options in self._sections.items():
            found[name] = {key: self._make_option(name, key, values) for key, values in options.items()}
            for key, values in self._defaults.items():
                found[name].setdefault(key, self._make_option(DEFAULT, key, values))
        return found

    def _make_option(self, section: str, key: str, values: list[str] | None) -> IniOption:
        line, comment = self._places[section, key]
        earlier = tuple(self._earlier.get((section, key), ()))
        return IniOption(None if values is None else "\n".join(values).rstrip(), self._path, line, comment, earlier)


# Where TuneD keeps its profiles: two layouts of versions, and what its main configuration says.

MAIN_CONF = "/etc/tuned/tuned-main.conf"
_OLD = ("/usr/lib/tuned", "/etc/tuned")
_NEW = ("/usr/lib/tuned/profiles", "/etc/tuned/profiles")


def main_settings(files: Host) -> Mapping[str, str]:
    """TuneD's main configuration; empty where there is none, or none that can be read."""
    data = files.read_bytes(MAIN_CONF)
    if isinstance(data, Missing):
        return {}
    try:
        sections = parse_tuned_ini(decode_text(data, MAIN_CONF), MAIN_CONF, is_variables=True)
    except AdvisorError:
        # TuneD then does not start at all; its defaults are the best that can be said.
        return {}
    return {key: option.value for options in sections.values() for key, option in options.items() if option.value}


def is_on(settings: Mapping[str, str], key: str) -> bool:
    """Whether a switch of the main configuration is on; it is where nothing is said."""
    return settings.get(key, "1").lower() in ("1", "true", "yes", "on", "y", "t")


def profile_directories(files: Host) -> tuple[str, ...]:
    """The directories of profiles, the last of which wins. Since 2.23 they lie below ``profiles``."""
    listed = main_settings(files).get("profile_dirs")
    if listed:
        return tuple(part.strip() for part in listed.split(",") if part.strip().startswith("/"))
    return _NEW if files.is_dir(_NEW[0]) else _OLD


def is_plain_file(files: Host, place: str) -> bool:
    """Whether it may be read: a regular file. To open a device that a profile names could do something already."""
    real = files.real(place)
    if isinstance(real, Missing) or files.is_dir(place):
        return False
    owner = files.owner(real)
    # A snapshot does not hold the type of a file; it holds no devices.
    return not isinstance(owner, Missing) or owner.is_absent


def installed_profiles(files: Host) -> Mapping[str, str]:
    """Name → file of every TuneD profile that is installed, sorted."""
    found: dict[str, str] = {}
    for directory in profile_directories(files):
        for name in files.names(directory):
            place = f"{directory}/{name}/tuned.conf"
            if is_plain_file(files, place):
                found[name] = place
    return dict(sorted(found.items()))


def package_version(files: Host, package: str) -> str | None:
    """The version of an installed Debian package; None where dpkg does not know it."""
    status = files.read("/var/lib/dpkg/status")
    if isinstance(status, Missing):
        return None
    for block in status.split("\n\n"):
        lines = block.split("\n")
        if lines[0].strip() == f"Package: {package}":
            return next((line.partition(":")[2].strip() for line in lines if line.startswith("Version:")), None)
    return None


# Where distributions put Python's packages.
_PYTHONS = lazy_regex(r"python3(\.[0-9]+)?")
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64")


def python_packages(files: Host) -> list[str]:
    """The directories of Python's packages on that machine."""
    return [
        f"{library}/{python}/{packages}"
        for library in _LIBRARIES
        for python in files.names(library)
        if _PYTHONS.fullmatch(python)
        for packages in ("dist-packages", "site-packages", "lib-dynload")
    ]


def lacks_perf(files: Host) -> bool:
    """Whether TuneD is installed and Python's module perf is not: its plugin scheduler is then not loaded at all.

    Debian 12 has no package of that module. False where TuneD's own package is not seen.
    """
    names = {name for directory in python_packages(files) for name in files.names(directory)}
    return "tuned" in names and not any(re.fullmatch(r"perf(\..*)?\.(so|py)|perf", name) for name in names)


# The system's sysctl files, as TuneD reads them again after it has set its own values (``reapply_sysctl``).

# A file in the first hides one of its name in the next.
_REAPPLIED = ("/run/sysctl.d", "/etc/sysctl.d")
_MAX_LINES = 20_000


def dotted_key(key: str) -> str:
    """TuneD's key, in which every dot and every slash parts two names, as ours."""
    return ".".join(re.split(r"[./]", key))


def read_reapplied(files: Host, main: Mapping[str, str]) -> Mapping[str, tuple[str, str, int]]:
    """Dotted key → value, file and line of what TuneD takes from the system's sysctl files after its own values."""
    if not is_on(main, "reapply_sysctl"):
        return {}
    by_name: dict[str, str] = {}
    for directory in _REAPPLIED:
        for name in files.names(directory):
            if name.endswith(".conf"):
                by_name.setdefault(name, f"{directory}/{name}")
    found: dict[str, tuple[str, str, int]] = {}
    for path in (*(by_name[name] for name in sorted(by_name)), "/etc/sysctl.conf"):
        text = files.read(path)
        if isinstance(text, Missing):
            continue
        for number, line in enumerate(text.split("\n")[:_MAX_LINES], 1):
            key, equals, value = line.strip().partition("=")
            if equals and key.strip() and line.strip()[0] not in "#;":
                found[dotted_key(key.strip())] = " ".join(value.split()), path, number
    return found
