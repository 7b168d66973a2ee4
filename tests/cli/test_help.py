"""Help says at 80 columns what each command does and how it is called."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from advisor.cli import parser
from advisor.cli.help_text import EXAMPLES, GROUPS
from docs.command_page import help_pages
from tests.running import run_text

PAGES = help_pages()

ONE_EXAMPLE_IS_ENOUGH = {"fleet receive"}
"""It reads standard input and has one form."""


def help_of(path: str) -> str:
    done = run_text([sys.executable, "-m", "advisor", *path.split(), "--help"], env={**os.environ, "COLUMNS": "80"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_pages_are_those_that_are_printed() -> None:
    assert all(help_of(path) == PAGES[path] for path in ("", "scan", "fleet", "fleet receive"))
    assert help_of("").count("\nExamples:\n") == 1


@pytest.mark.parametrize(
    ("words", "same"), [("help", "--help"), ("help fleet scan", "fleet scan --help"), ("version", "--version")]
)
def test_help_and_version_are_commands_too(words: str, same: str) -> None:
    answers = [
        subprocess.run([sys.executable, "-m", "advisor", *call.split()], capture_output=True, text=True, check=True)
        for call in (words, same)
    ]
    assert answers[0].stdout == answers[1].stdout != ""


def test_a_page_in_a_pipe_is_as_wide_as_the_terminal_of_the_caller() -> None:
    for columns in (72, 130):
        command = f"stty cols {columns}; {sys.executable} -m advisor --no-color scan --all | cat"
        controller, terminal = os.openpty()
        # COLUMNS would count first.
        call = ["env", "--unset=COLUMNS", "sh", "-c", command]
        with subprocess.Popen(call, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal) as done:
            page = done.communicate()[0].decode()
        os.close(controller)
        os.close(terminal)
        assert columns - 20 < max(map(len, page.splitlines())) <= columns


@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_eighty_columns_and_ends_with_examples(path: str) -> None:
    page = PAGES[path]
    assert max(map(len, page.splitlines())) <= 80
    examples = page.partition("\nExamples:\n")[2]
    shown = [command for command, _ in EXAMPLES[path] if f"\n  {command}" in f"\n{examples}"]
    assert len(shown) == len(EXAMPLES[path]) >= (1 if path in ONE_EXAMPLE_IS_ENOUGH else 2)


def test_no_summary_is_cut() -> None:
    seen = 0
    for path, command in parser.walk_commands(parser.build_program()):
        group = path.rpartition(" ")[0]
        sentence = re.split(r"(?<=\.)\s", " ".join(command.help.split()))[0]
        line = next(one for one in PAGES[group].splitlines() if one.startswith(f"  {path.split()[-1]} "))
        assert line.endswith(f"  {sentence}"), f"advisor {group} --help cuts the summary of {path}: {line}"
        seen += 1
    assert seen == len(EXAMPLES) - 1


def test_every_command_is_in_one_group() -> None:
    named = [name for names in GROUPS.values() for name in names]
    assert sorted(named) == sorted(name for names in parser.ROOMS.values() for name in names)
    page = help_of("")
    assert [heading for heading in re.findall(r"^(\w+):$", page, re.M) if heading in GROUPS] == list(GROUPS)


def test_examples_are_of_commands_that_exist() -> None:
    assert EXAMPLES.keys() == PAGES.keys()
    for path, calls in EXAMPLES.items():
        assert all(call.startswith((f"advisor {path}", "advisor scan --snapshot")) for call, _ in calls), path
