"""Whether a host is a container, from trees; `tests/cli/test_containers.py` asks the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.facts.system.identity import INITIAL, Container, read_container, read_identity
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, NoCommands
from tests.cases import read_cases
from tests.trees import host_of, make_tree

OVERLAY = "30 29 0:40 / / rw,relatime - overlay overlay rw,lowerdir=/l\n"
DISK = "30 29 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
DIRECTORY = "30 29 8:1 /var/lib/machines/one / rw,relatime - ext4 /dev/sda1 rw\n"
SUBVOLUME = "30 29 0:31 /@/.snapshots/1/snapshot / rw,relatime - btrfs /dev/sda2 rw\n"
DEPLOYED = "30 29 8:1 /ostree/deploy/fedora/deploy/1.0 / rw,relatime - xfs /dev/sda1 rw\n"
READ_ONLY = "40 30 0:5 /sys /proc/sys ro,nosuid - proc proc rw\n41 30 0:6 / /sys ro - sysfs sysfs ro\n"
KUBELET = "/var/lib/kubelet/pods/11111111-2222-3333-4444-555555555555"
POD = f"42 30 8:1 {KUBELET}/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n"
# Storage drivers without an overlay: btrfs and vfs.
DOCKER_BTRFS = "30 29 0:31 /@/var/lib/docker/btrfs/subvolumes/0a1b / rw - btrfs /dev/sda2 rw\n"
PODMAN_VFS = "30 29 8:1 /var/lib/containers/storage/vfs/dir/0a1b / rw - ext4 /dev/sda1 rw\n"
OWN = 4026532533


def read(where: Path, mounts: str | None, own: str | None = "", files: dict[str, str] | None = None) -> Container:
    """``own``: the namespaces that are not the initial ones; None where they cannot be read."""
    links = {f"/proc/self/ns/{name}": f"{name}:[{number}]" for name, number in INITIAL.items()}
    links |= {f"/proc/self/ns/{name}": f"{name}:[{OWN}]" for name in (own or "").split()}
    tree = {"/proc/self/mountinfo": mounts} if mounts else {}
    tree |= {"/proc/sys/kernel/osrelease": "6.12.1\n"} | (files or {})
    return read_container(host_of(make_tree(where, tree, {} if own is None else links)))


DATA = read_cases(__file__, globals())


@pytest.mark.parametrize(("mounts", "own", "files", "state", "manager"), DATA["state"])
def test_state(
    tmp_path: Path, mounts: str | None, own: str | None, files: dict[str, str], state: str, manager: str | None
) -> None:
    found = read(tmp_path, mounts, own, files)
    assert (found.state, found.manager) == (state, manager)
    assert found.evidence


def test_a_pod_is_known_by_the_files_of_the_kubelet(tmp_path: Path) -> None:
    own = "pid net ipc uts cgroup"
    found = read(tmp_path, OVERLAY + POD + READ_ONLY, own, {"/proc/sys/net/core/somaxconn": "4096\n"})
    assert (found.state, found.orchestrator, found.words) == ("container", "kubernetes", "a container (kubernetes)")
    assert found.read_only == ("/proc/sys", "/sys")
    assert found.namespaces == {name: "own" if name in own.split() else "initial" for name in INITIAL}


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    found = read(tmp_path, DISK, None)
    assert found.evidence == ("the user namespace could not be read", "the pid namespace could not be read")


@pytest.mark.parametrize(
    ("keys", "expected"), [(("netdev_max_backlog", "somaxconn"), "initial"), (("somaxconn",), "own"), ((), "unknown")]
)
def test_the_network_namespace_shows_itself_by_its_parameters(
    tmp_path: Path, keys: tuple[str, ...], expected: str
) -> None:
    files = {f"/proc/sys/net/core/{key}": "1\n" for key in keys}
    assert read(tmp_path, DISK, None, files).namespaces["net"] == expected


@pytest.mark.parametrize(("release", "expected"), [("6.12.1", "unknown"), ("6.18.0-1-amd64", "own"), ("7.0", "own")])
def test_the_number_of_the_first_mount_namespace_is_fixed_since_6_18(
    tmp_path: Path, release: str, expected: str
) -> None:
    found = read(tmp_path, DISK, "mnt", {"/proc/sys/kernel/osrelease": release})
    assert found.namespaces["mnt"] == expected


def test_a_later_mount_decides_what_is_read_only(tmp_path: Path) -> None:
    again = "50 40 0:5 /sys /proc/sys rw - proc proc rw\n"
    assert read(tmp_path, DISK + READ_ONLY + again).read_only == ("/sys",)


def test_a_container_without_a_name_is_no_bare_metal(tmp_path: Path) -> None:
    links = {"/proc/self/ns/user": f"user:[{OWN}]"}
    host = host_of(make_tree(tmp_path, {"/proc/cpuinfo": "flags : fpu cx8\n"}, links))
    assert read_identity(host, Unknowns()).virtualization == "container-other"


@pytest.mark.parametrize(("environment", "manager"), DATA["the_environment_of_the_first_process"])
def test_the_environment_of_the_first_process_names_the_manager(environment: bytes | None, manager: str | None) -> None:
    """What LXC leaves where systemd does not run (Alpine): no session inherits it, and root alone may read it."""
    files = {"/proc/self/mountinfo": DISK.encode(), "/proc/sys/kernel/osrelease": b"6.12.1\n"}
    files |= {} if environment is None else {"/proc/1/environ": environment}
    links = {f"/proc/self/ns/{name}": f"{name}:[{INITIAL[name]}]" for name in INITIAL} | {
        "/proc/self/ns/pid": f"pid:[{OWN}]"
    }
    host = Host(MemoryFiles(files, links, frozenset()), NoCommands(), is_live=True, is_root=True)
    found = read_container(host)
    assert (found.state, found.manager) == (("unknown", None) if manager is None else ("container", manager))
