"""What `advisor prove` says in the lab where the truth is known, and of the articles' claims: a table in Markdown.

    python -m benchmarks.lab_claims known       ratios that cgroup io.max fixes beforehand
    python -m benchmarks.lab_claims articles    MTU and socket buffers over an emulated wire

Each boots a guest of its own, unless ADVISOR_LAB_SOCKET names one that is up. An emulated machine shows ratios, no
absolute figures.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.lab.guest import Guest, Machine
from tests.lab.hardware import STORAGE_HOST
from tests.lab.serve import ServedGuest

FAR: Final = "sh /src/tests/lab/guest/far-storage"
ENVIRONMENT: Final = "PYTHONPATH=/src:/opt/advisor-deps PYTHONPYCACHEPREFIX=/var/cache/pycache"
PROVE_SECONDS: Final = 3600

# True ratios of the second limit to the first, in I/O operations a second.
LIMITS: Final = ((400, 480), (400, 440), (400, 420), (400, 400), (400, 360))

# The drives of a guest are files that nobody wears out.
BUDGET: Final = ("--byte-budget", "8192")

BUFFERS: Final = ("socket-buffers-8m",)
JUMBO: Final = ("jumbo-frames", "--set", "links=near0", "--allow-link-flap")


class Case(NamedTuple):
    """What an article says, and how it is tried: on what storage, with what microseconds of delay in each direction."""

    claim: str
    profile: Sequence[str]
    workload: str
    delay: int = 0
    storage: str = "mirror"


ARTICLES: Final = (
    Case("MTU 9000 is the best tuning for 4k sequential I/O over TCP", JUMBO, "infoscale.4k-seq-rw50"),
    Case("the same across zones", JUMBO, "infoscale.4k-seq-rw50", 580),
    Case("8 MB buffers help 64k sequential I/O", BUFFERS, "infoscale.64k-seq-rw50"),
    Case("the same across zones", BUFFERS, "infoscale.64k-seq-rw50", 580),
    Case("the link first, with a file below the target's memory", JUMBO, "iometer.maxtp-r100", 0, "memory"),
    Case("only then the disks: while they bind, the link is not it", JUMBO, "iometer.maxtp-r100", 0, "slow-drive"),
)


def main() -> int:
    """Run the chosen cases and print their table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lab_claims")
    parser.add_argument("what", choices=("known", "articles"))
    parser.add_argument("--deep", action="store_true", help="48 pairs instead of up to 24")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="begin with the Nth case of the articles")
    options = parser.parse_args()
    mode = ("--deep",) if options.deep else ()
    with machine() as guest:
        cases = ARTICLES[options.first - 1 :]
        rows = known_ratios(guest, mode) if options.what == "known" else articles(guest, mode, cases)
        for row in rows:
            print("| " + " | ".join(row) + " |", flush=True)
    return 0


@contextmanager
def machine() -> Iterator[Machine]:
    """The guest that is served, or one for this run."""
    served = os.environ.get("ADVISOR_LAB_SOCKET")
    with ExitStack() as stack:
        yield ServedGuest(Path(served)) if served else stack.enter_context(Guest(STORAGE_HOST))


def known_ratios(guest: Machine, mode: Sequence[str]) -> Iterator[Sequence[str]]:
    """Between the arms the kernel's own limit changes, so that the true ratio is known before."""
    yield "limit A", "limit B", "true ratio", "measured ratio", "95 % interval", "pairs", "verdict"
    yield ("---",) * 7
    guest.run(["lab-setup", "md"], timeout=240).check()
    try:
        for first, second in LIMITS:
            words = f"{ENVIRONMENT} python3 -m benchmarks.limited {first} {second} {' '.join(mode)}"
            done = guest.run(f"cd /src && {words}", timeout=PROVE_SECONDS).check()
            yield str(first), str(second), f"{second / first:.3f}", *figures(json.loads(done.stdout))
    finally:
        guest.run(["lab-setup", "no-md"], timeout=120).check()


def articles(guest: Machine, mode: Sequence[str], cases: Sequence[Case]) -> Iterator[Sequence[str]]:
    """Storage over NVMe/TCP in the guest: a synchronous mirror with a local drive, or the far one alone."""
    yield "what the article says", "storage", "workload", "round trip", "ratio", "95 % interval", "pairs", "verdict"
    yield ("---",) * 8
    for case in cases:
        with far_storage(guest, case) as directory:
            words = (
                "--target",
                directory,
                "--workload",
                case.workload,
                "--reconnect",
                f"{FAR} reconnect",
                *BUDGET,
                *mode,
            )
            done = guest.run(["advisor", "prove", *case.profile, *words, "--json"], timeout=PROVE_SECONDS)
        proof = json.loads(done.stdout or "{}")
        if "workloads" not in proof:
            raise SystemExit(f"{case.claim}: {done.stdout}{done.stderr}")
        print(done.stderr[-300:], file=sys.stderr)
        measured = figures(proof)
        yield case.claim, case.storage, case.workload, f"{2 * case.delay / 1000:g} ms", *measured


@contextmanager
def far_storage(guest: Machine, case: Case) -> Iterator[str]:
    """The storage of a case, set up and taken down; its directory."""
    is_mirror = case.storage == "mirror"
    setup = f"{FAR} up && {FAR} mirror" if is_mirror else f"{FAR} up {case.storage}"
    try:
        # A busy host is refused: what was made of file systems has to be written first.
        guest.run(f"{setup} && {FAR} delay {case.delay} && sync && sleep 20", timeout=240).check()
        yield "/srv/mirror" if is_mirror else "/srv/far"
    finally:
        guest.run(f"{FAR} down", timeout=120).check()


def figures(proof: dict[str, Any]) -> tuple[str, str, str, str]:
    """Ratio, interval, pairs and verdict of a proof with one claim."""
    (claim,) = proof["workloads"]
    verdict = proof["verdict"] + (f" ({'; '.join(proof['reasons'])})" if proof["reasons"] else "")
    if claim["ratio"] is None:
        return "", "", str(claim["pairs"]), verdict
    low, high = claim["ci95"]
    return f"{claim['ratio']:.3f}", f"{low:.3f} to {high:.3f}", str(claim["pairs"]), verdict


if __name__ == "__main__":
    sys.exit(main())
