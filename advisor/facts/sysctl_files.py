"""The sysctl files: which are read, in which order, and what their lines mean (sysctl.d(5), sysctl.conf(5)).

systemd-sysctl(8) reads ``*.conf`` of the directories below, sorted by file name over all of them; a name in an earlier
directory hides the same name in later ones, also where it is empty or a link to /dev/null. It never reads
/etc/sysctl.conf itself: RHEL, and Debian up to 12, put a link to it into /etc/sysctl.d as ``99-sysctl.conf``; Debian 13
has none. ``sysctl --system`` (procps) reads the same files in the same order and then always /etc/sysctl.conf. So
/etc/sysctl.conf counts for boot where such a link leads to it, in the place of the link's name, and at the end where
the host does not boot by systemd: neither systemd nor such a link, which is made for its sake, is there. What
``sysctl --system`` alone would read at the end is kept with ``at_boot`` false. SUSE's kernel packages bring a file
that is read before all others (systemd-sysctl.service.d/50-kernel-uname_r.conf).
"""

from __future__ import annotations

import re

import msgspec

from advisor.facts.printable import printable
from advisor.facts.settings.value import refusal
from advisor.host import Host, Missing

DIRECTORIES = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
SYSCTL_CONF = "/etc/sysctl.conf"
# What systemd-sysctl strips from lines, keys and values.
_BLANKS = " \t\r\n"
KERNEL_FILES = ("/boot/sysctl.conf-", "/usr/lib/modules/")
_SYSTEMD = ("/run/systemd/system", "/usr/lib/systemd/systemd-sysctl", "/lib/systemd/systemd-sysctl")
_SWAPPED = {ord("."): "/", ord("/"): "."}


class SysctlSource(msgspec.Struct, frozen=True):
    """A line of a sysctl file. ``rejected`` says why the kernel would refuse the value (quoted triples), else None.

    ``key`` is dotted; a dot inside a name stands as a slash (``net.ipv4.conf.eth0/10.rp_filter``). It may be a
    pattern (glob(7)).
    """

    key: str
    value: str
    path: str
    line: int
    rejected: str | None = None
    excludes: bool = False
    """``-key`` without a value: patterns do not touch the key."""
    ignores_failure: bool = False
    """``-key = value``: a refusal is not reported."""
    at_boot: bool = True
    """False for /etc/sysctl.conf where only ``sysctl --system`` reads it."""
    target: str | None = None
    """The file that holds the line, where ``path`` is a symbolic link to it."""

    @property
    def file(self) -> str:
        """The file to edit: an editor that puts a new file in the place of a link leaves the line as it was."""
        return self.target or self.path

    @property
    def place(self) -> str:
        """File and line to edit, and of a link the name in whose order the line counts."""
        return f"{self.file}:{self.line}{self.reading}"

    @property
    def reading(self) -> str:
        """The name that a file is read by, in brackets, where it is that of a link; else empty."""
        return "" if self.file == self.path else f" (read as {self.path})"


def reads_later(path: str, ours: str) -> bool:
    """Return whether a file is read after ours: sysctl.d(5) sorts by file name across the directories; that of a kernel
    package comes first, /etc/sysctl.conf last."""
    is_named_later = path.rpartition("/")[2] > ours.rpartition("/")[2]
    return not path.startswith(KERNEL_FILES) and (path == "/etc/sysctl.conf" or is_named_later)


def key_path(key: str) -> str:
    """The file of a dotted key below /proc/sys."""
    return "/proc/sys/" + key.translate(_SWAPPED)


def dotted_key(written: str) -> str:
    """A key as it is written in a file, in dotted form.

    Where the first separator is a slash, the key is a path, and dots in it belong to names.
    """
    first = next((sign for sign in written if sign in "./"), "")
    dotted = written.translate(_SWAPPED) if first == "/" else written
    return (re.sub(r"\.{2,}", ".", dotted) if ".." in dotted else dotted).strip(".")


def is_pattern(key: str) -> bool:
    return any(sign in key for sign in "*?[")


def list_files(host: Host) -> tuple[tuple[str, bool], ...]:
    """The files in the order they are read, each with whether boot reads it."""
    by_name: dict[str, str] = {}
    for directory in DIRECTORIES:
        for name in host.names(directory):
            if name.endswith(".conf") and not name.startswith("."):
                by_name.setdefault(name, f"{directory}/{name}")
    files = [by_name[name] for name in sorted(by_name, key=lambda name: name.encode("utf-8", "surrogateescape"))]
    is_linked = any(
        (not isinstance(host.readlink(path), Missing) and host.real(path) == host.real(SYSCTL_CONF)) for path in files
    )
    by_itself = not is_linked and not any(host.exists(sign) for sign in _SYSTEMD)
    kernel = host.read_or_empty("/proc/sys/kernel/osrelease").strip()
    of_kernel = [
        path
        for path in (f"/boot/sysctl.conf-{kernel}", f"/usr/lib/modules/{kernel}/sysctl.conf")
        if kernel and host.exists(path)
    ]
    return (*((path, True) for path in (*of_kernel[:1], *files)), (SYSCTL_CONF, by_itself))


def parse_sysctl_file(
    text: str, path: str, *, at_boot: bool = True, target: str | None = None
) -> tuple[SysctlSource, ...]:
    """The lines that set a key or remove it (``-key``); comments and other lines are skipped.

    As both readers do: a comment is a whole line, and what follows a value on its line belongs to the value.
    """
    numbered = enumerate(text.replace("\0", "").split("\n"), 1)
    lines = (_parse_line(line.strip(_BLANKS), path, number, at_boot, target) for number, line in numbered)
    return tuple(line for line in lines if line is not None)


def _parse_line(line: str, path: str, number: int, at_boot: bool, target: str | None) -> SysctlSource | None:
    if not line or line[0] in "#;":
        return None
    written, equals, value = line.partition("=")
    has_dash = written.startswith("-")
    key = dotted_key(written.removeprefix("-").strip(_BLANKS))
    if not key or not (equals or has_dash):
        return None
    value = value.strip(_BLANKS)
    return SysctlSource(
        key=key,
        value=value,
        path=printable(path),
        line=number,
        rejected=refusal(key, value) if equals else None,
        excludes=not equals,
        ignores_failure=has_dash and bool(equals),
        at_boot=at_boot,
        target=target,
    )
