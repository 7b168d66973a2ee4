from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.host import DirectoryFiles, Host, LiveCommands, PutFile, WriteFile, observe
from advisor.planning.records import Change, FileChange, Plan, Skipped, SkipState
from advisor.report.documents import rollback_document, status_document, transaction_document, verify_document
from advisor.report.layout import columns
from advisor.report.plan import plan_text
from advisor.report.steps import step_command, steps_text
from advisor.report.terms import human_change
from advisor.report.transaction import applied_text, rollback_text, status_text, verify_text
from advisor.shell.state_table import State
from advisor.transaction.journal import Record, Store
from advisor.transaction.side_effects import ItemOutcome
from advisor.transaction.status import Status
from advisor.transaction.verify import Drift, find_drift
from advisor.tunables import parse_tunable
from advisor.tunables.preflight import SideEffect
from tests.report import plans
from tests.report.pasted import lines_too_wide
from tests.rules import build

SGR = re.compile(r"\x1b\[\d+m")
EMPTY = Plan(("nothing",), None, (), (), (), (), ())


def change(name: str = "sysctl:vm.swappiness", before: str = "60", after: str = "10", **parts: object) -> Change:
    one = parse_tunable(name)
    record = Change(
        tunable=name,
        before=before,
        after=after,
        persist="/etc/sysctl.d/90-advisor-p.conf",
        persist_note=None,
        risk=one.risk,
        takes_effect=one.takes_effect,
        why="Because.",
        hurts_when="Sometimes.",
        sources=("sysctl(8)",),
        profile="p",
        probe=one.probe,
        steps=one.make_steps(after),
        undo=one.make_steps(before),
    )
    return build.replaced(record, parts)


def skipped(state: SkipState, name: str = "sysctl:vm.swappiness", reason: str = "for a reason") -> Skipped:
    return Skipped(name, "60", "10", reason, state, "p")


def plan(*changes: Change, **parts: object) -> Plan:
    return build.replaced(EMPTY, {"profiles": ("p",), "changes": changes, **parts})


def record(made: Plan, identity: str = "0007", state: State = "applied", **parts: object) -> Record:
    whole = Record(identity, made, state, 1_772_374_500.0, 1_772_374_501.5, "boot", (), {}, (), None)
    return build.replaced(whole, parts)


def at(width: int, made: Plan) -> str:
    return plan_text(made, width=width, color=False)


def words(text: str) -> str:
    """The text as one line, so that a phrase is found wherever it was wrapped."""
    return " ".join(text.split())


# -- plan ----------------------------------------------------------------------------------------------------------


def test_a_plan_in_full() -> None:
    made = plan(
        change(why="The kernel prefers to drop file pages."),
        files=(
            FileChange(
                path="/etc/sysctl.d/90-advisor-p.conf",
                before=b"# ours\nvm.swappiness = 60\n",
                after=b"# ours\nvm.swappiness = 10\n",
                mode=0o644,
                uid=0,
                gid=0,
                mode_before=0o644,
                reload=(),
                tunables=("sysctl:vm.swappiness",),
                edits=(),
            ),
        ),
        skipped=(skipped("in-place", "sysctl:vm.dirty_ratio"),),
        notes=("memory budget: 20 TCP sockets",),
    )
    assert at(72, made) == (
        f"Plan of p{' ' * 39}fingerprint {made.fingerprint[:12]}\n"
        "1 value and 1 file would change; 1 already set. Nothing has been\n"
        "changed.\n"
        "\n"
        "p: 1 kernel parameter\n"
        "  takes effect  at once\n"
        "  persists      in /etc/sysctl.d/90-advisor-p.conf\n"
        "\n"
        "  sysctl:vm.swappiness  60 → 10\n"
        "      The kernel prefers to drop file pages.\n"
        "\n"
        "  hurts when  Sometimes.\n"
        "\n"
        "Files\n"
        "  --- /etc/sysctl.d/90-advisor-p.conf\n"
        "  +++ /etc/sysctl.d/90-advisor-p.conf\n"
        "  @@ -1,2 +1,2 @@\n"
        "   # ours\n"
        "  -vm.swappiness = 60\n"
        "  +vm.swappiness = 10\n"
        "\n"
        "Already set\n"
        "  sysctl:vm.dirty_ratio  for a reason\n"
        "\n"
        "Notes\n"
        "  - memory budget: 20 TCP sockets\n"
        "\n"
        "To apply it, as root:\n"
        "  advisor apply p\n"
    )


