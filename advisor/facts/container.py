"""Whether the host that is read is a container: which namespaces are its own, and what its manager left there.

A container has a user namespace of its own, or a PID namespace with a root file system or a manager of its own. A
network or mount namespace alone (``ip netns exec``, a service with PrivateNetwork=) makes none; nor does a chroot, nor
a captured tree that is read from within a container. Where the namespaces cannot be read, it is unknown.

The namespaces in which the kernel starts have fixed numbers (linux/nsfs.h: ``enum init_ns_ino``; those of the network
and of mounts since Linux 6.18). That of the network also shows itself by parameters that no other one has
(net/core/sysctl_net_core.c: ``net_core_table``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from advisor.facts.mounts import ANONYMOUS_KINDS, Mount, read_mounts
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

ContainerState = Literal["container", "host", "unknown"]
Ownership = Literal["initial", "own", "unknown"]

INITIAL: Mapping[str, int] = {
    "cgroup": 0xEFFFFFFB,
    "ipc": 0xEFFFFFFF,
    "mnt": 0xEFFFFFF8,
    "net": 0xEFFFFFF9,
    "pid": 0xEFFFFFFC,
    "user": 0xEFFFFFFD,
    "uts": 0xEFFFFFFE,
}
_NAMESPACE = lazy_regex(r"([a-z]{1,20}):\[([0-9]{1,20})\]")
_KUBELET = lazy_regex(r"/pods/[0-9a-f-]{32,36}/")
_CGROUP = lazy_regex(r"[/-](docker|libpod|lxc|kubepods|crio|cri-containerd|buildkit)\b")
_STORAGE = lazy_regex(r"/(docker|containers/storage)/")
"""In the root of a container's mount, where no overlay holds it (the drivers btrfs, zfs and vfs)."""
_MANAGER = lazy_regex(r"[a-z-]{2,20}")
_ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"


class Container(msgspec.Struct, frozen=True):
    """``manager`` is in the words of systemd-detect-virt(1), None where it left no mark; ``orchestrator``: Kubernetes.

    ``namespaces``: of each kind (namespaces(7)) whether it is the one in which the kernel started or one of its own.
    ``read_only``: of /proc/sys and /sys, what is mounted read-only; ``writable``: directories below these that are
    mounted on their own and are not (LXC and systemd-nspawn leave /proc/sys/net so). ``runs_systemd``: whether systemd,
    which applies sysctl.d(5), runs in it. ``evidence``: what the state was concluded from.
    """

    state: ContainerState = "unknown"
    manager: str | None = None
    orchestrator: Literal["kubernetes"] | None = None
    namespaces: Mapping[str, Ownership] = {}
    read_only: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    runs_systemd: bool = False
    evidence: tuple[str, ...] = ()

    @property
    def is_inside(self) -> bool:
        return self.state == "container"

    def can_write(self, path: str) -> bool:
        """Whether no read-only mount that is known lies nearest to ``path``."""
        nearest = max(
            (place for place in (*self.read_only, *self.writable) if path.startswith(f"{place}/")), key=len, default=""
        )
        return nearest not in self.read_only

    @property
    def words(self) -> str:
        """``a container (podman)``; without the name where that is not known."""
        name = self.orchestrator or (self.manager if self.manager != "container-other" else None)
        return f"a container ({name})" if name else "a container"


def read_container(host: Host) -> Container:
    """What is known of the container that the host is; its state is unknown where nothing decides it."""
    return host.read_once("container", lambda: _read_container(host))


def _read_container(host: Host) -> Container:
    listed = read_mounts(host)
    mounts = () if isinstance(listed, Missing) else listed
    root = next((mount for mount in reversed(mounts) if mount.target == "/"), None)
    is_overlay = root is not None and root.kind in ("overlay", "overlayfs", "fuse-overlayfs", "fuse.fuse-overlayfs")
    has_own_root = is_overlay or (root is not None and _is_part(root))
    namespaces = {name: _find_ownership(host, name) for name in INITIAL}
    is_stored = root is not None and _STORAGE.search(root.root) is not None
    said = host.read_text("/run/systemd/container") or host.read_text("/run/host/container-manager")
    first = _read_first_process(host)
    is_apart = has_own_root or is_stored or namespaces["pid"] == "own"
    marks = dict(_find_marks(host, said, first, is_apart=is_apart))
    pod = _find_pod(host, mounts)
    user, pid = namespaces["user"], namespaces["pid"]
    is_marked = bool(said or first) or (bool(marks or pod) and (is_overlay or is_stored))
    state: ContainerState = "unknown"
    if user == "own" or is_marked or (pid == "own" and (has_own_root or bool(marks or pod))):
        state = "container"
    elif user == pid == "initial":
        state = "host"
    evidence = [f"the {name} namespace is not the initial one" for name, whose in namespaces.items() if whose == "own"]
    if state == "container":
        evidence += [*([f"the root file system is {root.kind}"] if root and is_overlay else []), *marks.values(), *pod]
    elif state == "host":
        evidence.append("the user and PID namespaces are the initial ones")
    else:
        evidence += [
            f"the {name} namespace could not be read" for name in ("user", "pid") if _is_unknown(namespaces, name)
        ]
        evidence += ["there is neither a root file system of its own nor a mark of a manager"] if pid == "own" else []
    is_inside = state == "container"
    read_only = tuple(place for place in ("/proc/sys", "/sys") if _is_read_only(place, mounts))
    return Container(
        state=state,
        manager=next(iter(marks), None) if is_inside else None,
        orchestrator="kubernetes" if is_inside and pod else None,
        namespaces=namespaces,
        read_only=read_only,
        writable=tuple(_find_writable(read_only, mounts)),
        runs_systemd=is_inside and host.is_dir("/run/systemd/system"),
        evidence=tuple(evidence),
    )


