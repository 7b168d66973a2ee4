"""What shells complete: bash itself with the completion that is shipped, zsh and fish by what they pass and read."""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import pytest

from advisor.cli.complete import (
    SCRIPTS,
    accepted_days,
    declarable_workloads,
    export_forms,
    measured_workloads,
    recommendable_workloads,
)
from advisor.errors import UsageError
from advisor.exporters import FORMATS
from advisor.operations.muting import current_day, parse_until, suggest_days
from advisor.proof.workloads import expand_workloads
from advisor.recommend.records import declared
from advisor.rules.rule import SEVERITIES
from advisor.rules.workload import parse_workload
from advisor.transaction.journal import Applied, Store
from tests.report.test_change import change, plan
from tests.running import run_text
from tests.trees import make_command

BIN = Path(sys.executable).parent
MUTED = (("sysctl.overridden", ""), ("arrays.degraded", 'device = "md4"\n'), ("arrays.degraded", ""))


@pytest.fixture
def state(tmp_path: Path) -> dict[str, str]:
    """The environment of a host with two transactions."""
    store = Store(str(tmp_path / "state"))
    for profile in ("jumbo-frames", "socket-buffers-8m"):
        with (
            store.hold_lock(),
            store.begin_journal(plan(change(), profiles=(profile,)), version="0", data=None) as journal,
        ):
            journal.write_entry(Applied(time.time(), {}))
    return {**os.environ, "ADVISOR_STATE_DIR": str(tmp_path / "state"), "PATH": f"{BIN}:{os.environ['PATH']}"}


def ask_bash(environment: dict[str, str], *words: str, where: Path | None = None) -> list[str]:
    """What bash offers for the last word; the words are as bash breaks them."""
    script = (
        "source <(_ADVISOR_COMPLETE=source_bash advisor); "
        f"COMP_WORDS=(advisor {shlex.join(words)}); COMP_CWORD={len(words)}; "
        "_advisor_completion advisor; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = run_text(["bash", "-c", script], env=environment, check=True, cwd=where)
    assert not done.stderr
    return done.stdout.split()


def ask_fish(environment: dict[str, str], line: str) -> str:
    """What fish and zsh are answered: both ask for lines of a word, and its explanation behind a tab."""
    asked = {"_ADVISOR_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line}
    asked |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run(["advisor"], capture_output=True, text=True, env={**environment, **asked}, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("scan", "--fail-on", ""), list(SEVERITIES)),
        (("scan", "--fail-on", "=", "w"), ["warning"]),
        (("scan", "--fail-on", "="), list(SEVERITIES)),
        (("fleet", "compare", "--fail-on", "c"), ["critical"]),
        (("profiles", "export", "--format", "n"), ["networkmanager", "nmstate"]),
        (("--no-color", "scan", "--fail-on", "i"), ["info"]),
        (("recommend", "--workload", "iris.ranw"), ["iris.ranwrite"]),
        (("scan", "--workload", "fss-"), ["fss-cross-zone", "fss-tcp", "fss-udp"]),
        (("plan", "socket-buffers-8m", "--set", ""), ["bytes="]),
        (("plan", "--set", "bytes", "=", "8", "socket-buffers-8m", "--set", ""), []),
        (("plan", "socket-buffers-8m", "--set", "bytes", "="), []),
        (("plan", "jumbo-frames", "--set", "byt"), []),
        (("plan", "--set", ""), []),
        (("plan", "sysctl", ":", "vm.swapp"), ["vm.swappiness="]),
        (("plan", "sysctl:vm.swapp"), ["sysctl:vm.swappiness="]),
        (("rollback", ""), ["0002", "0001"]),
        (("confirm", ""), ["0002", "0001"]),
        (("status", "0001"), ["0001"]),
        (("verify", "0001"), ["0001"]),
        (("rollback-script", "000"), ["0002", "0001"]),
        (("apply", "--instead-of", "000"), ["0002", "0001"]),
    ],
)
def test_bash_offers_what_a_command_takes(state: dict[str, str], words: tuple[str, ...], offered: list[str]) -> None:
    assert ask_bash(state, *words) == offered


def test_bash_offers_patterns_where_they_are_taken(state: dict[str, str], tmp_path: Path) -> None:
    # A glob would become this file's name.
    (tmp_path / "infoscale.txt").touch()
    for words in (("bench",), ("prove-arms",)):
        offered = ask_bash(state, *words, "--workload", "infoscale.", where=tmp_path)
        assert r"infoscale.\*" in offered
        assert "infoscale.4k-rand-rw50" in offered
    offered = ask_bash(state, "prove", "jumbo-frames", "--workload", "infoscale.", where=tmp_path)
    assert "infoscale.4k-rand-rw50" in offered
    assert not [one for one in offered if "*" in one or one.endswith(".txt")]


