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


QUICK_PACKAGES = ("facts", "host", "limits", "planning", "profiles", "recommend", "report", "rules", "tunables")
QUICK_MODULES = (
    "articles/test_beegfs.py",
    "articles/test_infoscale.py",
    "articles/test_iris_and_ebs.py",
    "articles/test_iscsi.py",
    "cli/test_recommend.py",
    "cli/test_size.py",
    "exporters/apply_script/test_crc.py",
    "exporters/apply_script/test_apply.py::test_rollback_leaves_every_byte_and_the_journal_says_so",
    "fleet/test_inventory.py",
    "fleet/test_order.py",
    "fleet/test_waves.py",
    "importers/test_saptune.py",
    "importers/test_sysctl.py",
    "importers/test_tuned_profile.py",
    "proof/test_schedule.py",
    "proof/test_statistics.py",
    "proof/test_verdict.py",
    "proof/test_workloads.py",
    "reach/test_addresses.py",
    "reach/test_icmp.py",
    "reach/test_routes.py",
    "sizing/test_input.py",
    "snapshot/test_redaction.py",
    "test_imports.py",
    "test_numbers.py",
    "test_patterns.py",
    "test_quick.py",
    "test_linters.py::test_ruff_finds_nothing",
    "test_linters.py::test_shellcheck_finds_nothing",
    "transaction/test_transaction.py::test_rollback_leaves_every_byte_as_it_was",
    "transaction/test_script.py::test_the_script_leaves_every_byte_as_it_was_and_is_safe_to_run_twice",
)
"""Modules, or single tests of them, that `pytest -m quick` runs besides the packages above."""
SLOW_MODULES = (
    "planning/test_infoscale.py",
    "planning/test_llt.py",
    "recommend/test_scan_agrees.py",
    "report/test_picture_hostile.py",
    "report/test_proof_page.py",
    "report/test_proof_written.py",
    "rules/test_bad_advice.py",
    "rules/test_registry.py",
    "tunables/test_edit_forms.py",
    "tunables/test_forwarding_live.py",
    "tunables/test_link_live.py",
)
"""Modules of those packages that take seconds each, or change links in a namespace."""


_HERE = Path(__file__).parent


def _is_quick(path: Path, function: str | None = None) -> bool:
    """Whether a test is one of the quick ones; without a function, whether its module has any."""
    if not path.is_relative_to(_HERE):
        return False
    module = str(path.relative_to(_HERE))
    if module.startswith(tuple(f"{name}/" for name in QUICK_PACKAGES)):
        return module not in SLOW_MODULES
    named = [one.partition("::") for one in QUICK_MODULES]
    return any(module == one and (not wanted or function in (None, wanted)) for one, _, wanted in named)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Importing the modules of all tests takes as long as a third of the quick ones."""
    if config.option.markexpr == "quick" and collection_path.match("test_*.py") and not _is_quick(collection_path):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what a commit asks for: within two minutes, of every package some (CONTRIBUTING.md)."""
    for item in items:
        slow = any(item.get_closest_marker(name) for name in ("lab", "thorough", "alone"))
        if not slow and _is_quick(item.path, getattr(item, "originalname", item.name)):
            item.add_marker("quick")


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
