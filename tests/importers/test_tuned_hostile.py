"""Profiles that nobody in his right mind writes: they import or are refused by name, and what comes of them loads."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import InvalidInputError, UsageError
from advisor.host import Host
from advisor.importers.records import Imported, Mode
from advisor.importers.saptune import import_saptune
from advisor.importers.sysctl_text import import_sysctl
from advisor.importers.to_profile import to_profile, to_toml
from advisor.importers.tuned.convert import PLUGINS, STEERED, import_tuned
from advisor.profiles.profile import parse_profile
from tests.importers.hosts import machine, tuned
from tests.importers.plans import plan_imported

REFUSED = (InvalidInputError, UsageError)
MODES: tuple[Mode, ...] = ("faithful", "intent")
SECTIONS = st.sampled_from([*PLUGINS, *STEERED, "disk-a", "variables", "main", "nosuch", "DEFAULT", "a]b"])
KNOWN_KEYS = sorted({key for plugin in PLUGINS.values() for key in plugin.options or ()})
KEYS = st.one_of(
    st.sampled_from(KNOWN_KEYS),
    st.sampled_from(
        (
            *(
                *("type", "devices", "enabled", "replace", "drop", "priority", "cpuinfo_regex", "uname_regex"),
                *("include", "a"),
            ),
            *(
                *("vm.swappiness", "vm.dirty_bytes", "/sys/kernel/mm/ksm/run", "/sys/*/*", "../x", "cmdline_x"),
                *("service.a",),
            ),
            *("group.x", "net.ipv4.tcp_rmem", "nvme_core", "devices_udev_regex", "script_pre", "kernel..x", "net//x"),
            *("/sys/kernel/mm/*/run", "/sys/block/*/queue/read_ahead_kb", "/sys/block/sda/queue/read_ahead_kb"),
        )
    ),
    st.text(max_size=8),
)
VALUES = st.one_of(
    st.sampled_from(
        (
            *(
                "disk",
                "sysctl",
                "1",
                ">4096",
                "<x",
                "> 1 s",
                "${a}",
                "${f:exec:id}",
                "${f:strip:${a}}",
                "sd*, !sda",
                "*",
            ),
            *("!", "cstate.id:9|3", "a|b", "|", "rx on", "rx on tx", "+r x=1", "-quiet", "+", "{x}", "{}", '"', "\\"),
            *("(a+)+", "(", "start,stop,file:x", "never", "\x1b[31m", "9" * 400, "\u2028", "é", "off", "none", "0"),
            "${f:cpulist_unpack:0-99999999}",
        )
    ),
    st.text(max_size=12),
)
PROFILES = st.lists(st.tuples(SECTIONS, KEYS, VALUES), max_size=8).map(
    lambda lines: "".join(f"[{section}]\n{key}={value}\n" for section, key, value in lines)
)


def loads_and_plans(found: Imported, host: Host) -> None:
    """What was imported is a profile, whatever it came from, and one that does not contradict itself."""
    try:
        profile = to_profile(found)
        assert parse_profile(to_toml(found).encode(), "x.toml") == profile
        plan_imported(found, host)
    except REFUSED as error:
        raise AssertionError(to_toml(found)) from error


@settings(max_examples=50)
@given(PROFILES)
def test_any_profile_imports_or_is_refused(text: str) -> None:
    host = machine(tuned(mine=text.encode("utf-8", "replace").decode()))
    for mode in MODES:
        with suppress(*REFUSED):
            loads_and_plans(import_tuned("mine", host, mode), host)


@settings(max_examples=80)
@given(PROFILES, st.text(max_size=40))
def test_any_note_and_any_sysctl_file_imports_or_is_refused(text: str, more: str) -> None:
    data = (text + more).encode("utf-8", "replace")
    host = machine({"/etc/saptune/extra/x.conf": data, "/etc/sysctl.d/x.conf": data})
    for mode in MODES:
        with suppress(*REFUSED):
            loads_and_plans(import_sysctl("/etc/sysctl.d/x.conf", host, mode), host)
        with suppress(*REFUSED):
            loads_and_plans(import_saptune("x", host, mode), host)


@pytest.mark.parametrize(
    "text",
    [
        "[sysctl]\nvm.swappiness=1\0\n",
        "[sysctl]\n" + "".join(f"k{number}=1\n" for number in range(2000)),
        "[variables]\n" + "".join(f"v{number}=1\n" for number in range(2000)) + "[sysctl]\nvm.swappiness=${v1}\n",
        "[sysctl]\nvm.swappiness=" + "${f:strip:" * 500 + "1" + "}" * 500 + "\n",
        "[sysctl]\nvm.swappiness=" + "${" * 20000 + "\n",
        "[disk]\ndevices=" + "*a" * 3000 + "\nreadahead=1\n",
        "[sysfs]\n/sys/" + "*/" * 300 + "x=1\n",
        "[net]\nfeatures=" + "a on " * 9000 + "\n",
        "[cpu]\ngovernor=" + "x|" * 9000 + "\n",
    ],
    ids=["nul", "keys", "variables", "nested", "unclosed", "pattern", "glob", "pairs", "alternatives"],
)
def test_what_is_large_or_deep_ends(text: str) -> None:
    host = machine(tuned(mine=text))
    with suppress(*REFUSED):
        to_profile(import_tuned("mine", host, "faithful"))
