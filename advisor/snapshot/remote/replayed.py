"""Answers to the questions of a scan and of plans, from the fewer and broader ones that a capture asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from advisor.facts.ethtool_text import PARSERS, kernel_feature_names, parse_ethtool_features
from advisor.facts.filesystems import parse_block_sizes
from advisor.host import Completed, Missing, lazy_regex
from advisor.host.commands import DEADLINE_SECONDS
from advisor.host.ethtool import UNSUPPORTED, Answer

Answers = Mapping[tuple[str, ...], "Completed | Missing"]

_SHOW = ("systemctl", "show")
_UNITS = (*_SHOW, "--no-pager")
_STAT = ("stat", "--file-system", "--format=%S %n", "--")
_DRIVER = frozenset({"driver", "version", "firmware", "bus"})
_LINE = lazy_regex(r"[ \t]*([^:\n]+): (on|off)(?: \[(fixed|requested on|requested off)[^\n]*)?[^\n]*")


class CapturedCommands:
    """The commands of a capture: those that were run as they were asked, and those that follow from others."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._units = _parse_units(answers)

    def run(
        self, argv: Sequence[str], *, timeout: float = DEADLINE_SECONDS, stdin: str | None = None
    ) -> Completed | Missing:
        words = tuple(argv)
        answer = self._answers.get(words)
        if answer is not None:
            return answer
        if words[:2] == _SHOW and "--" in words:
            # `systemctl show` of some units, from that of all.
            if isinstance(self._units, Missing):
                return self._units
            at = words.index("--")
            wanted = [name for word in words[2:at] for name in word.removeprefix("--property=").split(",")]
            return Completed(0, "\n".join(self._show_unit(unit, wanted) for unit in words[at + 1 :]), "")
        if words[: len(_STAT)] == _STAT:
            return self._block_sizes(words[len(_STAT) :])
        return Missing("absent", f"{words[0]} is not installed")

    def _show_unit(self, unit: str, wanted: Sequence[str]) -> str:
        assert not isinstance(self._units, Missing)
        known = self._units.get(unit, {"Id": unit, "LoadState": "not-found"})
        return "".join(f"{name}={known[name]}\n" for name in known if name in wanted)

    def _block_sizes(self, targets: Sequence[str]) -> Completed | Missing:
        asked = next((one for words, one in self._answers.items() if words[: len(_STAT)] == _STAT), None)
        if asked is None:
            return Missing("absent", "stat was not asked about these")
        if isinstance(asked, Missing):
            return asked
        sizes = parse_block_sizes(asked.stdout)
        return Completed(asked.rc, "".join(f"{sizes[one]} {one}\n" for one in targets if one in sizes), asked.stderr)


def _parse_units(answers: Answers) -> Mapping[str, Mapping[str, str]] | Missing:
    """Properties by unit; those that ``systemctl show`` printed for every service that is loaded."""
    asked = next((one for words, one in answers.items() if words[:3] == _UNITS), None)
    if asked is None:
        return Missing("absent", "systemctl is not installed")
    if isinstance(asked, Missing):
        return asked
    if asked.rc:
        return asked.failure("systemctl")
    blocks = (dict(_parse_properties(block)) for block in re.split(r"\n\n+", asked.stdout))
    return {block["Id"]: block for block in blocks if "Id" in block}


def _parse_properties(block: str) -> Iterator[tuple[str, str]]:
    for line in block.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            yield name, value


def ethtool_answers(answers: Answers) -> dict[tuple[str, str], Answer | Missing]:
    """What the drivers said, by link and query as `Host.ethtool` names it, from what ethtool(8) printed."""
    queries = {options[0]: what for what, (options, _) in PARSERS.items()}
    found: dict[tuple[str, str], Answer | Missing] = {}
    for words, one in answers.items():
        if words[0] != "ethtool" or len(words) != 3:
            continue
        option, link = words[1:]
        if option == "-k":
            found |= {(link, what): answer for what, answer in _parse_features(one).items()}
        elif option in queries:
            found[link, queries[option]] = _parse_ethtool(one, queries[option])
    return found


def _answer_text(one: Completed) -> str:
    # Complaints are on standard error.
    return f"{one.stderr}\n{one.stdout}"


def _parse_ethtool(one: Completed | Missing, what: str) -> Answer | Missing:
    if isinstance(one, Missing):
        return one
    answer = PARSERS[what][1](_answer_text(one))
    if isinstance(answer, Missing):
        return UNSUPPORTED if answer.is_absent else answer
    return {key: value for key, value in answer.items() if key in _DRIVER} if what == "driver" else answer


def _parse_features(one: Completed | Missing) -> dict[str, Answer | Missing]:
    """Features that are on, that can be changed, and that were asked for."""
    if isinstance(one, Missing):
        return dict.fromkeys(("features", "changeable", "requested"), one)
    printed = parse_ethtool_features(_answer_text(one))
    if isinstance(printed, Missing):
        return dict.fromkeys(("features", "changeable", "requested"), printed)
    changeable: dict[str, bool] = {}
    requested: dict[str, bool] = {}
    for name, state, more in _LINE.findall(one.stdout):
        if name in printed:
            changeable[name] = more != "fixed"
            requested[name] = more == "requested on" if more.startswith("requested") else state == "on"
    return {
        "features": dict(kernel_feature_names(printed)),
        "changeable": dict(kernel_feature_names(changeable)),
        "requested": dict(kernel_feature_names(requested)),
    }
