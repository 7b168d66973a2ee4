"""``sysctl:KEY`` — a kernel parameter below /proc/sys, persisted in sysctl.d (sysctl.d(5))."""

from __future__ import annotations

import re

import msgspec

from advisor.errors import UsageError
from advisor.host import Host, Missing, Probe, ReadFile, Step, WriteFile
from advisor.tunables.edits import FileEdit
from advisor.tunables.tunable import Effect, Risk

# Read by the kernel when a socket is made, so sockets that exist keep what they have (tcp(7), socket(7)).
_AT_SOCKET_CREATION = re.compile(
    r"net\.core\.[rw]mem_(default|max)|net\.ipv4\.tcp_[rw]mem|net\.ipv4\.tcp_congestion_control"
)

# Values that name a program which the kernel then runs as root: a profile must not be able to run anything.
_RUNS_PROGRAMS = re.compile(
    r"kernel\.(core_pattern|modprobe|poweroff_cmd|hotplug|usermodehelper\..*)|fs\.binfmt_misc\..*"
)


def sysctl_path(key: str) -> str:
    """The file of a dotted key; a slash in it stands for a dot in a name (``net.ipv4.conf.eth0/10.mtu``)."""
    return "/proc/sys/" + key.translate({ord("."): "/", ord("/"): "."})


def _is_key(key: str) -> bool:
    # No name is made of dots alone: ``net.//.x`` would be net/../x. One that begins as a path is sysctl(8)'s own form.
    names = key.split(".")
    return "/" not in names[0] and all(re.fullmatch(r"[\w/:@+-]+", name) and name.strip("/") for name in names)


class Sysctl(msgspec.Struct, frozen=True):
    key: str

    @classmethod
    def parse(cls, rest: str) -> Sysctl:
        if not _is_key(rest):
            raise UsageError(f"'sysctl:{rest}' is not a tunable", hint="write sysctl:net.core.rmem_max")
        if _RUNS_PROGRAMS.fullmatch(rest):
            raise UsageError(f"'sysctl:{rest}' is not a tunable here", hint="the kernel runs what it names, as root")
        return cls(rest)

    @property
    def id(self) -> str:
        return f"sysctl:{self.key}"

    @property
    def risk(self) -> Risk:
        return "none"

    @property
    def takes_effect(self) -> Effect:
        return "new-sockets" if _AT_SOCKET_CREATION.fullmatch(self.key) else "now"

    @property
    def probe(self) -> Probe:
        return ReadFile(sysctl_path(self.key))

    def check(self, value: str) -> str | None:
        if '"' in value or "'" in value:
            return "quotes would be written into the kernel's value and refused there"
        return None if value and not re.search(r"[\0-\x1f\x7f]", value) else "needs one line of plain text"

    def steps(self, value: str) -> tuple[Step, ...]:
        return (WriteFile(sysctl_path(self.key), value),)

    def edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        header = f"# Kernel parameters of the profile {profile}.\n"
        return FileEdit(f"/etc/sysctl.d/90-advisor-{profile}.conf", "sysctl", self.key, value, header.encode())
