"""Plans, applies and rolls back on the network namespace that it is started in; what tests run by ``ip netns exec``.

usage: python -m tests.transaction.live STORE apply [--confirm SECONDS] [--fail-gate] TUNABLE=VALUE…
       python -m tests.transaction.live STORE rollback [ID]|confirm
       python -m tests.transaction.live STORE trial SECONDS TUNABLE=VALUE…
"""

from __future__ import annotations

import sys
import time

from advisor.errors import AdvisorError, CommandError
from advisor.facts.host_facts import scan
from advisor.host import live_host
from advisor.host.signals import interruptible
from advisor.planning.compute import make_plan
from advisor.planning.links import read_neighbours
from advisor.planning.observations import observe_targets
from advisor.planning.records import Plan, PlanTarget
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Store
from advisor.transaction.origin import private_namespaces
from advisor.transaction.status import confirm_switch, rollback_transactions
from advisor.transaction.trial import run_trial


def made_plan(pairs: list[tuple[str, str]]) -> Plan:
    """A plan for these values of the running host, live values only: this machine's files are not for tests."""
    host = live_host()
    facts = scan(host)
    targets = tuple(
        PlanTarget(tunable, value, "exactly", "test", "test", ("test",), "test", rank=place)
        for place, (tunable, value) in enumerate(pairs)
    )
    neighbours = read_neighbours(host, (tunable for tunable, _ in pairs), facts.links)
    seen = observe_targets(host, targets, {})
    private = private_namespaces(host)
    return make_plan(("test",), targets, (), seen, facts, runtime_only=True, neighbours=neighbours, private=private)


def refuse() -> int:
    raise CommandError("the gate says no")


def warn(text: str) -> None:
    print(text, file=sys.stderr)


def main(words: list[str]) -> None:
    store, verb, *rest = words
    kept = Store(store)
    if verb == "rollback":
        for _, outcomes in rollback_transactions(
            live_host(), rest[0] if rest else None, everything=False, force=False, store=kept, warn=warn
        ):
            for one in outcomes:
                print(one.what, one.state, one.detail)
        return
    if verb == "confirm":
        confirm_switch(live_host(), None, same_session=True, store=kept)
        return
    window = float(rest[rest.index("--confirm") + 1]) if "--confirm" in rest else 0
    pairs = [(word.partition("=")[0], word.partition("=")[2]) for word in rest if "=" in word]
    if verb == "trial":
        with kept.hold_lock(), run_trial(live_host(), made_plan(pairs), kept, hung_after=3) as running:
            running.set_values()
            print("on", flush=True)
            time.sleep(float(rest[0]))
            running.set_values()
        return
    with kept.hold_lock(), interruptible():
        gate = refuse if "--fail-gate" in rest else None
        apply_plan(live_host(), made_plan(pairs), kept, progress=print, gate=gate, confirm_within=window)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except AdvisorError as error:
        print(error.message, error.hint or "", sep="\n", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
