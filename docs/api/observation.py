"""The twin of what the busiest disk does, and how it behaves on a scratch file."""

from pathlib import Path

from advisor.errors import AdvisorError
from advisor.operations import observation

try:
    found = observation.observe_load(seconds=1)
    print(found.title)
except AdvisorError as error:
    print(error.message)


def judge_load() -> None:
    """Run the twin, and keep it where it is faithful."""
    judged = observation.judge_twin(found, Path("."))
    observation.refuse_unfaithful(judged)
    observation.save_workload(judged.workload, Path("load.json"))
