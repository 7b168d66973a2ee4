"""What cp says about what it could not copy, in the words of its makers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from advisor.snapshot.remote.copying import parse_copy_errors

NAMES = [
    "plain",
    "it's",
    'dou"ble',
    "a b$(c)",
    "new\nline",
    "tab\t'",
    os.fsdecode(b"\xff\xfe"),
    "back\\slash",
    "to 'x': Y",
]


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="cp has to be refused something")
@pytest.mark.parametrize("name", NAMES)
def test_the_name_is_the_one_that_cp_was_given(tmp_path: Path, name: str) -> None:
    words = ["cp", "--parents", f"./{name}", str(tmp_path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    found = parse_copy_errors(os.fsdecode(done.stderr))
    assert found.reasons == {f"./{name}": "No such file or directory"}


@pytest.mark.parametrize(
    ("text", "reasons", "pathless"),
    [
        ("cp: error reading './sys/a': Invalid argument\n", {"./sys/a": "Invalid argument"}, None),
        ("cp: reading `./sys/a': Invalid argument\n", {"./sys/a": "Invalid argument"}, None),
        ("cp: cannot open './a' for reading: Permission denied\n", {"./a": "Permission denied"}, None),
        ("cp: cannot open `./a' for reading: Permission denied\n", {"./a": "Permission denied"}, None),
        ("cp: error copying './a' to '/tmp/w/files/./a': File too large\n", {"./a": "File too large"}, None),
        ("cp: can't open './a': Permission denied\n", {"./a": "Permission denied"}, None),
        ("cp: can't stat './it's': No such file or directory\n", {"./it's": "No such file or directory"}, None),
        ("cp: read error: Invalid argument\n", {}, "Invalid argument"),
        ("tar: removing leading\ncp: \n\n", {}, None),
    ],
)
def test_words_of_all_makers(text: str, reasons: dict[str, str], pathless: str | None) -> None:
    assert parse_copy_errors(text) == (reasons, pathless)
