"""What holds for all tests: how they are named, which of them are quick, and what is left of them on the machine."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import golden
from tests.nobody import copy_for_everybody, prefix_for_nobody

pytest_plugins = ["tests.machine_guard"]

# How long an example takes says more about the machine's other work than about the code.
# pytest --hypothesis-profile thorough draws as many as Hypothesis does by itself.
settings.register_profile("any-machine", deadline=None, max_examples=30)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("any-machine")

# Below nohup, or as a shell's background job, signals come ignored; programs under test would inherit that.
for _number in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

_LONGEST_NAMED_BYTES = 24


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden/*.txt again")


def pytest_configure(config: pytest.Config) -> None:
    golden.update(wanted=config.getoption("--update-golden"))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A case of many bytes is named by their number: a compressed stream holds the time, and every process that
    collects the tests must come to the same names."""
    return f"{argname}-{len(val)}-bytes" if isinstance(val, bytes) and len(val) > _LONGEST_NAMED_BYTES else None


QUICK_PACKAGES = (
    "diagnosis",
    "facts",
    "host",
    "limits",
    "observe",
    "planning",
    "profiles",
    "recommend",
    "report",
    "rules",
    "tunables",
)
QUICK_MODULES = (
    "articles/test_beegfs.py",
    "articles/test_infoscale.py",
    "articles/test_iris_and_ebs.py",
    "articles/test_iscsi.py",
    "cli/test_recommend.py",
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
    "test_linters.py::test_ruff_finds_nothing",
    "test_linters.py::test_shellcheck_finds_nothing",
    "transaction/test_transaction.py::test_rollback_leaves_every_byte_as_it_was",
    "transaction/test_script.py::test_the_script_leaves_every_byte_as_it_was_and_is_safe_to_run_twice",
)
"""Modules, or single tests of them, that `pytest -m quick` runs besides the packages above."""
SLOW_MODULES = (
    "diagnosis/test_live.py",
    "observe/test_trace_live.py",
    "planning/test_infoscale.py",
    "planning/test_llt.py",
    "recommend/test_scan_agrees.py",
    "report/test_picture_hostile.py",
    "report/test_proof_page.py",
    "report/test_proof_written.py",
    "rules/test_bad_advice.py",
    "rules/test_registry.py",
    "tunables/test_edits.py",
    "tunables/test_kinds.py",
    "tunables/test_link_live.py",
    "tunables/test_value_forms.py",
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


def _may_have(marker: str, path: Path) -> bool:
    """Whether a module of tests may have any with that marker, by its name or its text."""
    if marker == "quick":
        return _is_quick(path)
    return (marker == "lab" and path.parent == _HERE / "lab") or f"mark.{marker}" in path.read_text()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Of `-m "lab and not …"`, only the lab: importing the modules of all tests takes as long as many of them."""
    wanted = re.fullmatch(r"(quick|lab|alone|thorough)( and not \w+)*", config.option.markexpr)
    if wanted and collection_path.match("test_*.py") and not _may_have(wanted[1], collection_path):
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what a commit asks for: within two minutes, of every package some (CONTRIBUTING.md); and as thorough all but
    a few of the cases of a test that is marked with `repeats`, evenly spaced and the same ones each time."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("repeats") and not item.get_closest_marker("thorough"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for some in cases.values():
        marker = some[0].get_closest_marker("repeats")
        assert marker is not None
        (kept,) = marker.args
        places = {number * (len(some) - 1) // max(kept - 1, 1) for number in range(kept)}
        for place, item in enumerate(some):
            if place not in places:
                item.add_marker("thorough")
    for item in items:
        slow = any(item.get_closest_marker(name) for name in ("lab", "thorough", "alone"))
        if not slow and _is_quick(item.path, getattr(item, "originalname", item.name)):
            item.add_marker("quick")


@pytest.fixture(scope="session", autouse=True)
def _own_state_directory() -> Iterator[None]:
    """What a test keeps without saying where, is kept for this session of tests only, not with this machine's own."""
    with tempfile.TemporaryDirectory(prefix="advisor-test-state-") as place:
        before = os.environ.get("ADVISOR_STATE_DIR")
        os.environ["ADVISOR_STATE_DIR"] = place
        yield
        os.environ.pop("ADVISOR_STATE_DIR")
        if before is not None:
            os.environ["ADVISOR_STATE_DIR"] = before


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A directory that every user can enter, for tests that give up root's rights: those of pytest are root's alone."""
    place = Path(tempfile.mkdtemp(prefix="advisor-test-", dir="/tmp"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


@pytest.fixture(scope="session")
def readable_copy() -> Iterator[Path]:
    """advisor and what it needs in a directory for PYTHONPATH, for users who may not enter the checkout, and hosts of
    tests/fleet/hosts.py, which have a /tmp of their own."""
    place = Path(tempfile.mkdtemp(prefix="advisor-test-", dir="/var/tmp"))
    try:
        copy_for_everybody(place)
        yield place
    finally:
        shutil.rmtree(place)


@pytest.fixture(scope="session")
def as_nobody(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The words that, before ``sys.executable -m advisor``, run a copy of it as another user, who may not enter it."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("gives root's rights away, so needs them, and setpriv")
    return prefix_for_nobody(request.getfixturevalue("readable_copy"))
