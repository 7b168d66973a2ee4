"""What would keep a step from being carried out on the running host: asked before anything is promised.

A container or a namespace shows values that it does not let anybody write; a file may be immutable (chattr(1)), and
root may lack a capability (capabilities(7)). Nothing is opened for writing here.
"""

from __future__ import annotations

import array
import fcntl
import os
import stat

from advisor.host.device_identity import located
from advisor.host.machine import Host
from advisor.host.missing import Missing
from advisor.host.steps import RunCommand, SetEthtool, SetIrqs, SetMtu, SetQdisc, SetTxqueuelen, Step, WriteFile

_NOT_ALLOWED = "this process may not write it, as in a container or without a capability"
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
                return OF_FIRST_NETWORK if is_of_first else "the kernel lets nobody write it"
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