def test_bytes_are_told_in_units_beside_the_raw_number(tmp_path: Path) -> None:
    text = at(100, plans.sockets(tmp_path))
    assert "sysctl:net.core.rmem_max      212992 → 8388608 (208 KiB → 8 MiB)\n" in text
    assert "4096 131072 6291456 → 4096 131072 8388608 (third 6 MiB → 8 MiB)\n" in text


def test_units_are_told_of_bytes_only() -> None:
    assert human_change("sysctl:net.core.netdev_max_backlog", "1000", "8388608") == ""
    assert human_change("sysctl:net.ipv4.tcp_rmem", "4096 131072", "4096 131072 8388608") == ""
    assert human_change("sysctl:net.core.rmem_max", "odd", "8388608") == ""


def test_what_most_have_in_common_is_said_once_and_the_exception_by_name(tmp_path: Path) -> None:
    text = words(at(100, plans.sockets(tmp_path)))
    assert text.count("for new sockets") == 1
    assert "net.core.optmem_max: at once" in text
    assert text.count("persists in /etc/sysctl.d/") == 1


def test_each_reason_against_is_said_once(tmp_path: Path) -> None:
    text = words(at(100, plans.sockets(tmp_path)))
    assert text.count("the kernel doubles it for") == 1
    assert "net.core.rmem_max, net.core.wmem_max: A program" in text


def test_interrupts_that_move_alike_are_one_line_and_the_rest_is_counted(tmp_path: Path) -> None:
    text = words(at(100, plans.pinning(tmp_path)))
    assert "irq:20-27:affinity (8) 0-7 → 0-3 It serves queue-0-7 on node 0." in text
    assert "irq:100-259:affinity (160) queue-0-159 on node 0-1: its affinity is managed by the kernel" in text
    assert len(at(100, plans.pinning(tmp_path)).splitlines()) < 80


def test_a_value_too_long_for_one_line_is_shown_as_two(tmp_path: Path) -> None:
    text = at(80, plans.pinning(tmp_path))
    assert "      - NUMAPolicy=default NUMAMask= CPUAffinity=\n" in text
    assert "      + NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa\n" in text


def test_a_service_names_the_command_that_starts_it_again(tmp_path: Path) -> None:
    assert "systemctl restart beegfs-storage@numa0.service" in words(at(100, plans.pinning(tmp_path)))


def test_an_affinity_says_why_no_file_keeps_it(tmp_path: Path) -> None:
    assert "persists no: interrupt numbers are assigned at each boot" in words(at(100, plans.pinning(tmp_path)))


def test_links_each_name_their_own_file(tmp_path: Path) -> None:
    text = at(100, plans.jumbo(tmp_path))
    assert "link:eth0:mtu  1500 → 9000 bytes\n      persists: in /etc/systemd/network/10-advisor-eth0.link\n" in text
    assert "risk          the link may lose frames" in text
    assert "then udevadm control --reload" in text


def test_a_new_file_is_a_diff_against_nothing_with_its_mode(tmp_path: Path) -> None:
    text = at(100, plans.sockets(tmp_path))
    assert "  new file, mode 0644\n  --- /dev/null\n  +++ /etc/sysctl.d/90-advisor-socket-buffers-8m.conf\n" in text
    assert "  +net.core.rmem_max = 8388608\n" in text


def file_of(before: bytes | None, after: bytes) -> FileChange:
    return FileChange("/etc/x", before, after, 0o600, 0, 0, None, (), (), ())


def test_a_diff_says_where_a_line_has_no_end_and_shows_carriage_returns() -> None:
    text = at(80, plan(change(), files=(file_of(b"a\r\nb", b"a\nb\n"),)))
    assert "  -a\N{SYMBOL FOR CARRIAGE RETURN}\n  -b\n  \\ No newline at end of file\n  +a\n  +b\n" in text


def test_a_live_value_that_only_lacks_its_file_is_not_shown_as_changed() -> None:
    assert "sysctl:vm.swappiness  10 is active; the file persists it" in at(80, plan(change(before="10")))


