"""What the tables answer is what typer answers, and what they do not answer is left to typer."""

from __future__ import annotations

import importlib
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from advisor.cli import completion, parser, quick
from advisor.cli.complete import requestable_words
from advisor.cli.tables.command import Command
from advisor.cli.tables.parameters import COMMANDS

TEXTS = ("x", "vm.swappiness=1", "5", "0", "-1", "2.5", "nan", "1_0", "", "ü", "a b", "--json", "-", "/nonexistent")


def function_of(path: str) -> Callable[..., int]:
    first, *below = path.split()
    found = importlib.import_module(f"advisor.cli.{COMMANDS[path].room}").COMMANDS[first]
    function: Callable[..., int] = found.commands[below[0]] if below else found
    return function


def by_typer(path: str) -> Callable[[list[str]], dict[str, Any] | None]:
    """What typer would call the command with; None where it would refuse."""
    calls: list[dict[str, Any]] = []

    def record(**values: Any) -> int:
        calls.append(values)
        return 0

    record.__signature__ = parser.command_signature(function_of(path))  # type: ignore[attr-defined]
    app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]}, add_completion=False)
    app.command()(parser.with_typer(record))

    def called(words: list[str]) -> dict[str, Any] | None:
        calls.clear()
        try:
            app(words, standalone_mode=False, prog_name="advisor")
        except parser.CALL_ERROR:
            return None
        return calls[0] if calls else None

    return called


def lines(command: Command, dice: random.Random, count: int) -> Iterator[list[str]]:
    """Calls of the command, most of them good, some wrong in a word."""
    needed = {number for number, parameter in enumerate(command.parameters) if parameter[3]}
    required = [name for name, (number, _flag) in command.options.items() if number in needed and name[:2] == "--"]
    for _ in range(count):
        words = [word for name in required for word in (name, dice.choice(TEXTS))]
        for name in dice.sample(sorted(command.options), k=dice.randint(0, min(4, len(command.options)))):
            flag = command.options[name][1]
            value = dice.choice(TEXTS)
            if flag is not None:
                words.append(name if dice.random() < 0.95 else f"{name}={value}")
            elif dice.random() < 0.5:
                words.append(f"{name}={value}")
            else:
                words += [name, value]
        for _argument in range(dice.randint(0, 2)):
            words.insert(dice.randint(0, len(words)), dice.choice(TEXTS))
        if dice.random() < 0.1:
            words.insert(dice.randint(0, len(words)), dice.choice(("--", "--bogus", "-yx", "-oFILE", "--js", "-o=f")))
        yield words


@pytest.mark.parametrize("path", COMMANDS)
def test_a_call_that_is_understood_is_typers(path: str) -> None:
    called, dice, understood = by_typer(path), random.Random(path), 0
    for words in lines(COMMANDS[path], dice, 150):
        found = quick.values_of(COMMANDS[path], words)
        if found is not None:
            understood += 1
            call = called(words) or {}
            assert repr(found) == repr({name: call[name] for name in found}), words
        if understood == 15:
            break
    assert understood == 15


LINES = (
    *("", "s", "-", "--v", "bogus ", "fleet ", "fleet c", "fleet -", "profiles ", "profiles show ", "profiles show so"),
    *(
        "scan ",
        "scan --",
        "scan --json --",
        "scan --json -",
        "scan --root ",
        "scan --root /",
        "scan x --",
        "scan --x --",
    ),
    *("plan ", "plan so", "plan x so", "plan --set ", "plan --set a=b --", "plan --instead-of ", "plan --root=/ s"),
    *("apply -y --", "apply -yx --", "apply --peer a --peer b --p", "explain net", "explain con", "rollback "),
    *("prove --workload ", "prove --workload m", "bench --workload s", "probe ", "verify ", "verify x ", "limits x "),
    *("scan --fail-on ", "scan --fail-on w", "profiles export --format ", "--lang ", "--lang d", "--lang de --"),
    *("plan socket-buffers-8m --set ", "plan --set bytes=1 socket-buffers-8m --set ", "plan no-such --set "),
    *("rollback-script socket-buffers-8m --set b", "prove --arms a,b --workload infoscale.", "recommend --workload ir"),
    *(
        "--no-color scan --fail-on ",
        "--no-color --",
        "scan --workload --",
        "--lang de pl",
        "scan 'a",
        'scan "a b" --',
        "fleet compare --pair a ",
        "scan --x --",
    ),
)


def asked(shell: str, line: str, action: str = "get-args") -> dict[str, str]:
    whole = f"advisor {line}"
    if shell == "bash":
        words = whole.split(" ")
        return {"_ADVISOR_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    more = {"_TYPER_COMPLETE_FISH_ACTION": action} if shell == "fish" else {}
    return {"_ADVISOR_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": whole, **more}


def candidates(answer: str) -> list[str]:
    """The lines of an answer without zsh's frame; the names of an option of help come in no certain order."""
    return sorted(answer.strip("\n").removeprefix("_arguments '*: :((").removesuffix("))'").split("\n"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_word_is_completed_as_typer_does(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path))
    # typer breaks the help of a word at the terminal's edge; the tables hold it in one line.
    monkeypatch.setenv("COLUMNS", "10000")
    known = 0
    for line in LINES:
        for action in ("get-args", "is-args") if shell == "fish" else ("",):
            code = completion.answer_shell(asked(shell, line, action))
            found = capsys.readouterr().out
            if code is None:
                assert not found
                continue
            known += 1
            with monkeypatch.context() as patch:
                for name, value in asked(shell, line, action).items():
                    patch.setenv(name, value)
                with pytest.raises(SystemExit) as ended:
                    parser.run_typer([], as_json=False)
            assert (ended.value.code or 0) == code, line
            assert candidates(capsys.readouterr().out) == candidates(found), line
    assert known > len(LINES) * 0.7


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (["scan"], {}),
        ([], {}),
        (["--version", "scan"], {}),
        (["scan", "--help"], {"COLUMNS": "79"}),
        (["scan", "--help"], {"ADVISOR_LANG": "de"}),
        (["--version"], {"ADVISOR_LANG": "xx"}),
        (["no-such", "--help"], {}),
        (["scan", "--json", "--help"], {}),
    ],
)
def test_a_page_of_another_form_is_left_to_typer(words: list[str], environment: dict[str, str]) -> None:
    assert quick.help_page(words, environment) is None


def test_a_page_of_help_is_for_eighty_columns_and_more() -> None:
    assert quick.help_page(["scan", "--help"], {"COLUMNS": "80"}) == quick.help_page(["scan", "-h"], {"COLUMNS": "200"})
    assert os.environ.get("_ADVISOR_COMPLETE") is None


def test_what_may_be_requested_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.toml").touch()
    (tmp_path / "other.txt").touch()
    (tmp_path / "site").mkdir()
    monkeypatch.chdir(tmp_path)
    assert requestable_words("./") == ["./own.toml", "./site/"]
    assert requestable_words("sysctl:vm.swap") == ["sysctl:vm.swappiness="]
    assert "link:eth7:mtu=" in requestable_words("link:eth7:")
    assert requestable_words("jumbo") == ["jumbo-frames"]
