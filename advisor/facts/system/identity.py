"""Who the host is: name, kernel, distribution, virtualisation, vendor, cloud."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from advisor.facts.block.mounts import ANONYMOUS_KINDS, Mount, read_mounts
from advisor.facts.processors.power import parse_flags
from advisor.facts.system.memory import parse_meminfo
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

# Whether the host that is read is a container: which namespaces are its own, and what its manager left there.

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


# The first is a link to the second; captures may lack it.
_DMI_PLACES = ("/sys/class/dmi/id", "/sys/devices/virtual/dmi/id")
_DMI_NAMES = ("sys_vendor", "product_name", "board_vendor", "bios_vendor", "bios_version", "chassis_asset_tag")
# What the firmware tables of a virtual machine begin with, in the words of systemd-detect-virt(1).
_DMI_HYPERVISORS = (
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "microsoft"),
    ("Apple Virtualization", "apple"),
)
_AZURE_ASSET_TAG = "7783-7084-3265-9085-8269-3286-77"
# Of virtual machines and of bare metal (cloud-init, ds-identify).
_ORACLE_ASSET_TAG = "OracleCloud.com"
# What every host has, and the file that is read for it first.
_NEEDED = {
    "hostname": "/proc/sys/kernel/hostname",
    "kernel": "/proc/sys/kernel/osrelease",
    "os": "/etc/os-release",
    "architecture": "/proc/sys/kernel/arch",
    "virtualization": "/proc/cpuinfo",
    "memory_bytes": "/proc/meminfo",
    "machine_id": "/etc/machine-id",
    "boot_id": "/proc/sys/kernel/random/boot_id",
}


class Cloud(msgspec.Struct, frozen=True):
    """``provider`` is aws, azure, gcp or oci; ``instance_type`` None where the firmware does not report it."""

    provider: str
    instance_type: str | None


class Identity(msgspec.Struct, frozen=True):
    """``memory_bytes`` is MemTotal; ``machine_id`` ties a rollback script to its host.

    ``virtualization`` is in the words of systemd-detect-virt(1), ``none`` for bare metal.
    """

    hostname: str | None
    kernel: str | None
    os: str | None
    architecture: str | None
    virtualization: str | None
    vendor: str | None
    product: str | None
    memory_bytes: int | None
    machine_id: str | None
    boot_id: str | None
    cloud: Cloud | None


def read_identity(host: Host, unknown: Unknowns) -> Identity:
    """Who the host is. What every host has (a name, a kernel, memory …) is noted where it cannot be had."""
    place = _dmi_place(host)
    found = ((name, host.read_text(f"{place}/{name}")) for name in _DMI_NAMES)
    dmi = {name: text for name, text in found if text}
    kernel = _read_kernel(host)
    cpuinfo = host.read_text("/proc/cpuinfo") or ""
    identity = Identity(
        hostname=host.read_text("/proc/sys/kernel/hostname") or host.read_text("/etc/hostname"),
        kernel=kernel,
        os=_read_os(host),
        architecture=_read_architecture(host, kernel, cpuinfo),
        virtualization=_name_container(host) or _detect_virtualization(host, dmi, cpuinfo),
        vendor=dmi.get("sys_vendor"),
        product=dmi.get("product_name") or host.read_text("/proc/device-tree/model"),
        memory_bytes=parse_meminfo(host.read_text("/proc/meminfo") or "").get("MemTotal"),
        machine_id=host.read_text("/etc/machine-id"),
        boot_id=host.read_text("/proc/sys/kernel/random/boot_id"),
        cloud=_detect_cloud(host, dmi),
    )
    for name, path in _NEEDED.items():
        if getattr(identity, name) is None:
            text = host.read(path)
            unknown.note(f"host.{name}", f"{path}: {text.why if isinstance(text, Missing) else 'not in it'}")
    if identity.cloud and identity.cloud.instance_type is None:
        unknown.note("host.cloud.instance_type", f"the firmware of {identity.cloud.provider} does not report it")
    return identity


def parse_os_release(text: str) -> dict[str, str]:
    """Names and values of os-release(5), unquoted."""
    values: dict[str, str] = {}
    for name, value in re.findall(r"^[ \t]*(\w+)=(.*)$", text, re.MULTILINE | re.ASCII):
        bare = value.strip()
        if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'":
            bare = bare[1:-1]
            bare = re.sub(r"\\([\"$\\`'])", r"\1", bare) if "\\" in bare else bare
        values[name] = bare
    return values


def is_ec2_uuid(uuid: str) -> bool:
    """Whether a Xen guest's UUID is Amazon's: it begins ``ec2``, or would if its first group were byte-swapped."""
    first = uuid.strip().lower().partition("-")[0]
    swapped = "".join(re.findall("..", first)[::-1])
    return len(first) == 8 and (first.startswith("ec2") or swapped.startswith("ec2"))


def _dmi_place(host: Host) -> str:
    return next((place for place in _DMI_PLACES if host.is_dir(place)), _DMI_PLACES[0])


def _read_kernel(host: Host) -> str | None:
    release = host.read_text("/proc/sys/kernel/osrelease")
    if release is None and (found := re.match(r"Linux version (\S+)", host.read_text("/proc/version") or "")):
        return found[1]
    return release


def _read_os(host: Host) -> str | None:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        values = parse_os_release(host.read_text(path) or "")
        if name := values.get("PRETTY_NAME") or values.get("NAME"):
            return name
    # RHEL 6 and its kin.
    return host.read_text("/etc/redhat-release")


def _read_architecture(host: Host, kernel: str | None, cpuinfo: str) -> str | None:
    """As ``uname -m`` says: from the kernel (6.1), its release, the command, or the processor's features."""
    if architecture := host.read_text("/proc/sys/kernel/arch"):
        return architecture
    if found := re.search(r"[.-](x86_64|aarch64|ppc64le|ppc64|s390x|amd64|arm64)$", kernel or ""):
        return {"amd64": "x86_64", "arm64": "aarch64"}.get(found[1], found[1])
    done = host.run(["uname", "-m"])
    if not isinstance(done, Missing) and done.ok and done.stdout.strip():
        return done.stdout.strip()
    flags = parse_flags(cpuinfo[:16384])
    if {"fpu", "cx8"} <= flags:
        return "x86_64" if "lm" in flags else "i686"
    if re.search(r"^vendor_id\s*: IBM/S390", cpuinfo, re.MULTILINE):
        return "s390x"
    if re.search(r"^arch\s*: IA-64", cpuinfo, re.MULTILINE):
        return "ia64"
    found = re.search(r"^CPU architecture\s*: (7|8|AArch64)", cpuinfo, re.MULTILINE)
    return None if not found else "armv7l" if found[1] == "7" else "aarch64"


