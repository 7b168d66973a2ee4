"""Root's writes end where they were meant to, whoever else can write along the way."""

from __future__ import annotations

import os
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from advisor.errors import CommandError
from advisor.host import PutFile, WriteFile, live_host
from advisor.host.putfile import put_file
from advisor.host.safe_open import AstrayError, directory, existing_file
from tests.trees import host_of, listing, make_tree

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="an attack of another user needs root to be set up")


def put(path: Path, content: bytes | None = b"new", mode: int = 0o644) -> None:
    put_file(str(path), content, mode=mode, uid=os.geteuid(), gid=os.getegid())


def give(path: Path, mode: int | None = None) -> Path:
    """To another user, the link itself where it is one."""
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    if mode is not None:
        path.chmod(mode)
    return path


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A directory of root's with a file of root's."""
    place = tmp_path / "victim"
    place.mkdir()
    (place / "f").write_bytes(b"root's own")
    return place


@contextmanager
def untouched(place: Path) -> Iterator[None]:
    before = listing(place)
    yield
    assert listing(place) == before


Trap = Callable[[Path, Path], Path]


def link_in_a_users_directory(where: Path, victim: Path) -> Path:
    (where / "home").mkdir()
    (where / "home" / "d").symlink_to(victim)
    give(where / "home")
    give(where / "home" / "d")
    return where / "home" / "d"


def roots_link_in_a_users_directory(where: Path, victim: Path) -> Path:
    # It was moved there, or is a second name of another link.
    (where / "home").mkdir()
    (where / "home" / "d").symlink_to(victim)
    give(where / "home")
    return where / "home" / "d"


def roots_link_where_all_may_write(where: Path, victim: Path) -> Path:
    (where / "tmp").mkdir()
    (where / "tmp").chmod(0o1777)
    (where / "tmp" / "d").symlink_to(victim)
    return where / "tmp" / "d"


def users_link_in_roots_directory(where: Path, victim: Path) -> Path:
    (where / "d").symlink_to(victim)
    return give(where / "d")


def two_links(where: Path, victim: Path) -> Path:
    (where / "d").symlink_to(link_in_a_users_directory(where, victim))
    return where / "d"


TRAPS: tuple[Trap, ...] = (
    link_in_a_users_directory,
    roots_link_in_a_users_directory,
    roots_link_where_all_may_write,
    users_link_in_roots_directory,
    two_links,
)


@needs_root
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
@pytest.mark.parametrize("content", [b"new", None])
def test_a_link_that_others_can_have_put_there_is_not_followed(
    trap: Trap, content: bytes | None, tmp_path: Path, victim: Path
) -> None:
    way = trap(tmp_path, victim)
    with untouched(victim):
        for path in (way / "f", way / "new" / "f"):
            with pytest.raises(AstrayError, match="a symbolic link that others than root may have put there") as caught:
                put(path, content)
            assert str(tmp_path) in caught.value.why
        with pytest.raises(AstrayError), existing_file(str(way / "f"), os.O_RDONLY):
            pass


@needs_root
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
def test_every_step_of_a_host_minds_it(trap: Trap, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", {"/victim/f": "root's own"})
    way = trap(root, Path("/victim"))
    inside = "/" + str(way.relative_to(root))
    if trap is two_links:
        way.unlink()
        way.symlink_to("/home/d")
    (root / "victim" / "empty").mkdir()
    host = host_of(root)
    with untouched(root / "victim"):
        for step in (PutFile(f"{inside}/f", b"x"), PutFile(f"{inside}/f", None), WriteFile(f"{inside}/f", "1")):
            with pytest.raises(CommandError, match="others than root"):
                host.do(step)
        host.do(PutFile("/aside", b"", prune=(f"{inside}/empty",)))


@needs_root
def test_roots_own_links_are_followed(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "absolute").symlink_to(victim)
    (tmp_path / "etc" / "relative").symlink_to("../etc/./absolute")
    for name in ("absolute", "relative"):
        put(tmp_path / "etc" / name / "sub" / "f", name.encode())
        assert (victim / "sub" / "f").read_text() == name
    with existing_file("/sys/class/net/lo/mtu", os.O_RDONLY) as fd:
        assert os.read(fd, 99) == Path("/sys/class/net/lo/mtu").read_bytes()


AS_NOBODY = """
import os, sys
sys.path.insert(0, sys.argv[1])
from advisor.host.putfile import put_file
os.chdir(sys.argv[2])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
os.mkdir("there")
put_file(os.path.abspath("d/f"), b"x", mode=0o600, uid=0, gid=0)
"""


@needs_root
def test_without_roots_rights_every_link_is_followed(open_path: Path) -> None:
    home = make_tree(open_path / "home", {}, {"/d": "there"})
    for path in (home, home / "d"):
        give(path)
    words = [sys.executable, "-c", AS_NOBODY, str(Path(__file__).parents[2]), str(home)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    status = (home / "there" / "f").stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (NOBODY, 0o600)


ATTACK = """
import ctypes, os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
os.chdir(sys.argv[1])
renameat2 = ctypes.CDLL(None).renameat2
here, exchange = -100, 2
print("ready", flush=True)
while not renameat2(here, b"d", here, b"l", exchange):
    pass
