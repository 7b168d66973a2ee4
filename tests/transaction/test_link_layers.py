"""A transaction on a link whose name another link had in an active transaction: by name they look like layers, and
are none. Judged by sysfs in a network namespace."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exporters.apply_script.test_live import MAKE
from tests.running import network_namespace
from tests.transaction.test_link_marks import Place
from tests.transaction.veth import ADVISOR

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")

ENGINES = ["command", "apply-script"]
OTHERS = {
    "swapped": "transaction 0001 holds it on another link (named {own} then, w0 now)",
    "made-again": "transaction 0001 holds it on a link that is not found ({own} is another link than it was",
}


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    one = Place(tmp_path, *getattr(request, "param", ("v0", "v2")))
    with network_namespace(one.name):
        one.build()
        yield one


def apply(place: Place, engine: str, pair: str) -> tuple[int, str]:
    """Exit code and output."""
    if engine == "command":
        done = place.run(sys.executable, "-m", "tests.transaction.live", str(place.store), "apply", pair)
        return done.returncode, done.stdout + done.stderr
    made = place.call(sys.executable, "-c", MAKE, pair)
    (place.where / "apply.sh").write_text(made.stdout)
    done = place.run("sh", str(place.where / "apply.sh"), "apply", "--confirm-within", "0")
    return done.returncode, done.stdout + done.stderr


def roll_back(place: Place, identity: str) -> int:
    """Exit code."""
    return place.run(ADVISOR, "rollback", identity).returncode


def lengths(place: Place) -> dict[str, str]:
    """The queue length of each link, by its ifindex."""
    shown = place.out("for link in /sys/class/net/*; do cat $link/ifindex $link/tx_queue_len; done").split()
    return dict(zip(shown[::2], shown[1::2], strict=True))


# In the short form any two of the three come in each combination.
MATRIX = [
    pytest.param(*place, first, second, marks=[pytest.mark.thorough] * ((first == second) ^ (place[1] == "swapped")))
    for place in ((("v0", "v2"), "swapped"), (("a.7", "b-c"), "made-again"))
    for first in ENGINES
    for second in ENGINES
]


@pytest.mark.repeats(2)
@pytest.mark.parametrize(("place", "change", "first", "second"), MATRIX, indirect=["place"])
def test_another_link_of_the_same_name_is_no_layer(place: Place, change: str, first: str, second: str) -> None:
    place.out(f"ip link set {place.other} txqueuelen 700")
    item = f"link:{place.own}:txqueuelen"
    assert apply(place, first, f"{item}=555")[0] == 0
    place.change(change)
    stands = lengths(place)
    code, said = apply(place, second, f"{item}=666")
    assert (code, lengths(place)) == (3, stands), said
    assert f"{item}: {OTHERS[change].format(own=place.own)}" in said
    assert "advisor rollback 0001" in said
    assert roll_back(place, "1") == (0 if change == "swapped" else 5)
    before = lengths(place)
    assert apply(place, second, f"{item}=666")[0] == 0
    assert roll_back(place, "2") == 0
    assert lengths(place) == before
