"""What is exported: every value that a plan wants on this host, whether or not it is there already."""

from __future__ import annotations

import msgspec

from advisor.host import Host, Missing, Probe, Run, Step
from advisor.plan.records import Plan
from advisor.script import hand_command
from advisor.tunables import FileEdit, edited, tunable
from advisor.tunables.edits import Persisted


class LeftOut(msgspec.Struct, frozen=True):
    """A value that the form does not carry, and why."""

    tunable: str
    value: str
    why: str


class Kept(msgspec.Struct, frozen=True):
    """A file of our own that keeps values over a reboot. ``reload`` makes its owner read it."""

    path: str
    content: bytes
    mode: int
    reload: tuple[Run, ...]


class Setting(msgspec.Struct, frozen=True):
    """One value. ``edit`` is where this host keeps it over a reboot; Missing says why nowhere, Persisted that its
    own command does.

    ``steps`` bring it about at once; none where only the file and what is to be started again do.
    """

    tunable: str
    value: str
    why: str
    hurts_when: str
    sources: tuple[str, ...]
    probe: Probe
    steps: tuple[Step, ...]
    edit: FileEdit | Persisted | Missing

    @property
    def kind(self) -> str:
        return self.tunable.partition(":")[0]

    @property
    def commands(self) -> tuple[str, ...]:
        """What sets it, as shell."""
        return tuple(hand_command(step) for step in self.steps)


class Exported(msgspec.Struct, frozen=True):
    """``name`` is that of the profiles together; ``plan`` is the one that the values come from."""

    name: str
    plan: Plan
    settings: tuple[Setting, ...]
    left_out: tuple[LeftOut, ...]
    files: tuple[Kept, ...]
    hostname: str | None


class Bundle(msgspec.Struct, frozen=True):
    """The files of an exported form by their path below a directory, and how they are put to use.

    ``executable`` are those that are run.
    """

    files: dict[str, bytes]
    left_out: tuple[LeftOut, ...]
    use: tuple[str, ...]
    executable: tuple[str, ...] = ()


def collect(host: Host, plan: Plan, *, hostname: str | None) -> Exported:
    """The values of ``plan``: those that it changes, and those that are in place already."""
    name = "-".join(plan.profiles)
    wanted = [(one.tunable, one.after, one) for one in plan.changes]
    reasons = {one.tunable: one for one in plan.changes}
    settings = [
        Setting(
            identity,
            value,
            one.why,
            one.hurts_when,
            one.sources,
            one.probe,
            one.steps,
            _edit(host, identity, value, name),
        )
        for identity, value, one in wanted
    ]
    left_out = []
    for skipped in plan.skipped:
        if skipped.state == "in-place" and skipped.wanted is not None and skipped.tunable not in reasons:
            settings.append(_in_place(host, skipped.tunable, skipped.wanted, name))
        elif skipped.state != "in-place":
            left_out.append(LeftOut(skipped.tunable, skipped.wanted or "", skipped.reason))
    return Exported(name, plan, tuple(settings), tuple(left_out), _kept(settings), hostname)


def _in_place(host: Host, identity: str, value: str, profile: str) -> Setting:
    one = tunable(identity)
    return Setting(
        identity,
        value,
        "In place on the host that this was made on.",
        "",
        (),
        one.probe,
        one.steps(value),
        _edit(host, identity, value, profile),
    )


def _edit(host: Host, identity: str, value: str, profile: str) -> FileEdit | Persisted | Missing:
    return tunable(identity).edit(host, value, profile=profile)


def is_own(edit: FileEdit) -> bool:
    """Whether the file is made for the values alone: one of a product or of the host's own is edited in its place."""
    name = edit.path.rpartition("/")[2]
    return "advisor" in name and all(one.path == edit.path for one in edit.whole)


def _kept(settings: list[Setting]) -> tuple[Kept, ...]:
    contents: dict[str, bytes] = {}
    edits: dict[str, list[FileEdit]] = {}
    for setting in settings:
        if isinstance(setting.edit, FileEdit) and is_own(setting.edit):
            path = setting.edit.path
            contents[path] = edited(contents.get(path), setting.edit)
            edits.setdefault(path, []).append(setting.edit)
    return tuple(
        Kept(path, contents[path], some[0].mode, tuple(dict.fromkeys(step for one in some for step in one.reload)))
        for path, some in sorted(edits.items())
    )