def test_a_file_on_the_line_has_parameters(state: dict[str, str], tmp_path: Path) -> None:
    shipped = Path(__file__).parents[2] / "profiles/socket-buffers-8m.toml"
    own = shipped.read_text().replace("socket-buffers-8m", "own").replace("{bytes}", "{size}")
    (tmp_path / "own.toml").write_text(own.replace("[parameters.bytes]", "[parameters.size]"))
    assert ask_bash(state, "plan", "./own.toml", "--set", "", where=tmp_path) == ["size="]
    (tmp_path / "own.toml").write_text("name = [")
    assert ask_bash(state, "plan", "./own.toml", "--set", "", where=tmp_path) == []


def test_zsh_and_fish_show_what_each_value_is(state: dict[str, str]) -> None:
    assert ask_fish(state, "advisor rollback ") == "0002\tsocket-buffers-8m\n0001\tjumbo-frames\n"
    line = "advisor plan socket-buffers-8m --set "
    assert ask_fish(state, line) == "bytes=\tBuffer size in bytes.\n"
    assert ask_fish(state, "advisor scan --fail-on ").split() == list(SEVERITIES)


def counted_program(state: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The environment with a program before advisor that writes a line for each of its starts."""
    make_command(tmp_path / "bin", "advisor", f'echo >> {tmp_path}/starts\nexec {BIN}/advisor "$@"')
    return {**state, "PATH": f"{tmp_path}/bin:{state['PATH']}", "HOME": str(tmp_path)}


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish here")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("advisor scan --fail-on ", list(SEVERITIES)),
        ("advisor profiles export --format n", ["networkmanager", "nmstate"]),
        ("advisor rollback ", ["0002", "0001"]),
        ("advisor plan sysctl:vm.swapp", ["sysctl:vm.swappiness="]),
        ("advisor plan ./own", ["./own.toml"]),
    ],
)
def test_fish_itself_starts_the_program_once(
    line: str, offered: list[str], state: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "own.toml").touch()
    environment = counted_program(state, tmp_path)
    (tmp_path / "advisor.fish").write_text(SCRIPTS["fish"])
    script = f"source {tmp_path}/advisor.fish; complete -C {shlex.quote(line)}"
    done = run_text(["fish", "--no-config", "-c", script], env=environment, check=True, cwd=tmp_path)
    assert [one.partition("\t")[0] for one in done.stdout.splitlines()] == offered
    assert (tmp_path / "starts").read_text() == "\n"


def type_in_zsh(environment: dict[str, str], typed: str, awaited: bytes) -> bytes:
    """What zsh shows after these keys, until it shows what is awaited or for a minute nothing."""
    pid, terminal = pty.fork()
    if not pid:
        os.execvpe("zsh", ["zsh", "-f", "-i"], environment)
    os.write(terminal, typed.encode())
    shown = b""
    try:
        while awaited not in shown and select.select([terminal], [], [], 60)[0]:
            shown += os.read(terminal, 4096)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    return shown


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here")
def test_zsh_itself_completes(state: dict[str, str], tmp_path: Path) -> None:
    """In a pseudo-terminal, as zsh completes nothing else."""
    environment = {**counted_program(state, tmp_path), "_ADVISOR_COMPLETE": "source_zsh"}
    script = subprocess.run([f"{BIN}/advisor"], capture_output=True, text=True, env=environment, check=True).stdout
    (tmp_path / "advisor.zsh").write_text(script)
    del environment["_ADVISOR_COMPLETE"]
    prepared = f"autoload -U compinit; compinit -D -u; source {tmp_path}/advisor.zsh"
    shown = type_in_zsh(environment, f"{prepared}\nadvisor scan --fail-on w\t", b"warning")
    assert b"warning" in shown
    assert (tmp_path / "starts").read_text() == "\n"


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here")
def test_zsh_puts_no_space_behind_what_goes_on(state: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "fpath").mkdir()
    (tmp_path / "fpath/_advisor").write_text(SCRIPTS["zsh"])
    prepared = f"fpath=({tmp_path}/fpath $fpath); autoload -U compinit; compinit -D -u"
    typed = f"{prepared}\nadvisor plan link:l\tmt\t"
    shown = type_in_zsh({**state, "HOME": str(tmp_path)}, typed, b"link:lo:mtu=")
    assert b"link:lo:mtu=" in shown


@pytest.mark.parametrize("shell", SCRIPTS)
def test_what_is_shown_and_installed_is_our_own_script(shell: str, state: dict[str, str], tmp_path: Path) -> None:
    environment = {**state, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = run_text(["advisor", "--show-completion", shell], env=environment, check=True)
    assert shown.stdout.strip() == SCRIPTS[shell].strip()
    subprocess.run(["advisor", "--install-completion", shell], capture_output=True, env=environment, check=True)
    places = {"bash": ".bash_completions/advisor.sh", "fish": ".config/fish/completions/advisor.fish"}
    place = places.get(shell, ".zfunc/_advisor")
    assert (tmp_path / place).read_text().strip() == SCRIPTS[shell].strip()


def test_unmute_offers_what_is_muted_and_mute_what_it_takes(state: dict[str, str], tmp_path: Path) -> None:
    state["ADVISOR_IGNORE_FILE"] = str(tmp_path / "ignore.toml")
    assert ask_bash(state, "unmute", "") == []
    assert ask_bash(state, "mute", "socket-buffers") == []
    assert ask_bash(state, "mute", "contradic") == []
    assert ask_bash(state, "mute", "arrays.degr") == ["arrays.degraded"]
    (tmp_path / "ignore.toml").write_text(
        "".join(f'[[ignore]]\nid = "{name}"\nreason = "spare ordered"\n{more}' for name, more in MUTED)
    )
    assert ask_bash(state, "unmute", "") == ["arrays.degraded", "sysctl.overridden"]
    assert ask_bash(state, "unmute", "s") == ["sysctl.overridden"]
    assert ask_fish(state, "advisor unmute s") == "sysctl.overridden\tspare ordered\n"
    (tmp_path / "ignore.toml").write_text("[[ignore")
    assert ask_bash(state, "unmute", "") == []


def test_until_offers_days() -> None:
    assert dict(suggest_days(date(2026, 11, 28))) == {
        "2026-11-30": "end of the month",
        "2026-12-28": "in 30 days",
        "2027-01-01": "1 January",
        "2027-02-26": "in 90 days",
    }
    assert dict(suggest_days(date(2026, 11, 30))) == {
        "2026-12-30": "in 30 days",
        "2026-12-31": "end of next month",
        "2027-01-01": "1 January",
        "2027-02-28": "in 90 days",
    }
    assert list(suggest_days(date(2026, 12, 2))) == ["2026-12-31", "2027-01-01", "2027-03-02"]
    offered = accepted_days("")
    assert [parse_until(day, current_day()).isoformat() for day, _about in offered] == [day for day, _about in offered]
    assert accepted_days(offered[0][0]) == offered[:1]


def test_bash_offers_days(state: dict[str, str]) -> None:
    assert len(ask_bash(state, "mute", "arrays.degraded", "--until", "")) >= 3


def test_status_of_one_transaction(state: dict[str, str]) -> None:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["advisor", "status", *words], capture_output=True, text=True, env=state)

    one = call("2")
    assert (one.returncode, "0002 socket-buffers-8m" in one.stdout, "0001" in one.stdout) == (0, True, False)
    assert [each["id"] for each in json.loads(call("0001", "--json").stdout)["transactions"]] == ["0001"]
    missing = call("0009")
    assert missing.returncode == 2
    assert "there is no transaction '0009'\n  hint: there are 0001, 0002: advisor status\n" in missing.stderr
    both = call("0001", "--all")
    assert (both.returncode, "not both" in both.stderr) == (2, True)


def test_a_store_that_cannot_be_read_offers_nothing(state: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "state").chmod(0o777)
    assert ask_bash(state, "rollback", "") == []


def test_what_is_offered_is_taken() -> None:
    for name in declarable_workloads(""):
        assert parse_workload(name).name
    for name in recommendable_workloads(""):
        assert declared(name).name
    for name in measured_workloads(""):
        assert expand_workloads([name])
    assert export_forms("") == sorted(FORMATS)
    with pytest.raises(UsageError):
        parse_workload("infoscale.4k-rand-rw50")


def test_a_kind_of_a_device_goes_on_with_the_devices_of_this_machine(state: dict[str, str]) -> None:
    links = {f"{name}:" for name in os.listdir("/sys/class/net") if name != "bonding_masters"}
    assert set(ask_bash(state, "plan", "link", ":")) == links
    assert "mtu=" in ask_bash(state, "plan", "link", ":", "lo", ":", "m")
    for offered in (ask_bash(state, "plan", "block", ":"), ask_bash(state, "plan", "md", ":")):
        assert all(os.path.isdir(f"/sys/block/{word.removesuffix(':')}") for word in offered)
    assert not any(word.startswith(":") for word in ask_bash(state, "plan", "cpufreq", ":"))
