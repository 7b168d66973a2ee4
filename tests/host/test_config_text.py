"""The canonical line of configuration files, kernel attributes and commands: alike in Python and in the scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import Missing
from advisor.host.probes import reduce
from tests.cases import cases
from tests.tunables.form_shell import SHELLS, read_by_both

CASES = [(case["text"], form, value) for case in cases(__file__) for form, value in case.items() if form != "text"]
CASES.append((f"Current LLT flow control values (in packets):\n  huge = {'9' * 5000}\n", "flow:huge", "absent"))


@pytest.mark.parametrize("form", sorted({form.partition(":")[0] for _, form, _ in CASES}))
def test_one_line_in_both_languages(form: str, tmp_path: Path) -> None:
    own = [case for case in CASES if case[1].partition(":")[0] == form]
    for text, name, value in own:
        found = reduce(text.rstrip(" \t\r\n"), name)
        assert (found.state if isinstance(found, Missing) else found) == value, (name, text)
    listed = [(name, text.encode()) for text, name, _ in own]
    for shell in SHELLS:
        for name, content, by_python, by_shell in read_by_both(tmp_path, listed, shell):
            assert by_python == by_shell, (name, content)