def test_what_stands_in_the_way_is_told_first_and_last() -> None:
    in_the_way = skipped("blocked", "link:eth0:mtu", "its driver allows at most 1500")
    states: tuple[SkipState, ...] = ("in-place", "not-applicable", "would-lower", "unknown", "overridden")
    made = plan(change(), skipped=(*(skipped(state, reason=state) for state in states), in_the_way))
    text = at(80, made)
    titles = [
        "Blocked",
        "Would be overridden",
        "Unknown",
        "Unchanged: already sufficient",
        "Does not apply",
        "Already set",
    ]
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    assert text.endswith(f"Cannot be applied: {made.blocking[0].tunable}: {made.blocking[0].reason} (and 1 more)\n")
    assert "advisor apply" not in text


def test_a_plan_that_fits_nothing_says_so() -> None:
    assert at(80, plan(skipped=(skipped("not-applicable"),))).endswith(
        "Cannot be applied: nothing of it fits this host\n"
    )


def test_a_plan_with_nothing_left_says_so() -> None:
    text = at(80, plan(skipped=(skipped("in-place"), skipped("would-lower", "sysctl:vm.dirty_ratio"))))
    assert text.endswith("Nothing to do: everything is already set.\n")
    assert "is 60, wanted at least 10" in text


@pytest.mark.parametrize(("operator", "sense"), [("=", ""), (">=", "at least "), ("<=", "at most ")])
def test_a_value_is_printed_with_the_operator_that_asked_for_it(operator: str, sense: str) -> None:
    word = f"sysctl:vm.swappiness{operator}10"
    made = plan(change("sysctl:vm.swappiness", "60", "10"), words=(word,), profiles=("set-vm-swappiness",))
    assert f"  sysctl:vm.swappiness  60 → 10\n{f'      wanted {sense}10' if sense else ''}" in at(80, made)
    for state in ("in-place", "would-lower", "blocked", "unknown"):
        text = at(80, plan(skipped=(skipped(state, "sysctl:vm.swappiness"),), words=(word,)))
        if sense or state not in ("in-place", "would-lower"):
            assert f"is 60, wanted {sense}10" in text
    assert sense or "wanted" not in at(80, made)
    left = at(80, plan(skipped=(skipped("in-place", "sysctl:vm.swappiness"),), words=("sysctl:vm.swappiness=10",)))
    assert "wanted" not in left


def test_a_reason_that_several_share_is_said_once() -> None:
    why = "LLT is not installed"
    names = ("llt:highwater", "llt:rporthighwater", "link:{link}:mtu")
    items = tuple(skipped("not-applicable", name, "none selected" if "{" in name else why) for name in names)
    assert (
        "Does not apply here (3)\n"
        "  LLT is not installed:\n"
        "    llt:highwater       is 60, wanted 10\n"
        "    llt:rporthighwater  is 60, wanted 10\n"
        "  link:*:mtu  is 60, wanted 10: none selected\n"
    ) in at(80, plan(skipped=items))


def test_running_text_stops_where_it_is_hard_to_read(tmp_path: Path) -> None:
    assert max(columns(line) for line in at(160, plans.pinning(tmp_path)).splitlines()[1:]) < 130


def test_runtime_only_is_part_of_what_to_type(tmp_path: Path) -> None:
    text = at(80, plans.sockets(tmp_path, runtime_only=True))
    assert text.endswith("  advisor apply socket-buffers-8m --runtime-only\n")


def test_links_that_may_move_along_are_named() -> None:
    bridge = SideEffect("link:br0:mtu", "1500", parse_tunable("link:br0:mtu").probe, ())
    assert "  link:br0:mtu  1500 now\n" in at(80, plan(change("link:eth1:mtu", "1500", "9000"), side_effects=(bridge,)))


def test_a_label_with_an_exception_but_no_text_of_its_own_is_still_said() -> None:
    calm = [change(f"sysctl:vm.a{letter}") for letter in "bcd"]
    text = at(80, plan(*calm, change("sysctl:vm.ae", risk="link")))
    assert "risk vm.ae: the link may lose frames" in words(text)


def test_a_plan_of_a_thousand_links_is_set_quickly() -> None:
    many = [
        change(f"link:eth{n}f{n % 2}:mtu", "1500", "9000", persist=f"/etc/systemd/network/{n}.link")
        for n in range(1000)
    ]
    began = time.process_time()
    text = at(100, plan(*many, skipped=tuple(skipped("in-place", f"link:p{n}f{n % 3}:mtu") for n in range(1000))))
    assert time.process_time() - began < 5
    assert "link:eth999f1:mtu" in text