"""


@needs_root
def test_a_user_who_swaps_directories_for_links_gains_nothing(open_path: Path) -> None:
    home, victim = open_path / "home", open_path / "victim"
    for path in (home / "d", victim):
        path.mkdir(parents=True)
    (home / "l").symlink_to(victim)
    for path in (home / "d", home / "l", home):
        give(path)
    with (
        untouched(victim),
        subprocess.Popen([sys.executable, "-c", ATTACK, str(home)], stdout=subprocess.PIPE, cwd="/") as attacker,
    ):
        assert attacker.stdout is not None
        try:
            assert attacker.stdout.readline() == b"ready\n"
            written = refused = 0
            for turn in range(2000):
                content = None if turn % 3 == 2 else b"%d" % turn
                try:
                    put(home / "d" / "f", content)
                    written += 1
                except OSError:
                    refused += 1
                with suppress(OSError), existing_file(str(home / "d" / "f"), os.O_WRONLY | os.O_TRUNC) as fd:
                    os.write(fd, b"x")
        finally:
            attacker.kill()
    assert written > 10
    assert refused > 10


@needs_root
def test_a_second_name_of_a_file_of_roots(tmp_path: Path, victim: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.link(victim / "f", home / "f")
    give(home)
    with untouched(victim):
        with pytest.raises(CommandError, match="has more than one name"):
            live_host().do(WriteFile(str(home / "f"), "1"))
        put(home / "f")
        assert (home / "f").read_bytes() == b"new"


def test_a_fifo_and_a_socket_are_replaced_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    with pytest.raises(CommandError, match="not a regular file"):
        live_host().do(WriteFile(str(tmp_path / "f"), "1"))
    for path in (tmp_path / "f" / "x", tmp_path / "f" / "x" / "y"):
        with pytest.raises(NotADirectoryError):
            put(path)
    put(tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == b"new"


@needs_root
def test_a_device_is_not_written_to(tmp_path: Path) -> None:
    make_tree(tmp_path / "root", {}, {"/f": "/full"})
    os.mknod(tmp_path / "root" / "full", 0o666 | stat.S_IFCHR, os.makedev(1, 7))
    host = host_of(tmp_path / "root")
    for path in ("/f", "/full"):
        with pytest.raises(CommandError, match="not a regular file"):
            host.do(WriteFile(path, "1"))
    (tmp_path / "g").symlink_to("/dev/full")
    put(tmp_path / "g")
    assert (tmp_path / "g").read_bytes() == b"new"


def test_nothing_is_left_open(tmp_path: Path) -> None:
    make_tree(tmp_path, {"/a/f": "x"}, {"/l": "a", "/loop": "loop", "/no": "where"})
    before = len(os.listdir("/proc/self/fd"))
    for path in ("a/f", "l/f", "loop/f", "no/f", "a/f/g", "b/c/d"):
        with suppress(OSError):
            put(tmp_path / path)
        with suppress(OSError), existing_file(str(tmp_path / path), os.O_RDONLY):
            pass
        with suppress(OSError), directory(str(tmp_path / path)):
            pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_longest_name_that_a_file_can_have(tmp_path: Path) -> None:
    for name in ("x" * 255, "ż" * 127):
        put(tmp_path / name)
        assert os.listdir(tmp_path) == [name]
        put(tmp_path / name, None)
    with pytest.raises(OSError, match="File name too long"):
        put(tmp_path / ("x" * 256))
    assert os.listdir(tmp_path) == []


def access_list(*entries: tuple[int, int, int]) -> bytes:
    """As linux/posix_acl_xattr.h has it: tag, rights, id of each entry."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


