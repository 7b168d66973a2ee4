"""The capture takes everything that a scan and the plans of all profiles read: on every captured host, and here."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from advisor.facts.host_facts import scan
from advisor.facts.settings.sysctl import key_path, named_keys, read_sysctl_sources
from advisor.facts.unknown import Unknowns
from advisor.facts.writers import read_writes
from advisor.host import FileSource, Host, Missing, live_host, tree_host
from advisor.operations import open_host
from advisor.operations.diagnosis import read_capture
from advisor.planner import read_for_scan_and_plans
from advisor.snapshot.archive import open_archive
from advisor.snapshot.remote.capture import capture_host, decode_capture
from tests import captured
from tests.cases import cases
from tests.fleet.captures import captured as run_of_script
from tests.fleet.captures import is_captured
from tests.trees import make_tree

PEPC = [f"pepc/{name}" for name in captured.PEPC_HOSTS]
ROOT = Path(__file__).parents[2]
HWLOC = [f"hwloc/{name}" for name in captured.HWLOC_HOSTS]


class Asked:
    """A file source that remembers which files were asked for and what there was."""

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self.reads: dict[str, bytes | Missing] = {}
        self.listings: dict[str, tuple[str, ...] | Missing] = {}
        self.links: dict[str, str | Missing] = {}
        self.places: dict[str, str | Missing] = {}
        self.directories: dict[str, bool] = {}

    def read(self, path: str) -> bytes | Missing:
        return self.reads.setdefault(path, self._source.read(path))

    def listdir(self, path: str) -> tuple[str, ...] | Missing:
        return self.listings.setdefault(path, self._source.listdir(path))

    def readlink(self, path: str) -> str | Missing:
        return self.links.setdefault(path, self._source.readlink(path))

    def real(self, path: str) -> str | Missing:
        return self.places.setdefault(path, self._source.real(path))

    def is_dir(self, path: str) -> bool:
        return self.directories.setdefault(path, self._source.is_dir(path))


def asked_of(host: Host) -> Asked:
    asked = Asked(host.files)
    read_for_scan_and_plans(Host(asked, host.commands, is_live=host.is_live, is_root=host.is_root, ethtool_answers={}))
    return asked


def not_taken(asked: Asked, taken: FileSource) -> list[str]:
    """What the host had and its capture has not, one line each."""
    found = [
        f"{path}: content" for path, one in asked.reads.items() if isinstance(one, bytes) and taken.read(path) != one
    ]
    found += [
        f"{path}: names {sorted(set(names) ^ set(known if isinstance(known := taken.listdir(path), tuple) else ()))}"
        for path, names in asked.listings.items()
        if isinstance(names, tuple) and names != taken.listdir(path)
    ]
    found += [
        f"{path}: link to {target}"
        for path, target in asked.links.items()
        if isinstance(target, str) and taken.readlink(path) != target
    ]
    found += [f"{path}: directory" for path, is_there in asked.directories.items() if is_there != taken.is_dir(path)]
    return found + [
        f"{path}: leads to {place}"
        for path, place in asked.places.items()
        if isinstance(place, str) and taken.real(path) != place
    ]


def check(host: Host, root: Path | None) -> None:
    asked = asked_of(host)
    taken = capture_host(run_of_script(root=root), "here")
    assert not not_taken(asked, taken.files)


@pytest.mark.repeats(5)
@pytest.mark.captured
@pytest.mark.parametrize("name", HWLOC + PEPC)
def test_a_capture_of_a_captured_host_lacks_nothing(name: str) -> None:
    check(captured.on_disk(name), captured.tree(name))


@pytest.mark.parametrize("kind", ["root", "plain"])
def test_a_capture_takes_each_file_that_is_asked_for(kind: str) -> None:
    """Also those that this host has not: what a new fact reads is named before a host of a customer lacks it."""
    host = open_host(snapshot=ROOT / f"tests/fixtures/storage-host-{kind}.tar.gz")
    asked = asked_of(host)
    # The script takes the keys that sysctl files name from the files.
    named = {key_path(key) for key in named_keys(read_sysctl_sources(host, Unknowns()))}
    missing = sorted(path for path in asked.reads if not is_captured(path) and path not in named)
    assert not missing, f"neither in advisor/snapshot/remote/manifest.py nor the Capture of a kind: {missing}"


def test_a_capture_of_this_host_lacks_nothing_that_stays() -> None:
    asked = asked_of(live_host())
    taken = capture_host(run_of_script(), "here").files
    moving = (
        *("/proc/self", "/proc/net", "/proc/meminfo", "/proc/vmstat", "/proc/sys/fs/aio-nr", "/proc/uptime"),
        *("/proc/sys/fs/file-nr", "meminfo", "_hugepages", "/statistics/"),
    )
    lacking = [one for one in not_taken(asked, taken) if not any(word in one for word in moving)]
    assert not lacking
    # What moves is there, whatever it is.
    assert all(isinstance(taken.read(path), bytes) for path, one in asked.reads.items() if isinstance(one, bytes))


WRITERS = cases(__file__)


def test_a_capture_holds_what_sets_values_and_no_secret(tmp_path: Path) -> None:
    """The script's archive answers as the host does: also what is left of scripts without their other words."""
    host = tree_host(str(make_tree(tmp_path, WRITERS)))
    keys = {"net.ipv4.conf.eth1/10.rp_filter": "2", "fs.inotify.max_user_watches": "8192"}
    assert scan(host).sysctl == keys
    captured_one = decode_capture(run_of_script(root=tmp_path), "here").archive
    assert len({one.writer for one in read_writes(host)}) > 7
    for archive in (captured_one, read_capture(host)):
        again = scan(open_archive(archive, "here"))
        assert again.sysctl == keys
        assert again.writes == read_writes(host)
        assert b"secret" not in gzip.decompress(archive)