@pytest.mark.parametrize("made", [plans.sockets, plans.pinning, plans.jumbo])
@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_real_plans_keep_to_the_width(made: Callable[[Path], Plan], width: int, tmp_path: Path) -> None:
    assert lines_too_wide(at(width, made(tmp_path)), width) == []


def test_colour_changes_no_character_and_is_off_unless_wanted(tmp_path: Path) -> None:
    made = plans.pinning(tmp_path)
    colored = plan_text(made, width=80, color=True)
    assert "\x1b[" in colored
    assert "\x1b" not in at(80, made)
    assert SGR.sub("", colored) == at(80, made)


HOSTILE = st.text(alphabet=st.sampled_from("a7 \x1b[31m\n\t\u202e\udcff'\"$`;[bold]/"), min_size=1, max_size=30)


@settings(deadline=None)
@given(HOSTILE, st.integers(min_value=40, max_value=120), st.booleans())
def test_no_name_of_a_host_moves_the_cursor(name: str, width: int, color: bool) -> None:
    item = Skipped(f"link:{name}:mtu", name, name, name, "blocked", "p")
    file = file_of(None, name.encode("utf-8", "surrogateescape"))
    one = change(
        before=name,
        after=name[::-1],
        persist=None,
        persist_note=name,
        why=name,
        hurts_when=name,
        probe=parse_tunable("sysctl:vm.swappiness").probe,
        steps=(WriteFile(f"/proc/sys/{name}", name),),
    )
    made = plan(one, skipped=(item,) * 5, notes=(name,), files=(file,))
    kept = record(made, kept=((name, name),), why_undone=name, pending=name, state="applying")
    drift = (Drift("0007", name, name, name, name),)
    outcomes = (ItemOutcome(name, "failed", name, name), ItemOutcome(name, "restored", name))
    texts = (
        plan_text(made, width=width, color=color) if not_surrogate(name) else "",
        applied_text(kept, made, width=width, color=color) if not_surrogate(name) else "",
        status_text(Status((kept,), drift), width=width, color=color),
        verify_text(Status((record(made),), drift), width=width, color=color),
        rollback_text(((kept, outcomes),), width=width, color=color),
    )
    for text in texts:
        lines = (SGR.sub("", text) if color else text).split("\n")
        assert all(map(str.isprintable, lines))
        assert lines_too_wide("\n".join(lines), width) == []


def not_surrogate(name: str) -> bool:
    """The fingerprint of a plan is over its JSON, which carries no lone surrogates."""
    return "\udcff" not in name


# -- steps ---------------------------------------------------------------------------------------------------------


def run_sh(script: str, *arguments: str) -> str:
    done = subprocess.run(["sh", *arguments, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_steps_typed_by_hand_bring_about_what_the_plan_says(tmp_path: Path) -> None:
    made = plans.sockets(tmp_path)
    root = tmp_path / "host"
    script = re.sub(r"(?<= )/(proc|etc)/", rf"{root}/\1/", steps_text(made))
    run_sh(f"set -e\n{script}")
    host = Host(DirectoryFiles(str(root)), LiveCommands())
    assert [observe(host, one.probe) for one in made.changes] == [one.after for one in made.changes]
    assert [host.read_bytes(file.path) for file in made.files] == [file.after for file in made.files]


@pytest.mark.parametrize("made", [plans.sockets, plans.pinning, plans.jumbo])
def test_steps_are_a_shell_script(made: Callable[[Path], Plan], tmp_path: Path) -> None:
    run_sh(steps_text(made(tmp_path)), "-n")


def test_steps_are_in_the_order_of_apply(tmp_path: Path) -> None:
    text = steps_text(plans.pinning(tmp_path))
    parts = ("/proc/sys/kernel/numa_balancing", "/proc/irq/20/", "mkdir -p", "cat > /etc/systemd", "systemctl daemon")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from(["EOF", "EOF0", "a 'b' $c `d`", "é", "# x", "\\n", "\x1b[2J", ""]), max_size=5).map(
        lambda lines: "".join(f"{line}\n" for line in lines).encode()
    ),
)


