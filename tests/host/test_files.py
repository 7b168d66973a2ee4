"""Reading files: three outcomes, no way out of a root, no hang, whatever lies there."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.host import DirectoryFiles, FileSource, MemoryFiles, Missing
from advisor.host.files import MAX_FILE_BYTES, open_given
from tests.trees import make_tree

Make = Callable[[Mapping[str, str], Mapping[str, str]], FileSource]


@pytest.fixture(params=["directory", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """A source of either kind from files and links; what lies next to the directory is none of its business."""

    def on_disk(files: Mapping[str, str], links: Mapping[str, str]) -> FileSource:
        (tmp_path / "secret").write_text("secret")
        return DirectoryFiles(str(make_tree(tmp_path / "root", files, links)))

    def in_memory(files: Mapping[str, str], links: Mapping[str, str]) -> FileSource:
        return MemoryFiles({path: text.encode() for path, text in files.items()}, links)

    return on_disk if request.param == "directory" else in_memory


def state(answer: object) -> object:
    return answer.state if isinstance(answer, Missing) else answer


LINKS = {
    "/out": "/../secret",
    "/up": "../../../../secret",
    "/d/up": "../../secret",
    "/absolute": "/d/f",
    "/d/absolute": "/dir/f",
    "/relative": "d/../d/./f",
    "/through": "dir/f",
    "/dir": "/d/",
    "/loop": "loop",
    "/ping": "/pong",
    "/pong": "ping",
    "/dangling": "nowhere/f",
}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        *((path, b"inside") for path in ("/d/f", "//d/./f/", "/../d/f", "/absolute", "/d/absolute", "/relative")),
        *((path, b"inside") for path in ("/through", "/dir/f")),
        *((path, "absent") for path in ("/d/up", "/out", "/up", "/../secret", "/dangling", "/d/f/g", "/nowhere")),
        *((path, "absent") for path in ("/d/\0", "/d\0/f", "/\ud800/f")),
        *((path, "unreadable") for path in ("/loop", "/ping", "/loop/f", "/d", "/")),
        ("/" + "x" * 300, "absent or unreadable"),
    ],
)
def test_a_root_is_a_root(make: Make, path: str, wanted: bytes | str) -> None:
    source = make({"/d/f": "inside"}, LINKS)
    found = state(source.read(path))
    assert found == wanted or (isinstance(found, str) and found in str(wanted))


def test_what_lies_where(make: Make) -> None:
    source = make({"/d/f": "inside"}, LINKS)
    assert source.real("/through") == "/d/f"
    assert source.readlink("/dir/up") == "../../secret"
    assert source.listdir("/dir") == ("absolute", "f", "up")
    assert source.is_dir("/dir")
    assert not source.is_dir("/loop")
    assert [state(source.listdir(path)) for path in ("/nowhere", "/loop")] == ["absent", "unreadable"]
    assert [state(source.readlink(path)) for path in ("/d", "/d/f", "/nowhere", "/", "/..")] == ["absent"] * 5
    # 40 links are followed, as the kernel does, and no more.
    chain = make({"/end": "x"}, {f"/l{n}": f"l{n + 1}" for n in range(41)} | {"/l41": "end"})
    assert [state(chain.read(f"/l{n}")) for n in (1, 2)] == ["unreadable", b"x"]


@pytest.mark.parametrize("root", ["/", "here"])
@pytest.mark.parametrize("path", ["/a\0b", "/tmp/\0", "\0", "/\ud800", "relative/\0", "", "/" + "x/" * 3000])
def test_a_name_that_no_file_can_have(root: str, path: str, tmp_path: Path) -> None:
    source = DirectoryFiles(root if root == "/" else str(tmp_path))
    answers = (
        source.read(path + "x"),
        source.listdir(path + "x"),
        source.readlink(path + "x"),
        source.real(path + "x"),
    )
    assert all(isinstance(answer, Missing) for answer in answers)
    assert not source.is_dir(path + "x")


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
STEPS = st.lists(NAMES | st.sampled_from(["..", ".", "", "a"]), min_size=1, max_size=5).map("/".join).filter(len)


@settings(deadline=None)
@given(st.dictionaries(PATHS, st.just("x"), max_size=3), st.dictionaries(PATHS, STEPS, max_size=5), STEPS)
def test_a_directory_and_an_archive_answer_alike(files: dict[str, str], links: dict[str, str], asked: str) -> None:
    # A file system cannot hold one name twice, nor a file with something below it.
    taken: dict[str, str] = {}
    for path in [*files, *links]:
        if not any(f"{path}/".startswith(f"{one}/") or f"{one}/".startswith(f"{path}/") for one in taken):
            taken[path] = links.get(path, "")
    some = {path: "x" for path in taken if path in files}
    more = {path: target for path, target in links.items() if path in taken and path not in files}
    memory = MemoryFiles(dict.fromkeys(some, b"x"), more)
    with tempfile.TemporaryDirectory() as root:
        disk = DirectoryFiles(str(make_tree(Path(root), some, more)))
        assert all_of(disk, "/" + asked) == all_of(memory, "/" + asked)


def all_of(source: FileSource, path: str) -> list[object]:
    return [source.read(path), source.listdir(path), source.real(path), source.readlink(path), source.is_dir(path)]


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    # Opening it would wait for a writer that never comes.
    assert DirectoryFiles(str(tmp_path)).read("/fifo") == Missing("unreadable", "not a regular file")


def test_a_device_node_is_not_opened(tmp_path: Path) -> None:
    try:
        # Of no driver: opening it would fail with ENXIO, and that of a watchdog would arm it.
        os.mknod(tmp_path / "node", 0o600 | stat.S_IFCHR, os.makedev(511, 7))
    except PermissionError:
        pytest.skip("making a device node needs root")
    assert DirectoryFiles(str(tmp_path)).read("/node") == Missing("unreadable", "not a regular file")


def test_a_huge_file_is_read_up_to_a_bound(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    os.truncate(tmp_path / "f", 1 << 40)
    content = DirectoryFiles(str(tmp_path)).read("/f")
    assert isinstance(content, bytes)
    assert MAX_FILE_BYTES <= len(content) < 2 * MAX_FILE_BYTES


def test_the_kernel_says_why() -> None:
    found = DirectoryFiles("/").read("/proc/self/mem")
    assert found == Missing("unreadable", "Input/output error")


def as_nobody(work: Callable[[], object]) -> object:
    """What ``work`` gives in a child process without rights."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        answer: object = json.loads(file.read())
    os.waitpid(child, 0)
    return answer


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
@pytest.mark.parametrize("is_live", [False, True])
def test_what_a_user_may_not_read(is_live: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = make_tree(Path(name), {"/open": "x", "/f": "x", "/d/f": "x"})
        for path, mode in ((root, 0o755), (root / "f", 0), (root / "d", 0)):
            path.chmod(mode)
        files = DirectoryFiles("/" if is_live else name)

        def answers() -> list[object]:
            place = name if is_live else ""
            asked = [files.read(place + path) for path in ("/open", "/f", "/d/f")] + [files.listdir(place + "/d")]
            return [one.why if isinstance(one, Missing) else str(one) for one in asked]

        assert as_nobody(answers) == ["b'x'"] + ["Permission denied"] * 3


def test_a_given_path_with_a_null_byte_is_a_missing_file() -> None:
    with pytest.raises(FileNotFoundError):
        open_given(Path("/\0"))
