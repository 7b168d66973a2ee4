"""Search among profiles for what helps a benchmark of your own, and confirm it."""

from advisor.operations import prove, tuning
from advisor.proof.tuning import TuneOptions

candidates = tuning.name_candidates(["socket-buffers-8m,iscsi"])
command = prove.choose_command("true", ["time"])
options = TuneOptions(budget_seconds=tuning.parse_budget("30m"))
print([one.source for one in candidates.offers])


def search() -> None:
    """Race the candidates with the present state, and confirm the winner on fresh data."""
    assert command is not None
    found = tuning.tune_command(candidates, command, options, say=print)
    print(found.verdict, found.winner)
