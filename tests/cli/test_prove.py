"""``advisor prove`` as a command: what is told before root is asked for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.test_bad_input import advisor

UNTRUE = [
    (("--volume", "gp9:100"), "'gp9:100' is no volume"),
    (("--volume", "gp2:many"), "'gp2:many' is no volume"),
    (("--quick", "--deep"), "exclude each other"),
    (("--save", "/no/such/file"), "no such directory"),
    (("--html", "/no/such/file"), "no such directory"),
    (("--raw-device", "/dev/sdz", "--confirm-serial", "1"), "exclude each other"),
    (("--confirm-serial", "1"), "belong to --raw-device"),
    (("--allow-raw-writes",), "belong to --raw-device"),
]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="gives root's rights away, so needs them")
@pytest.mark.parametrize(("words", "message"), UNTRUE)
def test_bad_input_is_told_before_root_is_asked_for(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    call = ("prove", "numa-pinning", "--target", "/var/tmp", *words)
    for nobody in (True, False):
        done = advisor(*call, where=tmp_path, nobody=nobody)
        assert done.returncode == 2
        assert message in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="advisor prove needs root")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--raw-device", "/dev/sdz"), 2, "needs --confirm-serial"),
        (("--raw-device", "/dev/no-such-disk", "--confirm-serial", "1"), 3, "/dev/no-such-disk"),
        (("--raw-device", "/dev/null", "--confirm-serial", "1"), 3, "no block device"),
        (
            ("--raw-device", "/dev/null", "--confirm-serial", "1", "--workload", "infoscale.4k-rand-w100"),
            3,
            "would write",
        ),
    ],
)
def test_a_disk_itself_is_refused_with_the_reason(
    words: tuple[str, ...], code: int, message: str, tmp_path: Path
) -> None:
    done = advisor("prove", "--self-test", *words, where=tmp_path)
    assert done.returncode == code
    assert message in done.stderr
