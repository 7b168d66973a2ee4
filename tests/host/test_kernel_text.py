"""Modules, the command line, choices and units: one line in Python, and the same in the scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import Missing
from advisor.host.probes import reduce
from tests.tunables.form_shell import SHELLS, read_by_both

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


@pytest.mark.parametrize("form", sorted({form.partition(":")[0] for _, form, _ in CASES}))
def test_one_line_in_both_languages(form: str, tmp_path: Path) -> None:
    cases = [case for case in CASES if case[1].partition(":")[0] == form]
    for text, name, value in cases:
        found = reduce(text.rstrip(" \t\r\n"), name)
        assert (found.state if isinstance(found, Missing) else found) == value, (name, text)
    listed = [(name, text.encode()) for text, name, _ in cases]
    for shell in SHELLS:
        for name, content, by_python, by_shell in read_by_both(tmp_path, listed, shell):
            assert by_python == by_shell, (name, content)