def _name_container(host: Host) -> str | None:
    container = read_container(host)
    return container.manager or "container-other" if container.is_inside else None


def _detect_virtualization(host: Host, dmi: Mapping[str, str], cpuinfo: str) -> str | None:
    """What it runs on; None where neither firmware nor processor says so, nor that it is bare metal."""
    if host.read_text("/sys/hypervisor/type") == "xen":
        return "none" if "control_d" in (host.read_text("/proc/xen/capabilities") or "") else "xen"
    if hypervisor := _dmi_hypervisor(host, dmi) or _firmware_hypervisor(host):
        return hypervisor
    flags = parse_flags(cpuinfo[:16384])
    if "hypervisor" in flags:
        return _detect_paravirtual(host, dmi)
    # x86 processors set the flag under every hypervisor; elsewhere firmware tables that name none must do.
    return "none" if {"fpu", "cx8"} <= flags or "sys_vendor" in dmi else None


def _dmi_hypervisor(host: Host, dmi: Mapping[str, str]) -> str | None:
    if dmi.get("sys_vendor") == "Amazon EC2" and dmi.get("product_name", "").partition(".")[2].startswith("metal"):
        return "none"
    # Microsoft sells bare metal too.
    if dmi.get("sys_vendor") == "Microsoft Corporation" and dmi.get("product_name") == "Virtual Machine":
        return "microsoft"
    for name in ("product_name", "sys_vendor", "board_vendor", "bios_vendor"):
        for start, hypervisor in _DMI_HYPERVISORS:
            if dmi.get(name, "").startswith(start):
                return _detect_paravirtual(host, dmi) if hypervisor == "qemu" else hypervisor
    return None