@settings(max_examples=60, deadline=None)
@given(CONTENTS)
def test_a_file_written_by_hand_is_the_same_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    place = tmp_path_factory.getbasetemp() / "by-hand"
    file = msgspec.structs.replace(file_of(None, content), path=str(place))
    text = steps_text(plan(change(steps=()), files=(file,)))
    run_sh(text)
    assert place.read_bytes() == content
    assert all(line.isprintable() for line in text.split("\n"))


VALUES = st.text(alphabet=st.sampled_from("a \x1b\x07\u202e\u00a0é'\"\\$`!*"), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_a_command_by_hand_is_visible_whole_and_means_the_same(value: str) -> None:
    command = step_command(WriteFile("/dev/stdout", value))
    assert command.isprintable()
    assert run_sh(command.partition(" > ")[0]) == f"{value}\n"


def test_no_steps_are_shown_where_none_would_be_done() -> None:
    blocked = steps_text(plan(change(), skipped=(skipped("blocked", reason="its driver\nallows less"),)))
    empty = steps_text(plan(skipped=(skipped("in-place"),)))
    for text in (blocked, empty):
        assert all(line.startswith("#") for line in text.splitlines())
    assert "Cannot be applied: sysctl:vm.swappiness: its driver" in blocked
    assert "Nothing to do" in empty


def test_a_new_file_gets_its_owner_and_mode() -> None:
    file = msgspec.structs.replace(file_of(None, b"x\n"), uid=12, gid=34, new_directories=("/etc/a/b", "/etc/a"))
    text = steps_text(plan(change(), files=(file,)))
    assert "mkdir -p /etc/a/b\ncat > /etc/x <<'EOF'\nx\nEOF\nchmod 0600 /etc/x\nchown 12:34 /etc/x\n" in text


# -- apply ---------------------------------------------------------------------------------------------------------


def test_applied_tells_what_was_read_back_and_the_way_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path))
    made = plans.sockets(tmp_path)
    text = applied_text(record(made), made, width=200, color=False)
    assert text.startswith("Applied 0007: 7 values set and read back, 1 file written.\n")
    assert "sysctl:net.core.rmem_max      212992 → 8388608" in text
    assert "/etc/sysctl.d/90-advisor-socket-buffers-8m.conf is new, mode 0644" in text
    assert "  advisor rollback 0007\n" in text
    assert f"  sh {tmp_path}/transactions/0007/rollback.sh\n" in text
    assert "Open sockets keep their value" in text


def test_applied_names_what_must_be_started_again_and_what_a_reboot_undoes(tmp_path: Path) -> None:
    made = plans.pinning(tmp_path)
    text = applied_text(record(made), made, width=100, color=False)
    assert "  systemctl restart beegfs-storage@numa0.service\n" in text
    assert "16 values will not survive a reboot: interrupt numbers are assigned at each boot" in words(text)
    assert "Unchanged: 160 not applicable." in text


def test_applied_tells_what_moved_along() -> None:
    bridge = SideEffect("link:br0:mtu", "1500", parse_tunable("link:br0:mtu").probe, ())
    made = plan(change("link:eth1:mtu", "1500", "9000"), side_effects=(bridge,))
    moved = record(made, side_effects_after={"link:br0:mtu": "9000", "link:gone:mtu": "1"})
    assert "link:br0:mtu side effect: 1500 → 9000" in applied_text(moved, made, width=80, color=False)


def test_an_apply_with_nothing_to_do_says_unchanged() -> None:
    made = plan(skipped=(skipped("in-place"),))
    assert applied_text(None, made, width=80, color=False) == ("Unchanged: 1 already set.\n")


# -- status and verify ---------------------------------------------------------------------------------------------


def test_status_without_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", "/srv/state")
    assert status_text(Status((), ()), width=80, color=False) == (
        "No transactions in /srv/state, which ADVISOR_STATE_DIR names.\n"
    )
    monkeypatch.delenv("ADVISOR_STATE_DIR")
    assert status_text(Status((), ()), width=80, color=False) == (
        "No transactions: advisor has changed nothing on this host.\n"
    )