def _is_part(root: Mount) -> bool:
    """Whether the root is a directory of a file system that has more; a host's own is on subvolumes and with OSTree."""
    return root.root != "/" and root.kind not in ANONYMOUS_KINDS and not root.root.startswith("/ostree/")


def _is_unknown(namespaces: Mapping[str, Ownership], name: str) -> bool:
    return namespaces[name] == "unknown"


def _find_ownership(host: Host, name: str) -> Ownership:
    text = host.readlink(f"/proc/self/ns/{name}")
    found = None if isinstance(text, Missing) else _NAMESPACE.fullmatch(text)
    number = int(found[2]) if found and found[1] == name else None
    if number == INITIAL[name]:
        return "initial"
    if name == "net":
        # Of all namespaces only the initial one has the first.
        if host.exists("/proc/sys/net/core/netdev_max_backlog"):
            return "initial"
        return "own" if host.exists("/proc/sys/net/core/somaxconn") else "unknown"
    return "own" if number is not None and (name != "mnt" or _has_fixed_mounts(host)) else "unknown"


def _has_fixed_mounts(host: Host) -> bool:
    """Whether the number of the initial mount namespace is fixed: since Linux 6.18."""
    release = re.match(r"([0-9]{1,3})\.([0-9]{1,4})", host.read_or_empty("/proc/sys/kernel/osrelease"))
    return release is not None and (int(release[1]), int(release[2])) >= (6, 18)


def _read_first_process(host: Host) -> str | None:
    """What the environment of PID 1 names, as systemd-detect-virt(1) reads it: LXC leaves nothing else where systemd
    does not run. Root alone may read it, and no capture holds it."""
    text = host.read_or_empty("/proc/1/environ") if host.is_live else ""
    found = next((one for one in text.split("\0") if one.startswith("container=")), "")
    name = found.strip().partition("=")[2]
    return name if _MANAGER.fullmatch(name) else None


def _find_marks(host: Host, said: str | None, first: str | None, *, is_apart: bool) -> Iterator[tuple[str, str]]:
    """Managers, each with what names it; the surest first."""
    if said:
        yield said, f"/run/systemd/container or /run/host/container-manager names {said}"
    if first:
        yield first, f"the environment of PID 1 names {first}"
    for mark, manager in (("/run/.containerenv", "podman"), ("/.dockerenv", "docker")):
        # Machine images that were made from a container image keep its mark; neither root nor processes are their own.
        if is_apart and host.exists(mark):
            yield manager, f"{mark} is there"
    named = os.environ.get("container", "") if host.is_live else ""  # noqa: SIM112 (systemd's own name)
    if _MANAGER.fullmatch(named):
        yield named, f"the environment variable container is {named}"
    if found := _CGROUP.search(host.read_text("/proc/self/cgroup") or ""):
        managers = {"docker": "docker", "libpod": "podman", "lxc": "lxc"}
        yield managers.get(found[1], "container-other"), f"its control group is one of {found[1]}"


def _find_pod(host: Host, mounts: Sequence[Mount]) -> tuple[str, ...]:
    """What shows that Kubernetes started it; nothing where nothing does."""
    if any(mount.target in ("/etc/hosts", "/dev/termination-log") and _KUBELET.search(mount.root) for mount in mounts):
        return ("files of the kubelet are mounted into it",)
    if host.exists(_ACCOUNT):
        return (f"{_ACCOUNT} is there",)
    # A capture does not hold the environment: where it is the only evidence, only the running host has it.
    if host.is_live and "KUBERNETES_SERVICE_HOST" in os.environ:
        return ("the environment variable KUBERNETES_SERVICE_HOST is set",)
    return ()


def _find_writable(closed: Sequence[str], mounts: Sequence[Mount]) -> Iterator[str]:
    targets = dict.fromkeys(mount.target for mount in mounts)
    for target in sorted(targets):
        if any(target.startswith(f"{place}/") for place in closed) and not _is_read_only(target, mounts):
            yield target


def _is_read_only(place: str, mounts: Sequence[Mount]) -> bool:
    """Whether the mount on which it lies, the last of those that are nearest, is read-only."""
    above = [mount for mount in mounts if place == mount.target or place.startswith(f"{mount.target.rstrip('/')}/")]
    nearest = max((len(mount.target) for mount in above), default=0)
    last = next((mount for mount in reversed(above) if len(mount.target) == nearest), None)
    return last is not None and "ro" in last.options.split(",")
