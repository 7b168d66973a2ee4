"""The journal's checksum in awk is zlib's, whatever the bytes, under every awk that is here."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.shell.templates import make_environment

AWKS = [
    words for words in (["awk"], ["mawk"], ["gawk"], ["original-awk"], ["busybox", "awk"]) if shutil.which(words[0])
]


@cache
def functions() -> str:
    template = make_environment(escape_html=False).get_template("transaction_journal.sh.j2")
    return template.render(mark="END", begun="", begun_state=0, version="0")


def crc_of(awk: list[str], state: int, data: bytes) -> int:
    text = f'awk() {{ command {" ".join(awk)} "$@"; }}\n{functions()}\ncrc32 {state}\n'
    done = subprocess.run(["dash", "-c", text], input=data, capture_output=True, check=True, env={"LC_ALL": "C"})
    assert done.stderr == b""
    assert len(done.stdout) == 9
    return int(done.stdout, 16)


@pytest.mark.parametrize("awk", AWKS, ids=lambda words: words[0])
@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=40))
def test_it_is_that_of_zlib(awk: list[str], head: bytes, data: bytes) -> None:
    # No entry holds a NUL, and none ends in a newline.
    data = data.replace(b"\0", b"0").rstrip(b"\n") + b"}"
    assert crc_of(awk, zlib.crc32(head), data) == zlib.crc32(head + data)


@pytest.mark.parametrize("awk", AWKS, ids=lambda words: words[0])
def test_every_byte_counts(awk: list[str]) -> None:
    data = bytes(range(1, 256)) * 8
    assert crc_of(awk, 0, data) == zlib.crc32(data)
