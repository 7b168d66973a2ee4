"""The counters over time in what the capture script printed: its moments become the samples of a span."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from advisor.host import Completed, Host, MemoryFiles, Missing, lazy_regex
from advisor.observe.series import take_sample
from advisor.observe.span import CounterSpan
from advisor.snapshot.remote import wanted
from advisor.snapshot.remote.replayed import CapturedCommands

Answers = Mapping[tuple[str, ...], Completed | Missing]

_TIME = lazy_regex(r"/span/([0-9]{1,4})\.time", re.ASCII)
_UPTIME = lazy_regex(r"[0-9]{1,12}(?:\.[0-9]{1,6})?", re.ASCII)


def read_moments(
    members: Mapping[str, bytes | str], files: MemoryFiles, ends: tuple[Answers, Answers], *, is_root: bool
) -> CounterSpan | None:
    """The span of a capture; None where it has none, or where its clock stood still.

    ``files`` are those of the whole capture; ``ends`` what commands answered at the first and at the last moment.
    """
    times: dict[int, float] = {}
    for path, data in members.items():
        found = _TIME.fullmatch(path)
        text = data.decode("ascii", "replace").strip() if isinstance(data, bytes) else ""
        if found and _UPTIME.fullmatch(text):
            times[int(found[1])] = float(text)
    numbers = sorted(times)
    if len(numbers) < 2 or len(numbers) > wanted.MOST_MOMENTS + 1:
        return None
    contents: dict[str, dict[str, bytes]] = {str(number): {} for number in numbers}
    for path, data in members.items():
        name, slash, below = path.removeprefix("/span/").partition("/")
        # What is empty could not be read to its end: a counter is never printed as nothing.
        if slash and data and isinstance(data, bytes) and path.startswith("/span/") and name in contents:
            contents[name][f"/{below}"] = data
    samples = []
    for number in numbers:
        is_end = number in (numbers[0], numbers[-1])
        answers = ends[number != numbers[0]] if is_end else {}
        here = files.with_contents(contents[str(number)]) if is_end else MemoryFiles(contents[str(number)])
        host = Host(here, CapturedCommands(answers), is_root=is_root)
        samples.append(take_sample(host, whole=is_end, clock=partial(float, times[number])))
    try:
        return CounterSpan(samples)
    except ValueError:
        return None
