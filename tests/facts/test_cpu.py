"""CPU facts of machines that are not among the captured ones, and of odd content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.facts.processors.cpu import Cpu, online_cpus, read_cpu
from advisor.facts.processors.cpulist import format_list, parse_allowed, read_allowed
from advisor.facts.processors.power import Processor, parse_cpuinfo, parse_flags, parse_model
from advisor.facts.unknown import Unknowns
from advisor.host import Host, MemoryFiles, Missing, NoCommands, tree_host
from tests.cases import read_cases
from tests.trees import make_tree

CPU = "/sys/devices/system/cpu"
NEW = "core_cpus_list package_cpus_list"
OLD = "thread_siblings_list core_siblings_list"
MASKS = "thread_siblings core_siblings"

Groups = Iterable[Iterable[int]]


class CountedFiles(MemoryFiles):
    """Files in memory that count how often one is read or listed."""

    reads = 0

    def read(self, path: str) -> bytes | Missing:
        self.reads += 1
        return super().read(path)


def in_memory(files: Mapping[str, str | bytes]) -> Host:
    contents = {path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()}
    return Host(CountedFiles(contents), NoCommands(), is_root=True)


def mask(cpus: Iterable[int]) -> str:
    return f"{sum(1 << cpu for cpu in cpus):x}"


def topology(cores: Groups, packages: Groups, names: str = NEW, **ids: Mapping[int, int]) -> dict[str, str]:
    """SideEffect files of each CPU in ``cores``, and its ids by file name."""
    files: dict[str, str] = {}
    core_name, package_name = names.split()
    for name, groups in ((core_name, cores), (package_name, packages)):
        for group in map(list, groups):
            text = format_list(group) if name.endswith("list") else mask(group)
            files |= {f"{CPU}/cpu{cpu}/topology/{name}": f"{text}\n" for cpu in group}
    for name, by_cpu in ids.items():
        files |= {f"{CPU}/cpu{cpu}/topology/{name}": f"{number}\n" for cpu, number in by_cpu.items()}
    return files


def look(files: Mapping[str, str | bytes]) -> tuple[Cpu, set[str]]:
    unknown = Unknowns()
    cpu = read_cpu(in_memory(files), unknown)
    return cpu, {entry.fact for entry in unknown.listed()}


def counts(files: Mapping[str, str | bytes]) -> tuple[int | None, int | None, int | None, int | None]:
    cpu, _ = look(files)
    return cpu.threads, cpu.cores, cpu.packages, cpu.threads_per_core


def runs(length: int, total: int) -> list[range]:
    return [range(first, first + length) for first in range(0, total, length)]


@pytest.mark.parametrize("names", [NEW, OLD, MASKS])
def test_s390_with_sockets_numbered_anew_in_each_book(names: str) -> None:
    """Two books of two sockets of three CPUs; the core id is the socket's, as older kernels say."""
    files = {f"{CPU}/online": "0-11\n"} | topology(
        runs(1, 12),
        runs(3, 12),
        names,
        physical_package_id={cpu: cpu // 3 % 2 + 1 for cpu in range(12)},
        core_id={cpu: cpu // 3 % 2 + 1 for cpu in range(12)},
        book_id={cpu: cpu // 6 for cpu in range(12)},
    )
    assert counts(files) == (12, 12, 4, 1)


def test_sockets_of_different_books_are_not_joined_although_their_core_ids_differ() -> None:
    files = {f"{CPU}/online": "0-3"} | topology(
        runs(1, 4),
        runs(2, 4),
        physical_package_id=dict.fromkeys(range(4), 1),
        core_id={cpu: cpu for cpu in range(4)},
        book_id={cpu: cpu // 2 for cpu in range(4)},
    )
    assert counts(files) == (4, 4, 2, 1)


def test_s390_by_ids_alone() -> None:
    files = {f"{CPU}/online": "0-7"} | topology(
        [],
        [],
        physical_package_id={cpu: cpu // 2 % 2 for cpu in range(8)},
        core_id={cpu: cpu for cpu in range(8)},
        book_id={cpu: cpu // 4 for cpu in range(8)},
    )
    assert counts(files) == (8, 8, 4, 1)


def test_power_smt8_switched_to_one_thread() -> None:
    """Offline threads have lost their topology, and their siblings' lists are online CPUs only; package ids are -1."""
    online = range(0, 32, 8)
    files = {f"{CPU}/online": "0,8,16,24\n", f"{CPU}/offline": "1-7,9-15,17-23,25-31", f"{CPU}/present": "0-31"}
    files |= topology(
        [[cpu] for cpu in online],
        [[0, 8], [16, 24]],
        physical_package_id=dict.fromkeys(online, -1),
        core_id={cpu: cpu for cpu in online},
    )
    files |= {f"{CPU}/cpu{cpu}/online": "1" if cpu in online else "0" for cpu in range(32)}
    assert counts(files) == (4, 4, 2, 1)
    cpu, unknown = look(files)
    assert cpu.offline == "1-7,9-15,17-23,25-31"
    assert unknown == {"cpu.model"}


def test_power_smt8_with_uneven_threads() -> None:
    """Core 0 runs eight threads, core 8 four; the kernel's masks still name all threads of a core."""
    files = {f"{CPU}/online": "0-11"} | topology(runs(8, 16), [range(16)], MASKS, physical_package_id={0: -1, 8: -1})
    assert counts(files) == (12, 2, 1, 8)


def test_arm_without_any_ids() -> None:
    files = {f"{CPU}/online": "0-3"} | topology(runs(1, 4), [range(4)], OLD)
    assert counts(files) == (4, 4, 1, 1)


def test_arm_without_topology_is_unknown_and_said_so() -> None:
    cpu, unknown = look({f"{CPU}/online": "0-3", "/proc/cpuinfo": "processor\t: 0\nCPU part\t: 0xd0c\n"})
    assert (cpu.threads, cpu.cores, cpu.packages, cpu.threads_per_core) == (4, None, None, None)
    assert {"cpu.cores", "cpu.packages"} <= unknown


def test_core_ids_without_package_ids_take_the_package_from_its_list() -> None:
    files = {f"{CPU}/online": "0-3", f"{CPU}/cpu0/topology/core_siblings": "3"}
    files |= {f"{CPU}/cpu2/topology/core_siblings": "c"} | topology([], [], core_id={0: 0, 1: 1, 2: 0, 3: 1})
    assert counts(files) == (4, 4, 2, 1)


def test_ia64_packages_that_share_an_id() -> None:
    """SGI boards give both processors of a board one package id and core id 0."""
    files = topology(
        runs(1, 8),
        runs(1, 8),
        MASKS,
        physical_package_id={cpu: cpu // 2 * 512 for cpu in range(8)},
        core_id=dict.fromkeys(range(8), 0),
    )
    assert counts(files) == (8, 8, 8, 1)


def test_a_package_split_by_cluster_on_die_is_one() -> None:
    """RHEL 7.0 shows each NUMA node of such a package as a package of its own."""
    files = {f"{CPU}/online": "0-7"} | topology(
        runs(1, 8),
        runs(2, 8),
        OLD,
        physical_package_id={cpu: cpu // 4 for cpu in range(8)},
        core_id={cpu: cpu % 4 for cpu in range(8)},
    )
    assert counts(files) == (8, 8, 2, 1)


def test_amd_compute_units_have_two_cores() -> None:
    core_ids = {cpu: cpu for cpu in range(8)}
    files = {f"{CPU}/online": "0-7"} | topology(runs(2, 8), [range(8)], OLD, core_id=core_ids)
    assert counts(files) == (8, 8, 1, 1)


def test_hybrid_processor() -> None:
    """Two cores with two threads and four with one."""
    files = {f"{CPU}/online": "0-7"} | topology([[0, 1], [2, 3], [4], [5], [6], [7]], [range(8)], core_id={0: 0, 1: 0})
    assert counts(files) == (8, 6, 1, 2)


def test_one_cpu_is_one_core_in_one_package() -> None:
    assert counts({f"{CPU}/online": "0"}) == (1, 1, 1, 1)


def big_host() -> dict[str, str]:
    """Four packages of 72 cores with two threads: the siblings 288 apart, as x86 numbers them."""
    cores = [[core, core + 288] for core in range(288)]
    packages = [[*range(first, first + 72), *range(first + 288, first + 360)] for first in range(0, 288, 72)]
    files = {f"{CPU}/online": "0-575", f"{CPU}/present": "0-575", f"{CPU}/possible": "0-575", f"{CPU}/offline": ""}
    return files | topology(
        cores,
        packages,
        physical_package_id={cpu: cpu % 288 // 72 for cpu in range(576)},
        core_id={cpu: cpu % 72 for cpu in range(576)},
    )


def test_576_cpus_with_less_than_one_read_per_cpu() -> None:
    files = big_host()
    assert counts(files) == (576, 288, 4, 2)
    host = in_memory(files)
    read_cpu(host, Unknowns())
    assert isinstance(host.files, CountedFiles)
    assert host.files.reads < 340


DATA = read_cases(__file__, Processor)


def test_kernel_without_lists(tmp_path: Path) -> None:
    """RHEL 5: CPU 0 cannot go offline and has no ``online`` file; CPU 3 is offline and has lost its topology."""
    files = topology([[0], [1], [2]], [[0, 1, 2]], MASKS) | DATA["kernel_without_lists"]
    unknown = Unknowns()
    cpu = read_cpu(tree_host(str(make_tree(tmp_path, files))), unknown)
    assert (cpu.online, cpu.present, cpu.offline, cpu.threads, cpu.cores) == ("0-2", "0-3", "3", 3, 3)


def test_a_cpu_without_topology_is_offline_where_others_have_one() -> None:
    files = topology([[0], [1]], [[0, 1]], MASKS) | {f"{CPU}/cpu2/crash_notes": "0"}
    assert online_cpus(in_memory(files)) == (0, 1)


def test_cpu_directories_beyond_the_online_ones_do_not_count() -> None:
    files = {f"{CPU}/online": "0-1", f"{CPU}/present": "0-1", f"{CPU}/possible": "0-1"}
    files |= topology(runs(1, 4), [range(4)])
    assert counts(files) == (2, 2, 1, 1)


def test_cpus_of_a_host_without_sysfs() -> None:
    stat = "cpu  1 2 3\ncpu0 1 2 3\ncpu2 1 2 3\nintr 5\n"
    assert online_cpus(in_memory({"/proc/stat": stat})) == (0, 2)
    assert online_cpus(in_memory({"/proc/cpuinfo": "processor\t: 0\n\nprocessor\t: 1\n"})) == (0, 1)


def test_a_host_that_shows_no_cpus() -> None:
    cpu, unknown = look({"/proc/version": "Linux"})
    assert cpu == Cpu(None, None, None, None, None, None, None, None, None)
    assert unknown == {"cpu.online", "cpu.model"}


@pytest.mark.parametrize("text", ["", "\0\0", "garbage", "0-", "-1", "1" * 100_000])
def test_an_odd_online_file_is_not_believed(text: str) -> None:
    files = topology([[0], [1]], [[0, 1]]) | {f"{CPU}/online": text}
    assert counts(files) == (2, 2, 1, 1)


STATUS = "Name:\tpython\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\nMems_allowed:\t3\nMems_allowed_list:\t0-1\n"


def test_allowed_are_those_of_the_status_that_are_online() -> None:
    cpu, _ = look({f"{CPU}/online": "0-1", "/proc/self/status": STATUS})
    assert cpu.allowed == "0-1"


def test_allowed_from_a_status_without_lists() -> None:
    assert parse_allowed("Cpus_allowed:\t00000000,0000000a\n", "cpus") == (1, 3)
    assert isinstance(parse_allowed("Name:\tx\n", "cpus"), Missing)
    odd = parse_allowed("Cpus_allowed_list:\t0-\n", "cpus")
    assert isinstance(odd, Missing)
    assert not odd.is_absent


def test_an_unreadable_status_makes_allowed_unknown() -> None:
    cpu, unknown = look({f"{CPU}/online": "0-1", "/proc/self/status": "Cpus_allowed_list:\t0-\n"})
    assert cpu.allowed is None
    assert "cpu.allowed" in unknown


@pytest.mark.parametrize(
    "files",
    DATA["allowed_by_cpuset"],
    ids=["cpuset file system", "cgroup 1", "cgroup 2, set in the parent", "by /proc/self/cgroup", "mounted elsewhere"],
)
def test_allowed_by_cpuset(files: dict[str, str]) -> None:
    assert read_allowed(in_memory(files), "cpus") == (1,)


def test_no_cpuset_is_no_limit() -> None:
    found = read_allowed(in_memory({"/proc/self/cpuset": "/"}), "cpus")
    assert isinstance(found, Missing)
    assert found.is_absent


X86 = DATA["X86"]
S390 = DATA["S390"]
ARM64 = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"


@pytest.mark.parametrize(("text", "model", "processors"), DATA["cpuinfo_of_each_architecture"])
def test_cpuinfo_of_each_architecture(text: str, model: str | None, processors: tuple[Processor, ...]) -> None:
    assert parse_model(text) == model
    assert parse_cpuinfo(text) == processors


def test_cores_and_packages_from_cpuinfo() -> None:
    """Two dies of one package count their cores from 0; two threads per core."""
    lines = [f"processor : {cpu}\nphysical id : {cpu // 8}\ncore id : {cpu % 2}\n\n" for cpu in range(16)]
    files = {f"{CPU}/online": "0-15", "/proc/cpuinfo": "".join(lines)}
    assert counts(files) == (16, 4, 2, 4)
    for cpu in range(16):
        files[f"{CPU}/cpu{cpu}/topology/die_cpus_list"] = format_list(range(cpu // 4 * 4, cpu // 4 * 4 + 4))
    assert counts(files) == (16, 8, 2, 2)


def test_flags_of_each_architecture() -> None:
    assert "lm" in parse_flags(X86)
    assert "zarch" in parse_flags(S390)
    assert "asimd" in parse_flags(ARM64)
    assert parse_flags("") == frozenset()


ODD = st.sampled_from(
    ["", "0", "1", "-1", "0-1", "0,1", "3", "\0", "x", "18446744073709551615", "0-", "2-3", "9" * 5000]
)
TOPOLOGY = (*NEW.split(), *MASKS.split(), "core_id", "physical_package_id", "die_cpus_list")
PATHS = [
    *(f"{CPU}/{name}" for name in ("online", "offline", "present")),
    *(f"{CPU}/cpu{cpu}/topology/{name}" for cpu in (0, 1) for name in TOPOLOGY),
    *("/proc/cpuinfo", "/proc/stat", "/proc/self/status", "/proc/self/cpuset"),
]


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(PATHS), st.one_of(ODD, st.text(max_size=20))))
def test_no_content_raises(files: dict[str, str]) -> None:
    cpu, unknown = look(files)
    assert (cpu.online is None) == ("cpu.online" in unknown)
    assert cpu.threads is None or cpu.cores is None or 1 <= cpu.cores <= cpu.threads
    assert cpu.packages is None or cpu.threads is None or 1 <= cpu.packages <= cpu.threads
