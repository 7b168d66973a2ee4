"""Remounts the target between the arms, so that new mount options or new connections are what is measured.

Unmounting and mounting are one shell command in a session of its own: this process may be killed at any moment, and
the mount is made again all the same. Nothing is forced and nothing is detached: a file system that anybody uses stays
mounted, and the session ends with that.

Sources: umount(8), mount(8), proc_pid_mountinfo(5); nfs(5), "sharecache" and "nconnect": mounts of one server share
its connections.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final

from advisor.errors import CommandError, NotRestoredError, RefusedError
from advisor.facts.mounts import Mount, read_mounts
from advisor.host import Host, Missing
from advisor.host.numbers import is_count
from advisor.proof.records import Arm
from advisor.proof.target import MeasuredTarget

REMOUNT_SECONDS: Final = 120.0
OWN_CONNECTION: Final = frozenset({"nfs", "nfs4", "cifs", "smb3"})
"""File systems whose connection is made by the mount, and ends with it."""
_PROTECTED: Final = frozenset(
    {
        *("/", "/bin", "/boot", "/boot/efi", "/efi", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/root"),
        *("/sbin", "/srv", "/tmp", "/usr", "/usr/local", "/var", "/var/cache", "/var/lib", "/var/log", "/var/spool"),
        *("/var/tmp", "/var/lib/advisor"),
    }
)
_PROTECTED_BELOW: Final = ("/boot/", "/dev", "/etc/", "/proc", "/run", "/sys", "/usr/")
# shown by the kernel, but not taken by mount(8)
_SHOWN_ONLY: Final = frozenset({"seclabel"})
_BUSY = 40
_YOUR_WAY: Final = "--reconnect COMMAND does it your way"
_SCRIPT: Final = (
    f'umount -- "$1" || exit {_BUSY}; for again in 1 2 3; do mount -t "$2" -o "$3" -- "$4" "$1" && exit 0;'
    " sleep 1; done; exit 41"
)


class RemountError(CommandError):
    """The target could not be remounted."""

    kind = "remount"


class Remount:
    """The `Reconnect` of a target that may be unmounted: callable with the arm."""

    def __init__(self, host: Host, mount: Mount) -> None:
        self._host = host
        self._mount = mount
        self._options = tuple(option for option in mount.options.split(",") if option not in _SHOWN_ONLY)
        self._has_begun = False

    @property
    def by_hand(self) -> str:
        """The command that mounts it as it was."""
        return shlex.join(self._mount_words())

    def __call__(self, arm: Arm) -> None:
        """Unmount it and mount it as it was, options read back. Raises RemountError."""
        self._has_begun = True
        if self._find_mount() is None:
            self._mount_again()
        else:
            one = self._mount
            words = ["sh", "-c", _SCRIPT, "advisor", one.target, one.kind, ",".join(self._options), one.source]
            done = self._host.run(words, timeout=REMOUNT_SECONDS)
            if isinstance(done, Missing):
                raise RemountError(f"{one.target} was not remounted: {done.why}")
            said = " ".join(done.stderr.split())[:300] or "no message"
            if done.rc == _BUSY:
                raise RemountError(f"{one.target} cannot be unmounted: {said}{_find_users(self._host, one.target)}")
            if not done.ok:
                raise RemountError(f"{one.target} could not be mounted again: {said}", hint=self.by_hand)
        self._require_same()

    def ensure_mounted(self) -> None:
        """Whatever happened: it is mounted as it was. Raises NotRestoredError with the command to do by hand."""
        if not self._has_begun:
            return
        try:
            if self._find_mount() is None:
                self._mount_again()
            self._require_same()
        except RemountError as error:
            raise NotRestoredError(
                error.message, hint=self.by_hand, items=((f"mount {self._mount.target}", self.by_hand),)
            ) from error

    def _mount_words(self) -> list[str]:
        one = self._mount
        return ["mount", "-t", one.kind, "-o", ",".join(self._options), "--", one.source, one.target]

    def _mount_again(self) -> None:
        done = self._host.run(self._mount_words(), timeout=REMOUNT_SECONDS)
        if isinstance(done, Missing) or not done.ok:
            said = done.why if isinstance(done, Missing) else " ".join(done.stderr.split())[:300]
            raise RemountError(f"{self._mount.target} could not be mounted again: {said}", hint=self.by_hand)

    def _find_mount(self) -> Mount | None:
        return _mounted_at(_read_mounts(self._host), self._mount.target)

    def _require_same(self) -> None:
        found = self._find_mount()
        if found is None:
            raise RemountError(f"{self._mount.target} is not mounted", hint=self.by_hand)
        if (found.kind, found.source, found.root) != (self._mount.kind, self._mount.source, self._mount.root):
            raise RemountError(f"{self._mount.target} is now {found.source} ({found.kind}), which is not what it was")
        before, after = set(self._mount.options.split(",")), set(found.options.split(","))
        if before != after:
            raise RemountError(
                (
                    f"{self._mount.target} is mounted with other options than before: without "
                    f"{_join_words(before - after)}, with {_join_words(after - before)}"
                ),
                hint=self.by_hand,
            )


def _join_words(words: Iterable[str]) -> str:
    return ", ".join(sorted(words)) or "none"


def _read_mounts(host: Host) -> tuple[Mount, ...]:
    found = read_mounts(host)
    if isinstance(found, Missing):
        raise RemountError(f"the mounts cannot be read: {found.why}")
    return found


def _mounted_at(mounts: Iterable[Mount], place: str) -> Mount | None:
    return next((one for one in reversed(tuple(mounts)) if one.target == place), None)


def make_remount(host: Host, target: MeasuredTarget, *, needs_connection: bool) -> Remount:
    """The remount of the target, checked as far as that can be without trying. Raises RefusedError.

    With ``needs_connection`` new sockets are what matters, and those a remount makes only where the file system has a
    connection of its own.
    """
    place = target.mount_point
    mounts = _read_mounts(host)
    mount = _mounted_at(mounts, place)
    if mount is None:
        raise RefusedError(f"{place} is no mount point that can be unmounted", hint=_YOUR_WAY)
    if place in _PROTECTED or f"{place}/".startswith(_PROTECTED_BELOW):
        raise RefusedError(
            f"{place} belongs to the system and is never unmounted",
            hint=f"--target takes a directory on a mount of its own; or {_YOUR_WAY}",
        )
    _require_alone(mounts, mount)
    loop = mount.source.removeprefix("/dev/")
    if host.read(f"/sys/block/{loop}/loop/autoclear") == "1":
        raise RefusedError(f"{mount.source} detaches from its file when it is unmounted", hint=_YOUR_WAY)
    if needs_connection and mount.kind not in OWN_CONNECTION:
        raise RefusedError(
            f"the profile acts on new connections, and a remount of {mount.kind} makes none",
            hint="--reconnect COMMAND: one that logs out of the storage and in again, or --peer-ssh HOST",
        )
    # A container that has it mounted keeps the file system, and its connection, alive.
    # A namespace to which our unmounting propagates does not: the services of systemd have such.
    own = host.readlink("/proc/self/ns/mnt")
    (group, *_) = [*_peer_groups(host, "self", mount, "shared"), ""]
    asked: set[str] = set()
    for pid in (name for name in host.names("/proc") if is_count(name)):
        space = host.readlink(f"/proc/{pid}/ns/mnt")
        if isinstance(space, Missing) or space == own or space in asked:
            continue
        asked.add(space)
        if any(one != group or not one for one in _peer_groups(host, pid, mount, "shared", "master")):
            raise RefusedError(
                f"{mount.target} is also mounted in the mount namespace of process {pid} (a container?)",
                hint=f"stop that first; or {_YOUR_WAY}",
            )
    return Remount(host, mount)


def _require_alone(mounts: Iterable[Mount], mount: Mount) -> None:
    others = [one for one in mounts if one.target != mount.target]
    below = [one.target for one in others if one.target.startswith(f"{mount.target}/")]
    same = [one.target for one in others if one.number is not None and one.number == mount.number]
    stacked = sum(1 for one in mounts if one.target == mount.target)
    shared = [one.target for one in others if _shares_connection(one, mount)]
    for found, words in (
        (below, "has other mounts below it"),
        (same, "is mounted at other places too"),
        ([mount.target] if stacked > 1 else [], "hides another mount"),
        (shared, "shares its connection with other mounts of that server, which a remount does not end"),
    ):
        if found:
            raise RefusedError(f"{mount.target} {words}: {', '.join(found[:3])}", hint=_YOUR_WAY)
    if mount.root != "/":
        raise RefusedError(
            f"{mount.target} is a part of {mount.source} ({mount.root}): a bind mount or a subvolume", hint=_YOUR_WAY
        )


def _shares_connection(one: Mount, mount: Mount) -> bool:
    if one.kind not in OWN_CONNECTION or mount.kind not in OWN_CONNECTION:
        return False
    return _mount_server(one) == _mount_server(mount)


def _mount_server(mount: Mount) -> str:
    address = next((word for word in mount.options.split(",") if word.startswith("addr=")), None)
    return address or mount.source.rpartition(":")[0] or mount.source


def _peer_groups(host: Host, process: str, mount: Mount, *kinds: str) -> list[str]:
    """The peer group of each mount of that device in the process's namespace; an empty word where it has none."""
    lines = [line.split() for line in host.read_or_empty(f"/proc/{process}/mountinfo").splitlines()]
    found = []
    for words in lines:
        if words[2:3] == [mount.number] and "-" in words[6:]:
            tags = (word.partition(":") for word in words[6 : words.index("-", 6)])
            found.append(next((number for kind, _, number in tags if kind in kinds), ""))
    return found


def _find_users(host: Host, place: str) -> str:
    """Who uses the file system, as far as is known; empty where nobody is found."""
    found = []
    for pid in (name for name in host.names("/proc") if is_count(name)):
        links = ["cwd", "root", *(f"fd/{number}" for number in host.names(f"/proc/{pid}/fd"))]
        paths = [path for link in links if not isinstance(path := host.readlink(f"/proc/{pid}/{link}"), Missing)]
        if any(path == place or path.startswith(f"{place}/") for path in paths):
            name = host.read(f"/proc/{pid}/comm")
            found.append(pid if isinstance(name, Missing) else f"{name.strip()} ({pid})")
    return f"; in use by {', '.join(found[:5])}" if found else ""
