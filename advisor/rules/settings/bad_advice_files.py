"""Bad advice in fstab, udev rules, multipath.conf, start-up scripts and other files outside sysctl.d.

Each rule names the lines that follow the advice (file and line), what is wrong with them, and what to do instead:
tables/file-advice.ini. docs/advice.md lists all of it, with what files do not show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from advisor.facts.settings.site_settings import SiteSetting
from advisor.host.numbers import is_count
from advisor.host.origin import read_sections
from advisor.rules import sources
from advisor.rules.queries import kernel_version
from advisor.rules.rule import (
    SEVERITIES,
    Decide,
    DeclaredWorkload,
    Facts,
    Finding,
    Remedy,
    Rule,
    RunShell,
    SetTunable,
    edit_file,
    register,
)

ORDER = 270

_BLK_MQ_ONLY = (5, 0)
_OLD_SCHEDULERS = {"noop": "none", "deadline": "mq-deadline", "cfq": "bfq"}
_LONG_QUEUE = 10_000

Judge = Callable[[Facts, SiteSetting], bool]
"""Whether a setting of a host follows the advice."""


def _is_ignored_count(facts: Facts, one: SiteSetting) -> bool:
    if one.key != "rr_min_io":
        return False
    from advisor.rules.remote.multipath import is_request_based

    return is_request_based(facts) is not False


def _is_old_scheduler(facts: Facts, one: SiteSetting) -> bool:
    version = kernel_version(facts)
    is_new = version is not None and version >= _BLK_MQ_ONLY
    return is_new and one.key in ("queue/scheduler", "elevator") and one.value in _OLD_SCHEDULERS


def _is_long_queue(facts: Facts, one: SiteSetting) -> bool:
    is_number = is_count(one.value) and len(one.value) < 10
    return one.key in ("txqueuelen", "tx_queue_len") and is_number and int(one.value) >= _LONG_QUEUE


_LINES: Mapping[str, Judge] = {
    "advice.irqbalance-off": lambda facts, one: (
        one.key == "stops" and one.value == "irqbalance" and (facts.cpu.threads or 0) > 1
    ),
    "advice.queue-length": _is_long_queue,
    "advice.old-scheduler": _is_old_scheduler,
    "advice.bfq-for-nvme": lambda _, one: one.key == "queue/scheduler" and one.value == "bfq" and "nvme" in one.scope,
    "advice.rr-min-io": _is_ignored_count,
}
_BETTER: Mapping[str, Callable[[SiteSetting], Remedy | None]] = {
    "advice.irqbalance-off": lambda _: RunShell(
        "systemctl unmask irqbalance.service && systemctl enable --now irqbalance.service", "let irqbalance run"
    ),
    "advice.target-chooser": lambda line: SetTunable(f"file:{line.path}:tuneTargetChooser", "randomized"),
    "advice.huge-pages-for-all": lambda _: SetTunable("thp:enabled", "madvise"),
    "advice.ifconfig-mtu": lambda line: SetTunable(f"link:{line.scope}:mtu", line.value) if line.scope else None,
}


def _follows(words: str) -> Judge:
    """Settings of a list, each with or without a value."""
    listed = [word.partition("=") for word in words.split(" | ")]
    return lambda _, one: any(one.key == key and (not equals or one.value == value) for key, equals, value in listed)


def _open_line(line: SiteSetting) -> RunShell | None:
    """A line may go on, or share itself with what is right."""
    is_text = line.path.startswith("/etc/") and not line.path.endswith(".service")
    return edit_file(line.path, line.line, f"change line {line.line} of {line.path}") if is_text else None


def _describe_setting(one: SiteSetting) -> str:
    said = f"{one.path}:{one.line}: {one.key}" + (f" = {one.value}" if one.value else "")
    return f"{said} for {one.scope}" if one.scope and one.scope != one.key else said


def _register_file(name: str, pairs: Sequence[tuple[str, str]]) -> None:
    texts = dict(pairs)
    is_bad = _follows(texts["lines"]) if "lines" in texts else _LINES[name]
    better = _BETTER.get(name)

    def judge(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
        found = {_describe_setting(one): one for one in facts.site_settings if is_bad(facts, one)}
        if not found:
            return None
        return made.found(
            why=texts["why"],
            evidence={"detail": tuple(found)},
            remedy=(
                Decide(texts["instead"]),
                *dict.fromkeys(one for line in found.values() if (one := _open_line(line))),
                *(new for line in found.values() if better and (new := better(line))),
            ),
            intent="intent" in texts,
        )

    made = register(
        Rule(
            id=name,
            severity=next(one for one in SEVERITIES if one == texts.get("severity", "advice")),
            title=texts["title"],
            what=texts["what"],
            why=texts["why"],
            helps_when=texts["helps_when"],
            hurts_when=texts["hurts_when"],
            sources=tuple(getattr(sources, word) for word in texts["sources"].split()),
            function=judge,
            module=__name__,
            contradictions=tuple(texts.get("contradictions", "").split()),
        )
    )


for _row in read_sections("file-advice.ini"):
    _register_file(*_row)