def test_status_lists_the_last_transaction_first_in_its_own_words() -> None:
    made = plan(change())
    records = (
        record(made, "0001", "rolled-back", why_undone="asked for"),
        record(made, "0002", "partly-rolled-back", why_undone="no space", kept=(("sysctl:vm.swappiness", "is 30"),)),
        record(made, "0003", "rolled-back", why_undone="trial"),
        record(made, "0004", "applied"),
        record(made, "0005", "applying", ended=None, pending="sysctl:vm.swappiness"),
    )
    text = status_text(Status(records, ()), width=100, color=False)
    heads = [line for line in text.splitlines() if re.match(r"000\d", line)]
    assert heads == [
        "0005 p: interrupted during apply",
        "0004 p: active",
        "0003 p: rolled back",
        "0002 p: partially rolled back",
        "0001 p: rolled back",
    ]
    assert "1 value; applied 2026-03-01 14:15:01 UTC" in text
    assert "rolled back because: no space" in text
    assert "sysctl:vm.swappiness not restored: is 30" in text
    assert "the last step announced: sysctl:vm.swappiness" in text
    assert "a trial of its live values" in text
    assert "Active: 1 value matches." in text


def test_status_distinguishes_what_runs_from_what_was_interrupted(tmp_path: Path) -> None:
    made = plan(change())
    begun = record(made, "0005", "applying", ended=None)
    process = msgspec.structs.replace(begun, process=4711)
    cases = {
        "running": (process, None, "0005: running since 2026-03-01 14:15:00 UTC, process 4711"),
        "held": (
            begun,
            "process 4711, since 2026-03-01 14:05:09",
            "Running: the lock is held by process 4711, since 2026-03-01 14",
        ),
    }
    for one, holder, said in cases.values():
        text = status_text(Status((one,), (), lock_holder=holder), width=120, color=False)
        assert "0005 p: running\n" in text
        assert said in text
        assert "interrupted" not in text.lower()
        assert "advisor rollback" not in text
        assert "No transaction is active" not in text
    text = status_text(Status((begun,), ()), width=120, color=False)
    assert "0005 p: interrupted during apply\n" in text
    assert "advisor rollback\n" in text
    assert "running" not in text
    assert "No transaction is active" not in text
    idle = status_text(Status((), (), lock_holder="process 4711"), width=120, color=False)
    assert "No transactions" in idle
    store = Store(str(tmp_path))
    assert store.lock_holder() is None
    with store.hold_lock():
        assert f"process {os.getpid()}, since 20" in (store.lock_holder() or "")
    assert store.lock_holder() is None


def test_status_has_what_is_active_first_then_the_last_five_others() -> None:
    made = plan(change())
    records = (
        record(made, "0001", "applied"),
        *(record(made, f"{number:04d}", "rolled-back") for number in range(2, 10)),
        record(made, "0010", "awaiting-confirmation", seconds_left=42.0),
        record(made, "0011", "partly-rolled-back"),
    )
    drift = (Drift("0001", "sysctl:vm.swappiness", "10", "60", "modified externally"),)

    def heads(*, everything: bool) -> list[str]:
        text = status_text(Status(records, drift), width=100, color=False, everything=everything)
        return [line for line in text.splitlines() if re.match(r"00\d\d |\d+ more trans| +advisor status", line)]

    assert heads(everything=False) == [
        "0010 p: active, awaiting confirmation",
        "0001 p: active, drifted",
        "0011 p: partially rolled back",
        *(f"{number:04d} p: rolled back" for number in (9, 8, 7, 6)),
        "4 more transactions:",
        "  advisor status --all",
    ]
    assert [line[:4] for line in heads(everything=True)] == [
        "0010",
        "0001",
        "0011",
        *(f"{n:04d}" for n in range(9, 1, -1)),
    ]


def test_a_time_that_no_calendar_has_does_not_stop_a_status() -> None:
    odd = record(plan(change()), began=1e300, ended=float("nan"))
    assert "at an unknown time" in status_text(Status((odd,), ()), width=80, color=False)
    assert msgspec.json.encode(status_document(Status((odd,), ())))


def test_verify_counts_each_value_once_however_many_transactions_set_it() -> None:
    made = plan(change(), files=(file_of(None, b"x\n"),))
    gone = record(plan(change("sysctl:vm.dirty_ratio")), "0000", "rolled-back")
    both = Status((gone, record(made, "0001"), record(made, "0002")), ())
    assert verify_text(both, width=80, color=False) == "Active: 1 value and 1 file match.\n"
    assert verify_document(both)["values"] == 1


def test_verify_says_plainly_that_nothing_is_in_force() -> None:
    text = verify_text(Status((), ()), width=80, color=False)
    assert text == "No transaction is active: nothing to verify.\n"
    assert verify_document(Status((), ()))["ok"] is True


