"""The commands under "To measure again" are run as they are printed, and measure the same again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from advisor.proof.archive import load_any
from tests.cli.test_bench import advisor as with_fio
from tests.proof.conftest import disk, fake_fio
from tests.proof.fakes import FakeFio
from tests.proof.sessions import WORKLOAD

__all__ = ["disk", "fake_fio"]

OPTIONS = ("--seconds", "0.1", "--budget", "17", "--byte-budget", "600", "--file-size", "4MiB", "--force", "--quick")


def printed(text: str) -> list[str]:
    """The command after the heading, its lines joined as a shell joins them."""
    after = text[text.index("To measure again") :].splitlines()[1:]
    lines = []
    for line in after:
        lines.append(line.strip().removesuffix("\\"))
        if not line.rstrip().endswith("\\"):
            break
    return shlex.split(" ".join(lines))


@pytest.mark.repeats(1)
@pytest.mark.parametrize(
    "words",
    [
        ("prove", "--self-test", "--workload", WORKLOAD),
        ("bench", "--workload", WORKLOAD, "--workload", "infoscale.64k-seq-w100"),
        ("bench", "--workload", "beegfs.storagebench", "--threads", "1,2"),
        ("bench", "--workload", "iris.ranwrite"),
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_what_is_printed_measures_the_same_again(
    fake_fio: FakeFio, disk: Path, tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    # A word that is longer than a line is broken without a sign: a directory with a short name.
    own = disk / "wij"
    own.mkdir()
    place = ("--place", f"wij={own}") if "iris.ranwrite" in words else ()
    larger = {"4MiB": "64MiB"} if place else {}
    size = tuple(larger.get(one, one) for one in OPTIONS)
    first = with_fio(*words, "--target", disk, *size, *place, state=tmp_path / "state", fio=fake_fio)
    assert "To measure again" in first.stdout, first.stderr
    command = printed(first.stdout)
    assert command[0] == "advisor"
    again = with_fio(*command[1:], "--json", state=tmp_path / "state", fio=fake_fio)
    assert again.returncode in (0, 1), again.stderr
    names = sorted((tmp_path / "state/proofs").iterdir())
    assert len(names) == 2
    one, other = (session_of(name) for name in names)
    # A busy machine may use up the time before all pairs, or any, are measured: those of both are compared.
    measured = min(len(one.pop()), len(other.pop()))
    assert one == other
    orders = [session_of(name)[-1][:measured] for name in names]
    assert orders[0] == orders[1]


def session_of(path: Path) -> list[Any]:
    """What two runs of one call have in common: the layout, the seed, the options, the workloads; last the orders."""
    saved = load_any(path)
    proof = getattr(saved, "proof", None)
    if proof is not None:
        session = proof.session
        return [session.seed, repr(session.schedule), [pair.order for pair in session.pairs]]
    series = saved.bench.series  # type: ignore[union-attr]
    return [series.seed, repr(series.schedule), list(series.workloads), list(series.options), []]
