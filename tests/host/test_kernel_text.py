"""Modules, the command line, choices and units: one line in Python, and the same in the scripts."""

from __future__ import annotations

import functools
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from advisor.host import Missing, ReadFile
from advisor.host.probes import reduce
from advisor.shell.rollback_script import _probe

ABSENT, UNREADABLE = "absent", "unreadable"
MODULES = "nvme_core 1 0 - Live 0x0\nzfs 9 1 a,b, Loading 0x0 (PO)\nold 1 0 -\n"
CONFIG = "# x\noptions nvme-core io_timeout=30 a\nalias nvme_core b=1\noptions nvme_core io_timeout=255\noptions x b=\n"
CMDLINE = 'BOOT_IMAGE=/v root=UUID=1=2 quiet hugepages=1 nosmt= hugepages=8 dyndbg="a b"\n'
UNIT = "LoadState={}\nActiveState={}\nUnitFileState={}\n"

CASES = [
    ("a [b] c\n", "choice", "b"),
    ("none (voluntary) full \n", "choice", "voluntary"),
    ("[only]", "choice", "only"),
    ("[a] [b]", "choice", "[a] [b]"),
    ("[a b] c", "choice", "[a b] c"),
    ("[] (a) b", "choice", "a"),
    ("1 2\t3\n", "choice", "1 2 3"),
    ("", "choice", ""),
    (" 2000000000\n", "number", "2000000000"),
    ("-1", "number", "-1"),
    ("1 2", "number", UNREADABLE),
    ("", "number", UNREADABLE),
    ("0x10", "number", UNREADABLE),
    (MODULES, "module:nvme_core", "loaded"),
    (MODULES, "module:nvme", "unloaded"),
    (MODULES, "module:zfs", UNREADABLE),
    (MODULES, "module:old", "loaded"),
    ("", "module:a", "unloaded"),
    (CONFIG, "module-option:nvme_core:io_timeout", "255"),
    (CONFIG, "module-option:nvme_core:a", "(set)"),
    (CONFIG, "module-option:nvme_core:b", "(unset)"),
    (CONFIG, "module-option:x:b", "(set)"),
    (CMDLINE, "cmdline:hugepages", "8"),
    (CMDLINE, "cmdline:quiet", "(set)"),
    (CMDLINE, "cmdline:nosmt", "(set)"),
    (CMDLINE, "cmdline:root", "UUID=1=2"),
    (CMDLINE, "cmdline:page", "(unset)"),
    (UNIT.format("loaded", "active", "enabled"), "unit-state", "enabled active"),
    (UNIT.format("loaded", "failed", "disabled"), "unit-state", "disabled inactive"),
    (UNIT.format("loaded", "reloading", "enabled-runtime"), "unit-state", "enabled-runtime active"),
    (UNIT.format("masked", "inactive", "masked"), "unit-state", "masked inactive"),
    (UNIT.format("loaded", "inactive", ""), "unit-state", "static inactive"),
    (UNIT.format("loaded", "activating", "enabled"), "unit-state", UNREADABLE),
    (UNIT.format("loaded", "inactive", "enabled") + "SystemState=initializing", "unit-state", "enabled active"),
    (UNIT.format("loaded", "active", "disabled") + "SystemState=initializing", "unit-state", "disabled inactive"),
    (UNIT.format("loaded", "inactive", "static") + "SystemState=initializing", "unit-state", "static inactive"),
    (UNIT.format("loaded", "inactive", "enabled") + "SystemState=running", "unit-state", "enabled inactive"),
    (UNIT.format("not-found", "inactive", ""), "unit-state", ABSENT),
    ("", "unit-state", ABSENT),
]
AWKS: list[list[str]] = [[], *([["busybox"]] if shutil.which("busybox") else [])]


@functools.cache
def functions() -> str:
    """The reducing functions of the template, as the scripts carry them."""
    from advisor.shell.templates import environment

    forms = sorted({form.partition(":")[0] for _, form, _ in CASES})
    return environment(escape_html=False).get_template("kernel_forms.sh.j2").render(forms=forms)


def by_shell(text: str, form: str, awk: list[str]) -> str | None:
    """What the script makes of it; None where it fails."""
    own = f'awk() {{ {awk[0]} awk "$@"; }}\n' if awk else ""
    body = f"root=\n{own}{functions()}\nlive_value() {{\n{_probe(ReadFile('/dev/stdin', form))}\n}}\nlive_value"
    run: dict[str, Any] = {"input": text.encode(), "capture_output": True, "check": False, "timeout": 30}
    done = subprocess.run(["dash", "-c", body], **run)
    assert done.stderr == b""
    return done.stdout.decode().removesuffix("\n") if done.returncode == 0 else None


@pytest.mark.parametrize(("text", "form", "value"), CASES)
def test_one_line_in_both_languages(text: str, form: str, value: str) -> None:
    found = reduce(text.rstrip(" \t\r\n"), form)
    assert (found.state if isinstance(found, Missing) else found) == value
    for awk in AWKS:
        assert by_shell(text, form, awk) == (None if isinstance(found, Missing) else value)


PIECES = st.sampled_from(
    [
        *("a", "b", "[a]", "(b)", "[", "]", "(", ")", "=", " ", "\t", "\n", "\r\n", "-", "_", "1", "0 "),
        *("options a b=1\n", "options a-b c\n", "a 1 0 - Live 0\n", "a 1 0 - Going 0\n", "a=1 ", "a= ", "é"),
        *("LoadState=loaded\n", "LoadState=masked\n", "ActiveState=", "active\n", "UnitFileState=enabled\n", "failed"),
        *("SystemState=initializing\n", "UnitFileState=disabled\n"),
    ]
)
FORMS = st.sampled_from(
    ["choice", "number", "module:a", "module-option:a:b", "module-option:a_b:c", "cmdline:a", "unit-state"]
)


@settings(max_examples=120, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join), FORMS, st.sampled_from(AWKS))
@example("options a-b c=1\r\noptions a_b c=2", "module-option:a_b:c", [])
def test_python_and_the_script_agree_on_any_text(text: str, form: str, awk: list[str]) -> None:
    # As a host reads a file: without trailing blanks.
    found = reduce(text.rstrip(" \t\r\n\0"), form)
    assert by_shell(text, form, awk) == (None if isinstance(found, Missing) else found)
