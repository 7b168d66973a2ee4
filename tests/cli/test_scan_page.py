"""``advisor scan`` as a user sees it: the page, one line, everything; accepted findings; what changed since."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from advisor.errors import UsageError
from advisor.operations import scan
from advisor.operations.files import keep_scan
from advisor.operations.muting import parse_until
from advisor.rules.judged import number_findings
from advisor.snapshot.archive import open_snapshot
from tests.cli.inside import call_inside
from tests.schemas import judge

MDSTAT = """\
Personalities : [raid1]
md0 : active raid1 sdb1[1] sda1[0](F)
      1000 blocks super 1.2 [2/1] [_U]

md1 : active raid1 sdd1[1] sdc1[0](F)
      1000 blocks super 1.2 [2/1] [_U]

md2 : inactive sde1[0](S)
      1000 blocks super 1.2

unused devices: <none>
"""


class Machine:
    """A tree with three sick arrays, and a state directory and a file of accepted findings of its own."""

    def __init__(self, place: Path) -> None:
        self.root = place / "root"
        self.ignore = place / "etc" / "ignore.toml"
        self.state = place / "state"
        self.write("proc/mdstat", MDSTAT)
        self.write("proc/sys/kernel/hostname", "stor1\n")
        (self.root / "sys").mkdir()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *words: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
        places = {"ADVISOR_IGNORE_FILE": self.ignore, "ADVISOR_STATE_DIR": self.state}
        return call_inside(*words, COLUMNS=columns, **places)

    def scan(self, *words: str) -> str:
        done = self.run("scan", "--root", str(self.root), *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scan("--json"))
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_page_says_what_is_wrong_of_what_and_when(machine: Machine) -> None:
    first, counts, *lines = machine.scan().splitlines()
    assert first.startswith("stor1")
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC · --root \S", first)
    assert " read 2" in first, "when it was read: a tree of files has no date of its own"
    assert counts.startswith("2 critical")
    assert any("1 critical  md0, md1: 1 of 2 drives missing" in line for line in lines)
    assert any("2 critical  md2 is inactive and cannot be read" in line for line in lines)


def test_one_line_and_everything(machine: Machine) -> None:
    (line,) = machine.scan("--brief").splitlines()
    assert line.startswith("stor1: 2 critical")
    assert "md0, md1: 1 of 2 drives missing" in line
    whole = machine.scan("--all")
    assert "hurts when" in whole
    assert "arrays.degraded" in whole
    assert whole.splitlines()[0] == "stor1"


def test_json_says_when_and_of_what(machine: Machine) -> None:
    found = machine.document()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["scanned_at"])
    assert (found["captured_at"], found["source"]) == (None, "root")
    assert {one["muted"] for one in found["findings"]} == {None}


def test_a_snapshot_remembers_when_it_was_taken(machine: Machine, tmp_path: Path) -> None:
    archive = tmp_path / "host.tar.gz"
    assert machine.run("snapshot", "-o", str(archive)).returncode == 0
    done = machine.run("scan", "--json", "--snapshot", str(archive))
    found = json.loads(done.stdout)
    assert found["source"] == "snapshot"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["captured_at"])
    assert "snapshot of" in machine.run("scan", "--snapshot", str(archive)).stdout.splitlines()[0]


def test_a_number_and_an_id_are_explained(machine: Machine) -> None:
    by_number = machine.run("explain", "2", "--root", str(machine.root))
    assert "md2 is inactive" in by_number.stdout
    assert by_number.stdout.count("arrays.inactive") == 1
    found = json.loads(machine.run("explain", "1", "--json", "--root", str(machine.root)).stdout)
    assert (found["number"], len(found["findings"])) == (1, 2)
    for label in ("hurts when", "Sources"):
        assert by_number.stdout.count(label) == 1
    wrong = machine.run("explain", "77", "--root", str(machine.root))
    assert (wrong.returncode, "77" in wrong.stderr) == (2, True)


def test_an_id_is_explained_with_the_findings_of_a_capture(machine: Machine) -> None:
    found = machine.run("explain", "arrays.inactive", "--root", str(machine.root))
    assert "md2 is inactive" in found.stdout
    assert "The commands are for the captured host." in found.stdout
    none = machine.run("explain", "disks.failing", "--root", str(machine.root))
    assert "The captured host has no finding of this rule." in none.stdout
    document = json.loads(machine.run("explain", "arrays.inactive", "--root", str(machine.root), "--json").stdout)
    assert [one["id"] for one in document["findings"]] == ["arrays.inactive"]
    assert machine.run("explain", "sysctl:vm.swappiness", "--root", str(machine.root)).returncode == 0


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_the_list_of_a_capture_says_whose_commands_they_are(machine: Machine, columns: int) -> None:
    page = machine.run("scan", "--root", str(machine.root), columns=columns).stdout
    (line,) = (line for line in page.splitlines() if line.startswith("Captured host: "))
    assert len(line) <= columns
    assert "--root" in line
    assert f"--root {machine.root}" in machine.run("scan", "--root", str(machine.root), columns=300).stdout
    assert "Captured host: " in machine.run("scan", "--all", "--root", str(machine.root)).stdout


def test_a_plan_of_a_capture_says_where_it_is_applied(machine: Machine) -> None:
    machine.write("proc/sys/vm/swappiness", "60\n")
    made = machine.run("plan", "sysctl:vm.swappiness=10", "--root", str(machine.root))
    assert "To apply it, as root on the captured host:" in made.stdout
    machine.write("proc/sys/net/ipv4/tcp_sack", "0\n")
    fixed = machine.run("fix", "advice.tcp-sack-off", "--yes", "--root", str(machine.root))
    assert "--yes: nothing is applied to a capture" in fixed.stderr
    assert "on the captured host:" in fixed.stdout


def test_a_directory_and_an_archive_are_told_apart(machine: Machine, tmp_path: Path) -> None:
    archive = tmp_path / "host.tar.gz"
    archive.write_bytes(b"")
    (tmp_path / "proc").mkdir()
    for option, place, hint in (("--snapshot", tmp_path, "--root"), ("--root", archive, "--snapshot")):
        done = machine.run("scan", option, str(place))
        assert (done.returncode, f"{hint} {place}" in done.stderr) == (2, True)


def test_a_number_of_a_capture_is_muted_for_its_host(machine: Machine) -> None:
    assert machine.run("mute", "2", "--reason", "spare", "--root", str(machine.root)).returncode == 0
    assert 'host = "stor1"' in machine.ignore.read_text()
    assert "md2" not in machine.scan()
    assert "1 arrays.inactive of md2 on stor1" in machine.scan("--muted")
    assert machine.run("unmute", "2").returncode == 3
    assert machine.run("unmute", "1").returncode == 0
    assert "md2" in machine.scan()


def test_a_number_of_a_capture_is_not_muted_in_the_file_of_this_machine(machine: Machine) -> None:
    environment = {"ADVISOR_IGNORE_FILE": ""}
    done = call_inside("mute", "2", "--reason", "x", "--root", machine.root, **environment)
    assert (done.returncode, "--host stor1" in done.stderr) == (2, True)
    assert not Path("/etc/advisor/ignore.toml").exists()


def send(data: bytes, *words: str, **places: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    call = [sys.executable, "-m", "advisor", *words, "--snapshot", "-"]
    process = subprocess.Popen(call, stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, **places})
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()
    return process


@pytest.mark.parametrize("words", [("plan", "jumbo-frames"), ("limits",), ("recommend",), ("explain", "1")])
def test_standard_input_is_read_as_a_snapshot(words: tuple[str, ...], tmp_path: Path) -> None:
    piped = send(Path(LAB).read_bytes(), *words, TMPDIR=str(tmp_path)).communicate(timeout=120)
    given = call_inside(*words, "--snapshot", LAB)
    assert (piped[0].decode().replace("--snapshot -", f"--snapshot {LAB}"), piped[1]) == (given.stdout, b"")


def test_an_interrupted_snapshot_from_standard_input_leaves_nothing(tmp_path: Path) -> None:
    process = send(bytes(1 << 22), "scan", TMPDIR=str(tmp_path))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert (process.returncode, list(tmp_path.iterdir())) == (130, [])


@pytest.mark.parametrize("day", ["2026-13-01", "2026-02-30", "2026/01/31", "31.12.2026"])
def test_a_day_that_there_is_not_is_no_missing_file(machine: Machine, day: str) -> None:
    done = machine.run("scan", "--root", str(machine.root), "--since", day)
    assert (done.returncode, "not a date" in done.stderr) == (2, True)
    assert "no such file" not in done.stderr


@pytest.mark.parametrize("words", [("--all", "--brief"), ("--json", "--all"), ("--muted", "--since", "x")])
def test_two_forms_at_once_are_refused(machine: Machine, words: tuple[str, ...]) -> None:
    assert machine.run("scan", *words).returncode == 2


# -- accepted findings -----------------------------------------------------------------------------------------------


def test_a_muted_finding_is_counted_listed_and_not_a_failure(machine: Machine) -> None:
    words = ("--host", "*", "--reason", 'a "spare" is ordered', "--until", "2999-01-31")
    assert machine.run("scan", "--root", str(machine.root), "--fail-on", "critical").returncode == 1
    assert machine.run("mute", "arrays.degraded", "--device", "md0", *words).returncode == 0
    assert "md1: 1 of 2 drives missing" in machine.scan()
    assert "· 1 finding muted" in machine.scan()
    assert machine.run("mute", "arrays.degraded", *words).returncode == 0
    assert machine.run("mute", "arrays.inactive", *words).returncode == 0
    assert "critical" not in machine.scan().replace("2 critical", "")
    assert machine.run("scan", "--root", str(machine.root), "--fail-on", "critical").returncode == 0
    listed = machine.scan("--muted")
    assert 'a "spare" is ordered' in listed
    assert "until 2999-01-31" in listed
    muted = [one["muted"] for one in machine.document()["findings"] if one["id"] == "arrays.inactive"]
    assert muted == [{"reason": 'a "spare" is ordered', "until": "2999-01-31"}]
    assert machine.run("unmute", "arrays.degraded").returncode == 0
    assert "md0, md1: 1 of 2 drives missing" in machine.scan()
    assert "arrays.inactive" in machine.ignore.read_text()
    assert machine.run("unmute", "arrays.degraded").returncode == 3


def test_an_entry_for_other_hosts_says_so_in_the_list(machine: Machine) -> None:
    assert machine.run("mute", "arrays.degraded", "--host", "web*", "--reason", "theirs").returncode == 0
    listed = machine.scan("--muted")
    assert "not for this host: mutes nothing here" in listed
    assert "drives missing" not in listed


def test_an_entry_for_a_rule_that_there_is_not_says_so(machine: Machine) -> None:
    machine.ignore.parent.mkdir()
    entries = [
        f'[[ignore]]\nid = "{name}"\nhost = "*"\nreason = "r"\n' for name in ("arrays.degradd", "arrays.inactive")
    ]
    machine.ignore.write_text("".join(entries))
    assert "· 1 finding muted" in machine.scan()
    listed = machine.scan("--muted")
    assert listed.startswith("1 finding muted by 1 of 2 entries ·")
    assert "no rule has this id: mutes nothing; did you mean arrays.degraded" in listed
    wrong = machine.run("mute", "arrays.degradd", "--reason", "r")
    assert (wrong.returncode, "did you mean arrays.degraded" in wrong.stderr) == (2, True)


def test_mute_by_number_says_that_the_numbers_have_moved(machine: Machine) -> None:
    words = ("--reason", "known", "--root", str(machine.root))
    assert "numbers of later findings are lower now" in machine.run("mute", "1", *words).stderr
    assert "numbers" not in machine.run("mute", "arrays.degraded", *words).stderr


def test_unmute_by_number_is_safe(machine: Machine) -> None:
    muted = machine.run("mute", "1", "--reason", "known", "--root", str(machine.root)).stderr
    assert "muted: arrays.degraded of md0 on stor1\nmuted: arrays.degraded of md1 on stor1\n" in muted
    assert "one entry for each of 2 devices; advisor unmute arrays.degraded removes all\n" in muted
    muted = machine.run("mute", "arrays.inactive", "--host", "*", "--reason", "known").stderr
    assert "advisor unmute arrays.inactive shows it again" in muted
    # A later one of the same rule: its id would remove more than that.
    muted = machine.run("mute", "arrays.degraded", "--host", "web1", "--device", "md7", "--reason", "theirs").stderr
    assert "this entry alone: advisor unmute arrays.degraded --device md7 --host web1\n" in muted
    assert machine.run("unmute", "1", "9").returncode == 3
    listed = machine.run("scan", "--muted").stdout
    assert listed.startswith("0 findings muted, 4 entries")
    assert listed.endswith("advisor unmute N shows a finding again, advisor unmute 1 2 several at once.\n")
    # Numbers of one call are those of one list.
    done = machine.run("unmute", "1", "3").stderr
    assert done == (
        "no longer muted: arrays.degraded of md0 on stor1\n"
        "no longer muted: arrays.inactive on *\n"
        "still muted: arrays.degraded of md1 on stor1, number 1 now\n"
        "still muted: arrays.degraded of md7 on web1, number 2 now\n"
        "the numbers of later entries are lower now: advisor scan --muted\n"
    )
    done = machine.run("unmute", "2").stderr
    assert done == (
        "no longer muted: arrays.degraded of md7 on web1\nstill muted: arrays.degraded of md1 on stor1, number 1 now\n"
    )
    assert machine.run("unmute", "arrays.degraded").stderr == "no longer muted: arrays.degraded of md1 on stor1\n"


def test_an_entry_without_a_host_is_for_this_machine_alone(machine: Machine) -> None:
    assert machine.run("mute", "arrays.degraded", "--reason", "mine").returncode == 0
    assert "md0, md1: 1 of 2 drives missing" in machine.scan()


def test_an_entry_that_is_over_says_so(machine: Machine) -> None:
    machine.ignore.parent.mkdir()
    machine.ignore.write_text(
        '# ours\n[[ignore]]\nid = "arrays.degraded"\nhost = "stor*"\nreason = "old"\nuntil = 2020-01-31\n'
    )
    page = machine.scan()
    assert "md0, md1: 1 of 2 drives missing" in page
    assert "no longer muted: arrays.degraded on stor* (until 2020-01-31)" in page
    assert "expired on 2020-01-31" in machine.scan("--muted")
    assert machine.run("mute", "arrays.degraded", "--host", "stor*", "--reason", "new").returncode == 0
    assert "# ours" in machine.ignore.read_text()
    assert machine.ignore.read_text().count("[[ignore]]") == 1
    assert "· 2 findings muted" in machine.scan()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[ignore]]\nid = "x"\nreason = "y"\nwhen = 1\n', ":4: when"),
        ('[[ignore]]\nid = "x"\n', ":1: reason: missing"),
        ('[[ignore]]\nid = "x"\nreason = "y"\nuntil = "soon"\n', ":4: until"),
        ('[[ignore]]\nid = "x"\nreason = "y"\nuntil = 2027-01-31T10:00:00\n', ":4: until"),
        ("[[ignore]]\nid = 3\nreason = 'y'\n", ":2: id"),
        ("\n[other]\nx = 1\n", ":2: other"),
        ("ignore = 3\n", ":1: ignore"),
        ("ignore = [3]\n", ":1: ignore"),
        ("[[ignore\n", "line 1"),
        ('[[ignore]]\nid = "x"\nreason = "y"\nuntil = 2027-13-45\n', ":4: until: "),
        ('[[ignore]]\nid = "arrays.degraded\n', ":2: id: "),
    ],
)
def test_a_bad_file_is_named_with_its_line(machine: Machine, text: str, said: str) -> None:
    machine.ignore.parent.mkdir()
    machine.ignore.write_text(text)
    done = machine.run("scan", "--root", str(machine.root))
    assert (done.returncode, done.stdout) == (2, "")
    assert str(machine.ignore) in done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("mute", "no.such-rule", "--reason", "x"),
        ("mute", "arrays.degraded", "--reason", " "),
        ("mute", "arrays.degraded", "--reason", "x", "--until", "soonish"),
        ("mute", "arrays.degraded", "--reason", "x", "--until", "2020-01-01"),
        ("mute", "arrays.degraded"),
    ],
)
def test_what_cannot_be_muted_changes_nothing(machine: Machine, words: tuple[str, ...]) -> None:
    assert machine.run(*words).returncode == 2
    assert not machine.ignore.exists()


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2027-01-31", (2027, 1, 31)),
        ("January", (2026, 12, 31)),
        ("jan", (2026, 12, 31)),
        ("DECEMBER", (2026, 11, 30)),
        ("November", (2027, 10, 31)),
        ("Mai", (2027, 4, 30)),
        ("Oktober", (2027, 9, 30)),
        ("März", (2027, 2, 28)),
        ("2027-01", (2026, 12, 31)),
        ("30d", (2026, 12, 23)),
        ("2w", (2026, 12, 7)),
        ("2 weeks", (2026, 12, 7)),
        ("0d", (2026, 11, 23)),
    ],
)
def test_until_takes_days_months_and_times_from_now(text: str, day: tuple[int, int, int]) -> None:
    assert parse_until(text, date(2026, 11, 23)) == date(*day)


@pytest.mark.parametrize(
    "text", ["ma", "ju", "\uff13\uff10d", "30", "1m", "2027-13", "0000-01", "2026-11", "2026-11-22", ""]
)
def test_another_text_is_no_day_to_come(text: str) -> None:
    with pytest.raises(UsageError):
        parse_until(text, date(2026, 11, 23))


@pytest.mark.parametrize("text", ["99999999d", "999999999w"])
def test_a_day_beyond_the_calendar_is_too_far(text: str) -> None:
    with pytest.raises(UsageError, match="too far ahead"):
        parse_until(text, date(2026, 11, 23))


def test_mute_without_a_reason_prints_a_call_that_works(machine: Machine) -> None:
    done = machine.run("mute", "arrays.degraded")
    (hint,) = re.findall(r"hint: (advisor .*)", done.stderr)
    assert machine.run(*shlex.split(hint)[1:]).returncode == 0
    assert 'reason = "spare ordered"' in machine.ignore.read_text()


def test_mute_says_when_it_ends_and_that_a_device_has_no_such_finding(machine: Machine) -> None:
    words = ("mute", "arrays.degraded", "--reason", "x", "--until", "2998-12-31", "--root", str(machine.root))
    here = machine.run(*words, "--device", "md0")
    assert " ".join(here.stderr.split()).startswith(
        "muted until 2998-12-31, shown again on 2999-01-01: arrays.degraded of md0 on stor1 advisor unmute"
    )
    assert max(map(len, here.stderr.splitlines())) <= 80
    note = "no finding here is muted by it"
    assert note not in here.stderr
    for more, is_said in ((["md77"], True), (["md7*"], True), (["md77", "--host", "stor*"], False)):
        done = machine.run(*words, "--device", *more)
        assert (done.returncode, note in " ".join(done.stderr.split())) == (0, is_said)


LAB = str(Path(__file__).parents[2] / "docs/examples/lab.tar.gz")


def test_a_number_of_a_page_with_a_workload_means_the_same_finding(machine: Machine) -> None:
    given = ("--workload", "fss-udp", "--snapshot", LAB)
    plain, declared = (
        number_findings(scan(open_snapshot(Path(LAB)), workload=one).findings) for one in (None, "fss-udp")
    )
    number = next(at for at, (one, other) in enumerate(zip(plain, declared, strict=False)) if one.id != other.id)
    wanted = declared[number]
    page = machine.run("scan", *given, columns=160).stdout
    assert f"Captured host: advisor's commands need --snapshot {LAB} --workload fss-udp" in page
    assert f"· {wanted.id}" in " ".join(machine.run("explain", str(number + 1), *given).stdout.split())
    fixed = json.loads(machine.run("fix", str(number + 1), *given, "--json").stdout)
    assert {one["id"] for one in fixed["findings"]} == {wanted.id}
    assert machine.run("mute", str(number + 1), "--reason", "x", *given).returncode == 0
    assert f'id = "{wanted.id}"' in machine.ignore.read_text()


def test_links_that_nobody_would_count_are_not_counted(machine: Machine) -> None:
    for name, kind, state in (("lo", "772", "unknown"), ("ifb0", "1", "down"), ("veth0", "1", "up")):
        machine.write(f"sys/class/net/{name}/operstate", f"{state}\n")
        machine.write(f"sys/class/net/{name}/type", f"{kind}\n")
        machine.write(f"sys/class/net/{name}/mtu", "1500\n")
    assert ": 1 link, 3 arrays, disks unknown\n" in machine.scan()


def test_the_list_of_accepted_findings_has_its_file_apart(machine: Machine) -> None:
    assert machine.run("mute", "2", "--reason", "spare", "--root", str(machine.root)).returncode == 0
    listed = " ".join(machine.scan("--muted").split())
    assert listed.startswith(f"1 finding muted by 1 entry \u00b7 {machine.ignore} 1 arrays")


def test_this_machine_as_a_tree_is_not_called_a_capture(machine: Machine) -> None:
    page = machine.run("scan", "--root", "/").stdout
    assert "Captured host" not in page
    assert "captured host" not in machine.run("scan", "--all", "--root", "/").stdout


def test_muting_needs_the_right_to_write(open_path: Path, as_nobody: tuple[str, ...]) -> None:
    machine = Machine(open_path)
    machine.ignore.parent.mkdir()
    command = [sys.executable, "-m", "advisor", "mute", "arrays.degraded", "--reason", "x"]
    environment = {"PATH": os.environ["PATH"], "ADVISOR_IGNORE_FILE": str(machine.ignore)}
    done = subprocess.run([*as_nobody, *command], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 6, done.stderr


# -- since -----------------------------------------------------------------------------------------------------------


def test_what_is_new_worse_and_gone(machine: Machine, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    before.write_text(machine.scan("--json"))
    assert "nothing is new, worse or gone" in machine.scan("--since", str(before))
    rows = MDSTAT.replace("sda1[0](F)", "sda1[0]").replace("[2/1] [_U]", "[2/2] [UU]", 1)
    rows = rows.replace("md2 : inactive sde1[0](S)", "md3 : inactive sde1[0](S)")
    machine.write("proc/mdstat", rows)
    page = machine.scan("--since", str(before))
    assert "1 new" in page
    assert "2 gone" in page
    new, gone = page.split("\nNew\n")[1].split("\nGone\n")
    assert "md3 is inactive" in new
    assert "md0: 1 of 2 drives missing" in gone
    assert "md2 is inactive" in gone
    archive = tmp_path / "now.tar.gz"
    assert machine.run("snapshot", "-o", str(archive), "--root", str(machine.root)).returncode == 0
    assert "nothing is new" in machine.scan("--since", str(archive))


def test_the_document_says_what_is_new_worse_and_gone(machine: Machine, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    before.write_text(machine.scan("--json"))
    assert "since" not in json.loads(before.read_text())
    machine.write("proc/mdstat", MDSTAT.replace("md2 : inactive sde1[0](S)", "md3 : inactive sde1[0](S)"))
    found = judge(machine.scan("--json", "--since", str(before)))
    assert found["since"]["hostname"] == "stor1"
    assert found["since"]["time"] == json.loads(before.read_text())["scanned_at"]
    titles = {name: [one["title"] for one in found["since"][name]] for name in ("new", "worse", "gone")}
    assert titles == {
        "new": ["md3 is inactive and cannot be read"],
        "worse": [],
        "gone": ["md2 is inactive and cannot be read"],
    }
    assert len(found["findings"]) == 3
    machine.scan("--json", "--since", str(before), "--keep")
    (kept,) = (machine.state / "scans").iterdir()
    assert "since" not in json.loads(kept.read_text())


def test_a_rebuild_that_ends_badly_is_worse(machine: Machine, tmp_path: Path) -> None:
    rebuilding = (
        "md0 : active raid1 sdb1[2] sda1[0]\n      1000 blocks [2/1] [U_]\n      [=>...]  recovery = 7.5% (75/1000)"
    )
    machine.write("proc/mdstat", f"Personalities : [raid1]\n{rebuilding}\n\nunused devices: <none>\n")
    before = tmp_path / "before.json"
    before.write_text(machine.scan("--json"))
    machine.write("proc/mdstat", "Personalities : [raid1]\nmd0 : active raid1 sda1[0]\n      1000 blocks [2/1] [U_]\n")
    page = machine.scan("--since", str(before))
    assert "1 worse" in page
    assert "md0: 1 of 2 drives missing" in page.split("\nWorse\n")[1]


def test_a_date_means_the_last_kept_scan_before_it(machine: Machine) -> None:
    none = machine.run("scan", "--root", str(machine.root), "--since", "2999-01-01")
    assert none.returncode == 3
    assert "advisor scan --keep" in none.stderr
    machine.scan("--keep")
    (kept,) = (machine.state / "scans").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "nothing is new" in machine.scan("--since", "2999-01-01")
    early = machine.run("scan", "--root", str(machine.root), "--since", "2020-01-01")
    assert early.returncode == 3
    assert "the first is of 20" in early.stderr
    # Until the day after it, only a time of day is later.
    worked = re.search(r"hint: advisor scan --since (\S+) ", early.stderr)
    assert worked, early.stderr
    assert "nothing is new" in machine.scan("--since", worked[1])
    kept.rename(kept.with_name("2021-05-31T10-00-00Z.json"))
    early = machine.run("scan", "--root", str(machine.root), "--since", "2021-05-31")
    assert "the first is of 2021-05-31\n  hint: advisor scan --since 2021-06-01 " in early.stderr
    assert "nothing is new" in machine.scan("--since", "2021-06-01")


@pytest.mark.parametrize(
    "text", ["", "hello", "{", "{}", "[]", '{"schema": "advisor.plan/1"}', '{"schema": "advisor.scan/1"}']
)
def test_a_file_that_is_no_scan_is_refused(machine: Machine, tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    done = machine.run("scan", "--root", str(machine.root), "--since", str(file))
    assert done.returncode == 2
    assert str(file) in done.stderr
    assert "hint: --since takes a file of advisor scan --json, a snapshot, or a date" in done.stderr
    assert "--snapshot" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_counter_that_cannot_be_is_unknown(machine: Machine) -> None:
    machine.write("proc/net/softnet_stat", "00000010 00000000 f0000000 00000000\n")
    found = machine.document()
    assert found["counters"]["softnet_squeezed"] is None
    (why,) = (one["why"] for one in found["unknown"] if one["fact"] == "counters.softnet_squeezed")
    assert "4,026,531,840" in why
    assert "16 packets" in why
    machine.write("proc/net/softnet_stat", "00000010 00000000 00000001 00000000\n")
    assert machine.document()["counters"]["softnet_squeezed"] == 1


def test_memory_that_loses_data_is_critical(machine: Machine) -> None:
    for name, count in (("mc0", "0"), ("mc1", "2")):
        machine.write(f"sys/devices/system/edac/mc/{name}/ue_count", f"{count}\n")
    assert machine.document()["memory"]["uncorrected_errors"] == 2
    assert "Memory returned data that could not be corrected 2 times" in machine.scan()
    machine.write("sys/devices/system/edac/mc/mc1/ue_count", "0\n")
    assert "Memory returned" not in machine.scan()


def test_several_devices_are_accepted_at_once_and_what_mutes_nothing_is_said(machine: Machine) -> None:
    words = ("--reason", "spare ordered", "--root", str(machine.root))
    done = machine.run("mute", "arrays.degraded", "--device", "md0,md1", "--device", "md9*", *words)
    assert done.stderr.startswith("muted: arrays.degraded of md0 on stor1\nmuted: arrays.degraded of md1 on stor1\n")
    assert "note: arrays.degraded of md9* on stor1: no finding here is muted by it now\n" in done.stderr
    assert done.stderr.count("note: ") == 1
    assert len(_muted(machine)) == 2
    assert machine.run("unmute", "arrays.degraded", "--device", "md0,md5").returncode == 3
    assert len(_muted(machine)) == 2
    assert machine.run("unmute", "arrays.degraded", "--device", "md1,md9*").returncode == 0
    assert len(_muted(machine)) == 1


def _muted(machine: Machine) -> list[Any]:
    return [one for one in machine.document()["findings"] if one["muted"]]


def test_a_call_that_would_remove_more_is_not_printed(machine: Machine) -> None:
    words = ("mute", "arrays.degraded", "--root", str(machine.root), "--reason")
    assert machine.run(*words, "z", "--device", "md0").returncode == 0
    # Without a device its call would be about the entry of md0 as well.
    said = machine.run(*words, "z2").stderr
    assert "this entry alone, by its number: advisor scan --muted" in " ".join(said.split())
    assert "advisor unmute arrays.degraded --host" not in said


def test_scans_of_one_second_are_kept_apart(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(machine.state))
    kept = [keep_scan(text, 1_700_000_000) for text in (b"1", b"2", b"3")]
    assert kept == sorted(set(kept))
    assert [path.read_bytes() for path in kept] == [b"1", b"2", b"3"]