def test_drift_as_verify_finds_it_is_told_line_by_line(tmp_path: Path) -> None:
    made = plans.sockets(tmp_path)
    host = Host(DirectoryFiles(str(tmp_path / "host")), LiveCommands())
    for one in made.changes:
        for step in one.steps:
            host.do(step)
    (tmp_path / "host/proc/sys/net/core/rmem_max").write_text("4194304\n")
    (tmp_path / "host/proc/sys/net/core/wmem_max").write_text("212992\n")
    status = Status((record(made),), find_drift(host, (record(made),)))
    assert verify_text(status, width=110, color=False) == (
        "Drift: 3 of 8 items\n"
        "  /etc/sysctl.d/90-advisor-socket-buffers-8m.conf: was removed (0007)\n"
        "  sysctl:net.core.rmem_max: expected 8388608, found 4194304, modified externally (0007)\n"
        "  sysctl:net.core.wmem_max: expected 8388608, found 212992, is as before the transaction (0007)\n"
        "\n"
        "5 values match.\n"
        "To apply them again:\n"
        "  advisor apply socket-buffers-8m\n"
        "To restore the earlier values:\n"
        "  advisor rollback 0007\n"
    )


# -- rollback ------------------------------------------------------------------------------------------------------


def test_a_rollback_of_everything() -> None:
    made = plan(change())
    outcomes = (ItemOutcome("/etc/x", "restored", "removed"), ItemOutcome("sysctl:vm.swappiness", "already", "is 60"))
    assert rollback_text(((record(made), outcomes),), width=80, color=False) == (
        "Rolled back 0007 (p): 1 restored, 1 already restored.\n  /etc/x: removed\n  sysctl:vm.swappiness: is 60\n"
    )


def test_a_rollback_tells_what_was_kept_or_failed_and_how_to_do_it_by_hand() -> None:
    outcomes = (
        ItemOutcome(
            "sysctl:vm.swappiness", "kept", "modified externally (30)", "printf '%s\\n' 60 > /proc/sys/vm/swappiness"
        ),
        ItemOutcome("/etc/x", "failed", "No space left", "restore the earlier content of /etc/x (the script holds it)"),
    )
    text = rollback_text(((record(plan(change())), outcomes),), width=80, color=False)
    assert text.startswith("Not rolled back: 0007 (p): 1 skipped, 1 failed.\n")
    assert (
        "skipped: modified externally (30)\n      by hand:\n        printf '%s\\n' 60 > /proc/sys/vm/swappiness\n"
        in text
    )
    assert "by hand: restore the earlier content of /etc/x" in words(text)
    assert "  advisor rollback 0007 --force\n" in text


def test_a_rollback_in_part_is_one_in_which_something_went_back() -> None:
    lost = ItemOutcome("sysctl:vm.swappiness", "kept", "modified externally (30) before 0008 was applied")
    for state, title in (
        ("restored", "Partially rolled back"),
        ("passed", "Partially rolled back"),
        ("already", "Not rolled back:"),
    ):
        other = ItemOutcome("/etc/x", state, "as it is")  # type: ignore[arg-type]
        text = rollback_text(((record(plan(change())), (lost, other)),), width=80, color=False)
        assert text.startswith(f"{title} 0007 (p): ")


def test_the_command_that_forces_it_is_told_once() -> None:
    force = "advisor rollback 0007 --force"
    lost = tuple(ItemOutcome(name, "kept", "theirs", force) for name in ("sysctl:vm.swappiness", "/etc/x"))
    text = rollback_text(((record(plan(change())), lost),), width=80, color=False)
    assert text.count(force) == 1
    assert "by hand" not in text


def test_verify_says_that_a_transaction_waits_and_for_how_long() -> None:
    waiting = record(plan(change()), state="awaiting-confirmation", seconds_left=42.4)
    text = verify_text(Status((waiting,), ()), width=80, color=False)
    assert "Active: 1 value matches.\n" in text
    assert "0007 awaits confirmation: rolls back automatically in 42 s unless confirmed:\n" in text
    assert "  advisor confirm 0007\n" in text
    assert "awaits confirmation" not in verify_text(Status((record(plan(change())),), ()), width=80, color=False)
    found = verify_document(Status((waiting,), ()))["awaiting_confirmation"]
    assert isinstance(found, list)
    assert [(one["id"], one["seconds_left"]) for one in found] == [("0007", 42)]


