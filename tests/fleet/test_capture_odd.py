"""The capture script where a host is odd: unreadable, blocking and huge files, commands that hang, no room, signals."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.host import DirectoryFiles, Host, Missing
from advisor.planning.records import FileChange, Plan
from advisor.snapshot.remote.capture import capture_host, decode_capture
from advisor.transaction.journal import Applied, Begun, encode_entry
from tests.fleet.captures import run_script, script
from tests.trees import make_command, make_tree

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives up root's rights")
SYSCTL = "/etc/sysctl.d"


def of_tree(root: Path, *, prefix: tuple[str, ...] = (), text: str | None = None) -> Host:
    done = run_script(root=root, prefix=prefix, text=text)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return capture_host(done.stdout, "tree")


def with_commands(tmp_path: Path) -> str:
    """The script with stand-ins found first, and an end to each after a second."""
    places = tmp_path / "bin"
    places.mkdir(exist_ok=True)
    return script().replace("/usr/local/sbin", str(places)).replace("ask 10 ", "ask 1 ")


def test_odd_files_are_named_and_hold_nobody_up(tmp_path: Path) -> None:
    root = make_tree(
        tmp_path / "root",
        {
            "/proc/version": "x",
            f"{SYSCTL}/10-a.conf": "vm.swappiness = 1\n",
            f"{SYSCTL}/20-huge.conf": b"# \n" * (4 << 20),
            f"{SYSCTL}/30-null.conf": b"a\0b\xff",
            f"{SYSCTL}/40-empty.conf": b"",
            f"{SYSCTL}/50 '\"$(id)\n*.conf": "odd\n",
            "/elsewhere/file": "followed\n",
        },
        {
            f"{SYSCTL}/60-link.conf": "../../elsewhere/file",
            f"{SYSCTL}/70-absolute.conf": "/elsewhere/file",
            f"{SYSCTL}/80-loop.conf": "80-loop.conf",
            f"{SYSCTL}/85-dangling.conf": "nothing",
            "/etc/tmpfiles.d": "../elsewhere/../elsewhere",
        },
    )
    os.mkfifo(root / SYSCTL[1:] / "90-fifo.conf")
    os.mkdir(root / SYSCTL[1:] / "95-directory.conf")
    for place in ("etc/systemd/system", "etc/cron.d"):
        (root / place).mkdir(parents=True)
        os.mkfifo(root / place / "90-fifo.service")
    name = os.fsdecode(b"99-\xff\xfe.conf")
    (root / SYSCTL[1:] / name).write_text("odd\n")
    host = of_tree(root)
    here = DirectoryFiles(str(root))
    assert host.listdir(SYSCTL) == here.listdir(SYSCTL)
    names = here.listdir(SYSCTL)
    assert not isinstance(names, Missing)
    for one in names:
        path = f"{SYSCTL}/{one}"
        if "huge" in one:
            assert host.read(path) == Missing("unreadable", "larger than 8 MiB")
        else:
            assert host.files.read(path) == here.read(path), path
        assert host.readlink(path) == here.readlink(path)
        assert host.real(path) == here.real(path)
    assert host.real("/etc/tmpfiles.d") == "/elsewhere"


@needs_root
def test_an_ordinary_user_gets_the_rest_and_is_told_what_not(open_path: Path) -> None:
    root = make_tree(
        open_path / "root",
        {
            "/proc/version": "x",
            f"{SYSCTL}/10-a.conf": "a\n",
            f"{SYSCTL}/20-closed.conf": "b\n",
            "/etc/udev/rules.d/10-a.rules": "c\n",
            "/etc/iscsi/nodes/iqn.x/192.0.2.1,3260,1/default": "d\n",
        },
    )
    (root / "etc/sysctl.d/20-closed.conf").chmod(0)
    (root / "etc/iscsi/nodes").chmod(0)
    (root / "etc/udev/rules.d").chmod(0o711)
    host = of_tree(root, prefix=("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"))
    closed = Missing("unreadable", "Permission denied")
    assert not host.is_root
    assert host.read(f"{SYSCTL}/10-a.conf") == "a"
    assert host.read(f"{SYSCTL}/20-closed.conf") == closed
    assert host.listdir("/etc/iscsi/nodes") == closed
    assert host.listdir("/etc/udev/rules.d") == closed


@pytest.mark.repeats(1)
@pytest.mark.parametrize("timeout", ["timeout -k 1 5 true", "false"], ids=["timeout", "no-timeout"])
def test_a_command_that_hangs_is_ended_and_said_so(tmp_path: Path, timeout: str) -> None:
    text = with_commands(tmp_path).replace("timeout -k 1 5 true", timeout)
    make_command(tmp_path / "bin", "lltconfig", f"echo begun; exec sleep 1000.{os.getpid()}")
    make_command(tmp_path / "bin", "vxdisk", "echo reported; echo aside >&2; exit 3")
    make_command(tmp_path / "bin", "dmsetup", "yes | head -c 20000000")
    done = run_script(text=text)
    assert done.returncode == 0, done.stderr.decode()
    host = capture_host(done.stdout, "here")
    assert host.run(("lltconfig", "-F", "query")) == Missing("unreadable", "lltconfig did not answer within 1 s")
    reported = host.run(("vxdisk", "-o", "alldgs", "list"))
    assert not isinstance(reported, Missing)
    assert (reported.rc, reported.stdout, reported.stderr) == (3, "reported\n", "aside\n")
    if os.geteuid() == 0:
        assert host.run(("dmsetup", "table")) == Missing("unreadable", "dmsetup printed more than 8 MiB")
    assert subprocess.run(["pgrep", "-f", f"sleep 1000.{os.getpid()}"], check=False).returncode == 1


@needs_root
def test_root_runs_no_program_that_others_could_have_put_there(tmp_path: Path) -> None:
    text = with_commands(tmp_path)
    make_command(tmp_path / "bin", "vxdisk", f"touch {tmp_path}/ran")
    (tmp_path / "bin").chmod(0o777)
    host = capture_host(run_script(text=text).stdout, "here")
    reported = host.run(("vxdisk", "-o", "alldgs", "list"))
    why = f"vxdisk is not run: others than root can change {tmp_path}/bin/vxdisk"
    assert reported == Missing("unreadable", why)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    room = tmp_path / "room"
    room.mkdir()
    file = tmp_path / "capture.sh"
    file.write_text(with_commands(tmp_path).replace("in /dev/shm /run", f"in {room}").replace("ask 1 ", "ask 60 "))
    mark = f"{2000 + os.getpid() % 1000}.{number}{len(shell)}"
    make_command(tmp_path / "bin", "lltconfig", f"exec sleep {mark}")
    words = ["busybox", "sh"] if shell == "busybox" else [shell]
    process = subprocess.Popen(
        [*words, str(file)], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, preexec_fn=_default_signals
    )
    await_(lambda: runs(mark))
    process.send_signal(number)
    assert process.wait(30) == 128 + number
    assert not list(room.iterdir())
    await_(lambda: not runs(mark))


def _default_signals() -> None:
    # The runner of the tests may have been started with some of them ignored, which a shell cannot take back.
    for one in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_DFL)


def runs(mark: str) -> bool:
    return subprocess.run(["pgrep", "-f", f"^sleep {mark}"], capture_output=True, check=False).returncode == 0


def await_(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("nothing came of it")


SECRETS = {
    "/etc/iscsi/iscsid.conf": "node.session.auth.password = s3cr3t-word\nnode.session.timeo.replacement_timeout = 9\n",
    "/etc/NetworkManager/system-connections/a.nmconnection": "[wifi-security]\npsk=s3cr3t-word\n[connection]\nid=a\n",
    "/etc/fstab": "//nas/x /mnt cifs user=a,password=s3cr3t-word 0 0\n",
    "/proc/cmdline": "ro token=s3cr3t-word quiet\n",
    "/etc/rc.local": "#!/bin/sh\ncurl -u a:s3cr3t-word http://x/\n",
}


def test_no_secret_leaves_the_decoding(tmp_path: Path) -> None:
    path = "/etc/iscsi/iscsid.conf"
    before = SECRETS[path].encode()
    change = FileChange(path, before, before + b"# more\n", 0o600, 0, 0, 0o600, (), (), ())
    plan = Plan(("a",), None, (), (change,), (), (), ())
    journal = encode_entry(Begun(plan, None, 1.0, "0")) + encode_entry(Applied(2.0, {}))
    place = "/var/lib/advisor/transactions"
    files: dict[str, str | bytes] = {**SECRETS, "/proc/version": "x", f"{place}/0001/journal": journal}
    root = make_tree(tmp_path / "root", {**files, f"{place}/0002/journal": journal[:40] + b"\n" + journal})
    done = run_script(root=root)
    archive = gzip.decompress(decode_capture(done.stdout, "tree").archive)
    assert b"replacement_timeout" in archive
    assert b"transactions/0001/journal" in archive
    assert b"s3cr3t-word" not in archive
    # In base64, as journals hold contents, at each of three places.
    assert not any(one in archive for one in (b"czNjcjN0LXdvcm", b"MzY3IzdC13b3", b"zM2NyM3Qtd29y"))
    assert "s3cr3t-word" in str(capture_host(done.stdout, "tree").read(path))