_ANY = 0xFFFFFFFF
USER_OBJ, USER, GROUP_OBJ, MASK, OTHER = 1, 2, 4, 0x10, 0x20


def for_nobody(mask: int) -> bytes:
    return access_list(
        (USER_OBJ, 6, _ANY), (USER, 6, NOBODY), (GROUP_OBJ, 4, _ANY), (MASK, mask, _ANY), (OTHER, 0, _ANY)
    )


ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def set_or_skip(path: Path, attributes: dict[str, bytes]) -> None:
    try:
        for name, value in attributes.items():
            os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"{name}: {error.strerror} here")


def attributes_of(path: Path) -> dict[str, bytes]:
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


def test_attributes_and_the_access_list_outlast_a_replacement_and_its_undoing(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o660)
    set_or_skip(path, {"user.note": b"\0kept", ACCESS: for_nobody(6)})
    before = attributes_of(path), path.stat().st_mode
    for content in (b"new", b"old"):
        put(path, content, 0o660)
        assert (attributes_of(path), path.stat().st_mode) == before


@needs_root
def test_the_label_of_a_security_module_is_kept_and_what_vouches_for_the_content_is_not(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    label = {"security.selinux": b"system_u:object_r:etc_t:s0\0", "trusted.note": b"1"}
    capability = struct.pack("<IIIII", 0x02000000, 1 << 13, 0, 0, 0)
    set_or_skip(path, {**label, "security.capability": capability})
    put(path)
    assert attributes_of(path) == label


def test_the_mode_that_is_asked_for_bounds_the_access_list(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    set_or_skip(path, {ACCESS: for_nobody(6)})
    put(path, b"new", 0o600)
    assert attributes_of(path) == {ACCESS: for_nobody(0)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_directory_gives_its_access_list_to_new_files_only(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"old")
    set_or_skip(tmp_path, {DEFAULT: for_nobody(6)})
    for name in ("plain", "fresh"):
        put(tmp_path / name, b"new", 0o640)
    assert attributes_of(tmp_path / "plain") == {}
    assert attributes_of(tmp_path / "fresh") == {ACCESS: for_nobody(4)}


WITHOUT_ATTRIBUTES = """
import errno, os, sys
sys.path.insert(0, sys.argv[1])
from advisor.host import putfile
os.chdir(sys.argv[2])
for content in (b"old", b"new"):
    putfile.put_file("f", content, mode=0o640, uid=0, gid=0)
fd = os.open("f", os.O_WRONLY)
putfile._set_attribute(fd, "security.selinux", b"x")
try:
    putfile._set_attribute(fd, "user.note", b"x")
except OSError as error:
    print(open("f").read(), errno.errorcode[error.errno])
"""


@needs_root
def test_a_file_system_without_attributes(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WITHOUT_ATTRIBUTES, str(Path(__file__).parents[2]), str(tmp_path)]
    script = 'mount -t ramfs none "$1" && shift && exec "$@"'
    unshared = ["unshare", "-m", "sh", "-c", script, "sh", str(tmp_path), *words]
    done = subprocess.run(unshared, capture_output=True, text=True, check=False)
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    assert (done.stdout, done.stderr) == ("new ENOTSUP\n", "")


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    for content in (b"x", None):
        with pytest.raises(CommandError, match="embedded null"):
            live_host().do(PutFile(f"{tmp_path}/a\0b", content))
    assert os.listdir(tmp_path) == []
