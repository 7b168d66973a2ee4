"""What `advisor prove` says in the lab where the truth is known, and of the articles' claims: a table in Markdown.

    python -m tests.bench.lab_claims known       ratios that cgroup io.max fixes beforehand
    python -m tests.bench.lab_claims articles    MTU and socket buffers over an emulated wire

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
from typing import Any, Final

from tests.lab.guest import Guest, Machine
from tests.lab.hardware import STORAGE_HOST
from tests.lab.serve import ServedGuest

FAR: Final = "sh /src/tests/lab/guest/far-storage"
ENVIRONMENT: Final = "PYTHONPATH=/src:/opt/advisor-deps PYTHONPYCACHEPREFIX=/var/cache/pycache"
PROVE_SECONDS: Final = 3600

# True ratios of the second limit to the first, in I/O operations a second.
LIMITS: Final = ((400, 480), (400, 440), (400, 420), (400, 400), (400, 360))

BUFFERS: Final = ("socket-buffers-8m",)
JUMBO: Final = ("jumbo-frames", "--set", "links=near0", "--allow-link-flap")
# What the article says, profile, workload, microseconds of delay in each direction.
ARTICLES: Final = (
    ("MTU 9000 is the best tuning for 4k sequential writes over TCP", JUMBO, "infoscale.4k-seq-rw50", 0),
    ("the same across zones, 1.16 ms of round trip", JUMBO, "infoscale.4k-seq-rw50", 580),
    ("8 MB buffers help 64k sequential I/O", BUFFERS, "infoscale.64k-seq-rw50", 0),
    ("the same across zones, 1.16 ms of round trip", BUFFERS, "infoscale.64k-seq-rw50", 580),
)


def main() -> int:
    """Run the chosen cases and print their table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.lab_claims")
    parser.add_argument("what", choices=("known", "articles"))
    parser.add_argument("--deep", action="store_true", help="48 pairs instead of up to 24")
    options = parser.parse_args()
    mode = ("--deep",) if options.deep else ()
    with machine() as guest:
        rows = known_ratios(guest, mode) if options.what == "known" else articles(guest, mode)
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
            words = f"{ENVIRONMENT} python3 -m tests.bench.limited {first} {second} {' '.join(mode)}"
            done = guest.run(f"cd /src && {words}", timeout=PROVE_SECONDS).check()
            yield str(first), str(second), f"{second / first:.3f}", *figures(json.loads(done.stdout))
    finally:
        guest.run(["lab-setup", "no-md"], timeout=120).check()


def articles(guest: Machine, mode: Sequence[str]) -> Iterator[Sequence[str]]:
    """A synchronous mirror of a local drive and one over NVMe/TCP, in the guest's own network."""
    yield "what the article says", "workload", "round trip", "ratio", "95 % interval", "pairs", "verdict"
    yield ("---",) * 7
    guest.run(f"{FAR} up && {FAR} mirror", timeout=240).check()
    try:
        for claim, profile, workload, delay in ARTICLES:
            guest.run(f"{FAR} delay {delay}", timeout=60).check()
            words = ("--target", "/srv/mirror", "--workload", workload, "--reconnect", f"{FAR} reconnect", *mode)
            done = guest.run(["advisor", "prove", *profile, *words, "--json"], timeout=PROVE_SECONDS)
            if not done.stdout.startswith("{"):
                raise SystemExit(done.stderr)
            print(done.stderr[-300:], file=sys.stderr)
            yield claim, workload, f"{2 * delay / 1000:g} ms", *figures(json.loads(done.stdout))
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
