"""The machine that the tests run on is left as it was found: read before the first module of tests and after each.

What changed while a module ran is that module's fault where its text, or that of what it imports, names it: the link,
the sysctl, the device, the file. Other programs change links and sysctls of theirs meanwhile (container engines, DHCP,
irqbalance); that is shown at the end and fails nothing.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
ETC = ("sysctl.d", "sysctl.conf", "systemd/network", "systemd/system", "llttab", "udev/rules.d", "tmpfiles.d")
STATE = Path("/var/lib/advisor")
SYSCTLS = ("net/core", "net/ipv4", "vm", "kernel/numa_balancing")
# Counters and what the kernel itself moves; nothing of advisor could set them.
MOVING = ("stat_refresh", "compact_memory", "drop_caches", "flush", "random", "nr_hugepages_mempolicy")
MADE_BY_MODULE = ("ifb", "dummy", "bond", "tunl", "sit", "gre", "gretap", "erspan", "ip6tnl", "ip6gre", "ip_vti")
"""Kinds of links of which the kernel makes one, in the first namespace, when their module is loaded."""
LINK_VALUES = ("mtu", "txqlen", "qdisc", "master", "address", "link_type")

State = dict[str, object]


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


def machine_state() -> State:
    """What the project could change on this machine: links, sysctls, queues, interrupts, configuration files."""
    said = subprocess.run(["ip", "-json", "link", "show"], capture_output=True, check=False).stdout
    links: State = {
        f"link {one['ifname']}": [one.get(name) for name in LINK_VALUES] for one in json.loads(said or "[]")
    }
    places = [Path("/etc", name) for name in ETC] + [Path("/proc/sys", name) for name in SYSCTLS]
    found = {str(path): _content(path) for place in places for path in _files(place) if path.name not in MOVING}
    # Of the tool's own state only what is there, not when it was used.
    found.update({str(path): b"" for path in sorted(STATE.rglob("*"))})
    for pattern in ("sys/block/*/queue/scheduler", "sys/block/*/queue/read_ahead_kb", "proc/irq/*/smp_affinity_list"):
        found.update(
            {str(path): _content(path) for path in sorted(Path("/").glob(pattern)) if "/loop" not in str(path)}
        )
    return {**links, **found}


def changed_names(before: State, after: State) -> set[str]:
    """What is not as it was, in the names of `machine_state`; a link that came or went stands for its sysctls."""
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    links = {
        name.partition(" ")[2] for name in changed if name.startswith("link ") and (name in before) != (name in after)
    }
    return {name for name in changed if not (name.startswith("/proc/sys/net/") and links & {Path(name).parent.name})}


def words_for(name: str) -> list[str]:
    """Of which one stands in a test that changes this: a link's name or kind, a sysctl's, device's or file's name."""
    kind, _, link = name.partition(" ")
    if kind == "link":
        made_by = re.sub(r"\d+$", "", link)
        return [link, made_by] if made_by in MADE_BY_MODULE else [link]
    path = Path(name)
    if name.startswith("/proc/irq/"):
        return [f"irq:{path.parts[3]}", f"irq/{path.parts[3]}"]
    return [path.parts[3] if name.startswith("/sys/block/") else path.name]


def text_of(path: Path, seen: set[Path] | None = None) -> str:
    """A module of tests, its tables, the modules of tests that it imports, and the profiles that they name."""
    first, seen = seen is None, set() if seen is None else seen
    seen.add(path)
    text = path.read_text()
    if (tables := path.with_suffix(".yaml")).is_file():
        text += tables.read_text("utf-8")
    for package, names in re.findall(r"^\s*(?:from (\S+) )?import \(?([\w, ]*)", text, re.MULTILINE):
        start = PROJECT if package.startswith("tests") or not package else path.parent
        modules = [package.lstrip("."), *(f"{package.lstrip('.')}.{name.strip()}" for name in names.split(","))]
        for place in (start.joinpath(*filter(None, module.split("."))).with_suffix(".py") for module in modules):
            if place.is_file() and place not in seen and place.is_relative_to(PROJECT / "tests"):
                text += text_of(place, seen)
    if first:
        text += "".join(one.read_text() for one in (PROJECT / "profiles").glob("*.toml") if has_word(text, one.stem))
    return text


def has_word(text: str, word: str) -> bool:
    """Whether it stands there, not as a part of a longer name."""
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def blamed_names(changed: set[str], test: Path) -> set[str]:
    """Those that this module can have changed."""
    if not changed:
        return set()
    text = text_of(test)
    ours = {name for name in changed if any(has_word(text, word) for word in words_for(name))}
    ours |= {name for name in changed if Path(name).is_relative_to(STATE)}
    return ours | {name for name in changed if name.startswith("/etc/") and b"advisor" in (_content(Path(name)) or b"")}


class _Machine:
    at_start: State
    last: State
    blamed: set[str]


def pytest_sessionstart() -> None:
    _Machine.at_start = _Machine.last = machine_state()
    _Machine.blamed = set()


@pytest.fixture(scope="module", autouse=True)
def _machine_is_left_as_found(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    now = machine_state()
    ours = blamed_names(changed_names(_Machine.last, now), request.path)
    _Machine.last = now
    _Machine.blamed |= ours
    assert not ours, "this module of tests changes the machine"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What others changed; where pytest-xdist runs the tests, all that changed."""
    changed = changed_names(_Machine.at_start, machine_state()) - _Machine.blamed
    if changed:
        terminalreporter.section("changed on this machine meanwhile, not by a test that names it")
        for name in sorted(changed):
            terminalreporter.line(name)