def test_a_rollback_names_services_that_run_with_their_old_placement(tmp_path: Path) -> None:
    made = plans.pinning(tmp_path)
    unit = next(one.tunable for one in made.changes if one.tunable.startswith("unit:"))
    text = rollback_text(((record(made), (ItemOutcome(unit, "restored", "as before"),)),), width=80, color=False)
    assert "  systemctl restart beegfs-storage@numa0.service\n" in text


def test_many_interrupts_are_one_line_in_every_report(tmp_path: Path) -> None:
    made = plans.pinning(tmp_path)
    kept = record(made)
    moved = [one for one in made.changes if one.tunable.startswith("irq:")]
    outcomes = tuple(ItemOutcome(one.tunable, "restored", f"{one.after} → {one.before}") for one in moved)
    drift = tuple(Drift("0007", one.tunable, one.after, one.before, "modified externally") for one in moved)
    assert "irq:20-27:affinity (8)                  0-7 → 0-3\n" in applied_text(kept, made, width=80, color=False)
    assert "irq:28-35:affinity (8): 4-7 → 0-7\n" in rollback_text(((kept, outcomes),), width=80, color=False)
    assert "irq:20-27:affinity (8): expected 0-3, found 0-7, modified" in verify_text(
        Status((kept,), drift), width=80, color=False
    )


def test_text_loads_no_library_that_a_plan_can_do_without() -> None:
    loaded = "advisor.report.documents, advisor.report.plan, advisor.report.steps, advisor.report.transaction"
    code = f"import sys, {loaded}; print(*{{'rich', 'jinja2', 'pyroute2'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


# -- documents -----------------------------------------------------------------------------------------------------


def test_the_document_of_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", "/state")
    made = plans.sockets(tmp_path)
    document = msgspec.json.decode(msgspec.json.encode(transaction_document(record(made), made)))
    assert list(document)[:4] == ["schema", "id", "state", "deadline"]
    assert document["schema"] == "advisor.transaction/1"
    assert (document["id"], document["state"], document["deadline"]) == ("0007", "applied", None)
    assert document["rollback_script"] == "/state/transactions/0007/rollback.sh"
    assert document["fingerprint"] == made.fingerprint
    assert [one["tunable"] for one in document["changes"]] == [one.tunable for one in made.changes]
    assert {"files", "skipped", "notes", "profiles"} <= document.keys()
    assert document["dry_run"] is False


def test_the_document_of_a_dry_run_holds_every_command(tmp_path: Path) -> None:
    made = plans.pinning(tmp_path)
    document = transaction_document(None, made)
    assert (document["id"], document["state"], document["dry_run"]) == (None, "unchanged", True)
    commands = [command for step in document["steps"] for command in step["commands"]]  # type: ignore[attr-defined]
    assert commands[-1] == "systemctl daemon-reload"


def test_the_document_of_an_apply_with_nothing_to_do() -> None:
    document = transaction_document(None, plan(skipped=(skipped("in-place"),)))
    assert (document["id"], document["state"], document["dry_run"]) == (None, "unchanged", False)
    assert not document["changes"]


def test_the_other_documents() -> None:
    made = plan(change())
    drift = (Drift("0007", "sysctl:vm.swappiness", "10", "60", "is as before the transaction"),)
    status = Status((record(made),), drift)
    assert status_document(status)["schema"] == "advisor.status/1"
    assert status_document(status)["in_force"] == ["0007"]
    verified = verify_document(status)
    assert (verified["schema"], verified["ok"]) == ("advisor.verify/1", False)
    assert verified["drift"] == [msgspec.to_builtins(drift[0])]
    failed = ItemOutcome("sysctl:vm.swappiness", "failed", "EIO", "by hand")
    rolled = rollback_document(((record(made), (failed,)),))
    assert (rolled["schema"], rolled["ok"]) == ("advisor.rollback/1", False)
    assert rollback_document(())["ok"] is True


def test_steps_that_put_a_file_hold_no_words_of_a_rollback() -> None:
    assert "restore the earlier content" in step_command(PutFile("/etc/x", b"x"))
    assert "restore the earlier content" not in steps_text(plan(change(), files=(file_of(None, b"x\n"),)))
