"""What one of several wrote into a shared file is removed from it, and nothing else of it changes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.host import Missing
from advisor.planning.records import FileChange
from advisor.planning.unmerge import holds_edit, remove_edits, settings_of
from advisor.tunables import FileEdit, apply_edit

KEYS = {
    "conf": ("tuneNumWorkers", "connMaxInternodeNum", "logLevel"),
    "sysctl": ("vm.swappiness", "net.core.rmem_max", "kernel.pid_max"),
    "llttab-flow": ("highwater", "lowwater", "rporthighwater"),
    "llttab-timer": ("peerinact", "heartbeat", "arp"),
    "tmpfiles": ("/sys/a", "/sys/b", "/sys/c"),
    "cpf": ("IO/READ", "IO/WRITE", "LOG/LEVEL"),
    "shell": ("MTU", "ZONE", "TYPE"),
    "module-option": ("one depth", "one width", "two depth"),
}
FORMS = sorted(KEYS)
WORDS = st.sampled_from(["1", "22", "333"])


def edits_of(form: str, values: dict[int, str]) -> tuple[FileEdit, ...]:
    return tuple(FileEdit("/etc/x", form, KEYS[form][n], value, b"# ours\n") for n, value in values.items())  # type: ignore[arg-type]


def section(**values: str) -> tuple[FileEdit, ...]:
    return tuple(FileEdit("/etc/x", "section", "Link/", f"{name}={value}") for name, value in values.items())


def changed(before: bytes | None, edits: tuple[FileEdit, ...]) -> FileChange:
    content = before
    for edit in edits:
        content = apply_edit(content, edit)
    assert content is not None
    return FileChange("/etc/x", before, content, 0o644, 0, 0, None, (), (), edits)


SOME = st.dictionaries(st.integers(0, 2), WORDS, min_size=1)


@settings(max_examples=50, deadline=None)
@given(
    form=st.sampled_from(FORMS), base=st.none() | SOME, first=SOME, second=SOME, theirs=st.booleans(), end=st.booleans()
)
def test_any_two_in_any_file(
    form: str, base: dict[int, str] | None, first: dict[int, str], second: dict[int, str], theirs: bool, end: bool
) -> None:
    start = None if base is None else b"# theirs\n" + changed(b"", edits_of(form, base)).after
    if start is not None and end:
        start = start.rstrip(b"\n")
    lower = changed(start, edits_of(form, first))
    upper = changed(lower.after, edits_of(form, second))
    live = upper.after + (b"# added since\n" if theirs and upper.after.endswith(b"\n") else b"")
    left = remove_edits(live, lower, upper.edits)
    assert isinstance(left, bytes), left
    assert all(holds_edit(left, edit) for edit in upper.edits)
    kept = {one for edit in upper.edits for one in settings_of(edit)}
    for edit in lower.edits:
        if not settings_of(edit) & kept and not holds_edit(start, edit):
            assert not holds_edit(left, edit)
    assert (b"# added since\n" in left) == (b"# added since\n" in live)
    assert remove_edits(left, lower, upper.edits) == left, "once is enough"
    # What the upper one goes back to is the file as the lower one had found it, byte for byte.
    assert remove_edits(lower.after, lower, ()) == start
    assert remove_edits(upper.after, upper, ()) == lower.after


def test_a_header_that_others_stand_below_stays() -> None:
    lower = changed(b"[Match]\nName=eth1\n", section(MTUBytes="9000"))
    upper = changed(lower.after, section(RxBufferSize="512"))
    left = remove_edits(upper.after, lower, upper.edits)
    assert left == b"[Match]\nName=eth1\n[Link]\nRxBufferSize=512\n"


def test_a_line_that_somebody_else_changed_is_not_guessed_at() -> None:
    lower = changed(b"vm.swappiness = 60\n", edits_of("sysctl", {0: "1", 1: "22"}))
    upper = changed(lower.after, edits_of("sysctl", {2: "333"}))
    live = upper.after.replace(b"vm.swappiness = 1", b"vm.swappiness = 5")
    left = remove_edits(live, lower, upper.edits)
    assert left == Missing("unreadable", "vm.swappiness was modified externally since")


def test_nested_sections_that_two_share_are_left_to_a_person() -> None:
    pytest.importorskip("yaml")
    edit = FileEdit("/etc/netplan/90-advisor.yaml", "netplan", "ethernets/eth1", "9000")
    lower = changed(None, (edit,))
    upper = changed(lower.after, (msgspec.structs.replace(edit, key="ethernets/eth2"),))
    left = remove_edits(upper.after, lower, upper.edits)
    assert isinstance(left, Missing)
    assert "shared with an upper layer" in left.why