def _detect_paravirtual(host: Host, dmi: Mapping[str, str]) -> str:
    """By the clock that a hypervisor offers: QEMU with KVM has one on x86, QEMU alone does not."""
    clocks = host.read_text("/sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
    if "kvm-clock" in clocks.split():
        return "kvm"
    if "hyperv_clocksource" in clocks:
        return "microsoft"
    return "qemu" if any(text.startswith("QEMU") for text in dmi.values()) else "vm-other"


def _firmware_hypervisor(host: Host) -> str | None:
    """From the device tree of ARM and POWER, or s390's /proc/sysinfo."""
    compatible = host.read_text("/proc/device-tree/hypervisor/compatible")
    if compatible:
        return next((name for name in ("kvm", "xen", "vmware") if name in compatible), "vm-other")
    if host.exists("/proc/device-tree/ibm,partition-name"):
        return "kvm" if host.exists("/proc/device-tree/chosen/qemu,graphic-width") else "powervm"
    sysinfo = host.read_text("/proc/sysinfo")
    if sysinfo is None:
        return None
    found = re.search(r"^VM00 Control Program:\s*(\S+)", sysinfo, re.MULTILINE)
    return "none" if not found else "zvm" if found[1].startswith("z/VM") else "kvm"


def _detect_cloud(host: Host, dmi: Mapping[str, str]) -> Cloud | None:
    """From the firmware alone: nothing is asked over the network."""
    if dmi.get("sys_vendor") == "Amazon EC2":
        return Cloud("aws", dmi.get("product_name"))
    if dmi.get("chassis_asset_tag") == _AZURE_ASSET_TAG:
        return Cloud("azure", None)
    if dmi.get("product_name") == "Google Compute Engine":
        return Cloud("gcp", None)
    if dmi.get("chassis_asset_tag") == _ORACLE_ASSET_TAG:
        return Cloud("oci", None)
    if dmi.get("bios_version", "").lower().endswith("amazon"):
        is_ec2_xen = True
    else:
        uuid = host.read_text("/sys/hypervisor/uuid")
        if uuid is None and dmi.get("sys_vendor") == "Xen":
            # Root only.
            uuid = host.read_text(f"{_dmi_place(host)}/product_uuid")
        is_ec2_xen = is_ec2_uuid(uuid or "")
    return Cloud("aws", None) if is_ec2_xen else None


# What was bought of volumes against what the machine carries. No host shows what was bought: the user declares it
# (``--volumes FILE``), and `advisor.limits.paths` works it out.


class PurchasedFigures(msgspec.Struct, frozen=True):
    """Of all volumes together: MB/s (10^6 bytes) or IOPS bought, what the machine carries for as long as one likes, and
    the fraction that cannot pass it."""

    unit: Literal["MB/s", "IOPS"]
    volumes: float
    machine: float
    machine_type: str
    unusable: float
    devices: tuple[str, ...]


class BurstingVolume(msgspec.Struct, frozen=True):
    """A volume that was bought with a bucket of credits: what it carries for ``seconds`` from a full bucket, and then
    for as long as one likes."""

    device: str
    unit: Literal["MB/s", "IOPS"]
    burst: float
    sustained: float
    seconds: float
