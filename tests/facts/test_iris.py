"""InterSystems IRIS: which instances, what their cpf says, and on which volume each of their directories lies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.block.block import Array
from advisor.facts.block.disks import Disk
from advisor.facts.block.filesystems import FileSystem
from advisor.facts.clusters.iris import (
    QLIST,
    Cpf,
    Iris,
    Listed,
    globals_bytes,
    only_known,
    pages_for,
    parse_cpf,
    parse_qlist,
    read_iris,
    refuses_large_pages,
    shared_bytes,
    wanted_pages,
)
from advisor.facts.host_facts import scan
from advisor.facts.redaction import without_secrets
from advisor.facts.unknown import IRIS_REGISTRY, Unknowns
from advisor.host import Completed, Host, MemoryFiles, Missing, RecordedCommands
from advisor.snapshot.archive import capture_host, open_snapshot
from tests.cases import read_cases
from tests.rules.build import array, disk, filesystem

DATA = read_cases(__file__, Cpf, Listed, array, filesystem)

CPF = DATA["CPF"]
LINE = "LIVE^/usr/irissys^2023.2.0.204.0^running, since Sat Jul 22 10:00:00 2023^iris.cpf^1972^52773^62972^ok^IRIS^^^\n"
MOUNTS = DATA["MOUNTS"]
FILESYSTEMS = DATA["FILESYSTEMS"]
ARRAYS = DATA["ARRAYS"]
DISKS = (disk("nvme0n1", partitions=("nvme0n1p1",), mountpoints=("/",)), disk("nvme9n1", mountpoints=("/iris/jrn1",)))


def machine(
    files: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
    qlist: Completed | Missing | None = None,
) -> Host:
    text = {"/proc/self/mountinfo": MOUNTS, "/usr/irissys/iris.cpf": CPF, **(files or {})}
    answers: dict[tuple[str, ...], Completed | Missing] = {} if qlist is None else {QLIST: qlist}
    source = MemoryFiles({path: one.encode() for path, one in text.items()}, links or {}, frozenset({IRIS_REGISTRY}))
    return Host(source, RecordedCommands(answers), is_root=True)


def read(
    host: Host,
    filesystems: tuple[FileSystem, ...] = FILESYSTEMS,
    arrays: tuple[Array, ...] = ARRAYS,
    disks: tuple[Disk, ...] = DISKS,
) -> tuple[tuple[Iris, ...], dict[str, str]]:
    unknown = Unknowns()
    found = read_iris(host, filesystems, arrays, disks, unknown)
    return found, {one.fact: one.why for one in unknown.listed()}


def test_the_settings_of_a_cpf() -> None:
    assert parse_cpf(CPF) == DATA["the_settings_of_a_cpf"]


@pytest.mark.parametrize(
    ("text", "found"),
    [*DATA["what_a_cpf_does_not_say"], ("[config]\nwijdir=/" + "x" * 5000 + "\nasyncwij=4\n", Cpf(asyncwij=4))],
)
def test_what_a_cpf_does_not_say(text: str, found: Cpf) -> None:
    assert parse_cpf(text) == found


def test_the_databases_of_a_cpf_are_bounded() -> None:
    text = "[Databases]\n" + "".join(f"D{n}=/d/{n}/\n" for n in range(5000))
    found, unknown = read(machine({"/usr/irissys/iris.cpf": text}, qlist=Completed(0, LINE, "")))
    assert len(parse_cpf(text).databases) == 256
    assert sum(place.role == "database" for place in found[0].places) == 256
    assert unknown == {"iris.LIVE.databases": "only the first 256 are looked at"}


PIECES = st.sampled_from(
    [
        "[config]",
        "[Journal]",
        "[Databases]",
        "[Startup]",
        "PasswordHash=secret",
        "globals=0,0,5",
        "=",
        ";",
        "[",
        "]",
        "\r",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=12), max_size=20).map("\n".join)


@given(TEXTS)
def test_what_is_captured_of_a_cpf_says_the_same_and_no_secret(text: str) -> None:
    kept = only_known(text)
    assert parse_cpf(kept) == parse_cpf(text)
    assert only_known(kept) == kept
    assert "PasswordHash" not in kept


def test_no_password_hash_is_captured() -> None:
    kept = without_secrets("/dur/LIVE.cpf", CPF.encode()).decode()
    assert "PasswordHash" not in kept
    assert "LibPath" not in kept
    assert "globals=0,0,589824,0,0,0" in kept


@pytest.mark.parametrize(("line", "found"), DATA["what_qlist_prints"])
def test_what_qlist_prints(line: str, found: tuple[Listed, ...]) -> None:
    assert parse_qlist(line) == found


def test_where_each_directory_lies() -> None:
    found, unknown = read(machine(qlist=Completed(0, LINE, "")))
    (one,) = found
    assert (one.name, one.version, one.running, one.cpf) == ("LIVE", "2023.2.0.204.0", True, "/usr/irissys/iris.cpf")
    places = {
        (place.role, place.name): (place.mountpoint, place.kind, place.device, place.disks) for place in one.places
    }
    assert places == {
        ("journal", ""): ("/iris/jrn1", "xfs", "nvme9n1", ("nvme9n1",)),
        ("alternate-journal", ""): ("/iris/jrn2", "nfs4", None, ()),
        ("wij", ""): ("/iris/wij", "xfs", "dm-1", ("nvme3n1",)),
        ("database", "IRISSYS"): ("/", "ext4", "nvme0n1p1", ("nvme0n1",)),
        ("database", "APP"): ("/iris/db", "xfs", "dm-0", ("nvme1n1", "nvme2n1")),
    }
    assert unknown == {}


def test_a_directory_behind_a_link_lies_where_the_link_leads() -> None:
    linked = machine({"/iris/db/jrn/x": ""}, {"/iris/jrn1": "/iris/db/jrn"}, Completed(0, LINE, ""))
    journal = read(linked)[0][0].places[0]
    assert (journal.directory, journal.device) == ("/iris/jrn1/", "dm-0")


def test_without_settings_of_its_own_all_is_in_the_manager_s_directory() -> None:
    plain = machine({"/usr/irissys/iris.cpf": "[config]\nwijdir=\n"}, qlist=Completed(0, LINE, ""))
    found = read(plain)[0][0].places
    assert {(place.role, place.directory) for place in found} == {
        ("journal", "/usr/irissys/mgr/journal"),
        ("wij", "/usr/irissys/mgr"),
    }
    assert {place.device for place in found} == {"nvme0n1p1"}


def test_the_upper_of_two_mounts_in_one_place_counts() -> None:
    again = MOUNTS + "30 20 0:50 / /iris/db rw - tmpfs tmpfs rw\n"
    found = read(machine({"/proc/self/mountinfo": again}, qlist=Completed(0, LINE, "")))[0][0]
    assert [place.kind for place in found.places if place.name == "APP"] == ["tmpfs"]


def test_a_durable_directory_holds_the_file_that_counts() -> None:
    line = LINE.replace("^IRIS^^^\n", "^IRIS^^^/dur\n")
    own = machine({"/dur/iris.cpf": "[config]\nAsyncwij=8\n"}, qlist=Completed(0, line, ""))
    assert read(own)[0][0].cpf == "/dur/iris.cpf"
    shipped = read(machine(qlist=Completed(0, line, "")))[0][0]
    assert shipped.cpf == "/usr/irissys/iris.cpf"


@pytest.mark.parametrize("answer", [None, Missing("unreadable", "no"), Completed(1, "", "denied")])
def test_without_qlist_the_programs_that_run_are_looked_at(answer: Completed | Missing | None) -> None:
    processes = {f"/proc/{pid}/comm": name for pid, name in ((7, "irisdb\n"), (8, "irisdb\n"), (9, "bash\n"))}
    programs = {"/proc/7/exe": "/data/iris/bin/irisdb", "/proc/9/exe": "/bin/bash"}
    host = machine({**processes, "/data/iris/iris.cpf": CPF}, programs, answer)
    found, unknown = read(host)
    assert [(one.name, one.directory, one.running) for one in found] == [(None, "/data/iris", True)]
    assert "iris" in unknown


def test_a_usual_directory_is_the_last_resort_and_no_instance_is_none() -> None:
    assert [one.directory for one in read(machine())[0]] == ["/usr/irissys"]
    bare = Host(MemoryFiles({}, {}, frozenset()), RecordedCommands({QLIST: Completed(0, LINE, "")}), is_root=True)
    # Without the registry's directory nothing is asked.
    assert read(bare) == ((), {})


def test_a_cpf_that_cannot_be_read_is_unknown() -> None:
    source = MemoryFiles({}, {}, frozenset({IRIS_REGISTRY}), {"/usr/irissys/iris.cpf": "Permission denied"})
    found, unknown = read(Host(source, RecordedCommands({QLIST: Completed(0, LINE, "")})))
    assert (found[0].settings, found[0].places) == (None, ())
    assert unknown["iris.LIVE.settings"] == "/usr/irissys/iris.cpf: Permission denied"


def test_a_snapshot_tells_the_same_and_holds_no_secret(tmp_path: Path) -> None:
    here = machine(qlist=Completed(0, LINE, ""))
    (tmp_path / "x").write_bytes(capture_host(here, scan))
    there = open_snapshot(tmp_path / "x")
    assert scan(there).iris == scan(here).iris != ()
    assert "PasswordHash" not in str(there.read("/usr/irissys/iris.cpf"))


@pytest.mark.parametrize(("cpf", "cache", "shared"), DATA["shared_memory_by_the_reference"])
def test_shared_memory_by_the_reference(cpf: Cpf, cache: int | None, shared: int | None) -> None:
    def mib(size: int | None) -> int | None:
        return None if size is None else size >> 20

    assert (mib(globals_bytes(cpf)), mib(shared_bytes(cpf))) == (cache, shared)


@given(st.integers(0, 1 << 50), st.sampled_from([1 << 21, 1 << 30]))
def test_pages_hold_all_and_not_one_more(size: int, page: int) -> None:
    pages = pages_for(size, page)
    assert (pages - 1) * page < size <= pages * page or size == pages == 0


def test_wanted_pages_have_some_to_spare() -> None:
    cpf = parse_cpf(CPF)
    shared = shared_bytes(cpf) or 0
    assert wanted_pages(cpf, 1 << 21) == pages_for(shared + shared * 5 // 100, 1 << 21)
    assert wanted_pages(Cpf(), 1 << 21) is None


@pytest.mark.parametrize(("memlock", "refuses"), [(None, False), (0, False), (1, False), (32, True), (41, True)])
def test_memlock_may_refuse_large_pages(memlock: int | None, *, refuses: bool) -> None:
    assert refuses_large_pages(Cpf(memlock=memlock)) is refuses
