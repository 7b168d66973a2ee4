"""What cp says about what it could not copy, in the words of its makers."""

from __future__ import annotations

import pytest

from advisor.snapshot.remote.copying import parse_copy_errors


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
