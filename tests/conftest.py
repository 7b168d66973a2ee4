"""The machine that the tests run on is left as it was found: checked around every session."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

# Below nohup, or as a shell's background job, signals come ignored; programs under test would inherit that.
for _number in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

_LONGEST_NAMED_BYTES = 24


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A case of many bytes is named by their number: a compressed stream holds the time, and every process that
    collects the tests must come to the same names."""
    return f"{argname}-{len(val)}-bytes" if isinstance(val, bytes) and len(val) > _LONGEST_NAMED_BYTES else None


ETC = ("sysctl.d", "sysctl.conf", "systemd/network", "systemd/system", "llttab", "udev/rules.d", "tmpfiles.d")
SYSCTLS = ("net/core", "net/ipv4", "vm", "kernel/numa_balancing")
# Counters and what the kernel itself moves; nothing of ours could set them.
MOVING = ("stat_refresh", "compact_memory", "drop_caches", "flush", "random", "nr_hugepages_mempolicy")


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
    elif root.is_dir():
        yield from (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def machine_state() -> dict[str, object]:
    """What the project could change on this machine: links, sysctls, queues, interrupts, configuration files."""
    links = subprocess.run(["ip", "-o", "link", "show"], capture_output=True, check=False).stdout
    places = [Path("/etc", name) for name in ETC] + [Path("/proc/sys", name) for name in SYSCTLS]
    found = {str(path): _content(path) for place in places for path in _files(place) if path.name not in MOVING}
    for pattern in ("sys/block/*/queue/scheduler", "sys/block/*/queue/read_ahead_kb", "proc/irq/*/smp_affinity_list"):
        found.update(
            {str(path): _content(path) for path in sorted(Path("/").glob(pattern)) if "/loop" not in str(path)}
        )
    return {"ip link": links, **found}


@pytest.fixture(scope="session", autouse=True)
def _machine_is_left_as_found() -> Iterator[None]:
    before = machine_state()
    yield
    after = machine_state()
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} == set()
