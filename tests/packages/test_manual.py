"""Manual pages and completions say what the command line is."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.running import run_text

from .conftest import ROOT, run


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("man")
    run(sys.executable, ROOT / "packaging/manpages.py", directory)
    return directory


def shown(page: Path) -> str:
    if not shutil.which("man"):
        pytest.skip("no man(1) here")
    done = run_text(
        ["man", "--warnings", "-E", "UTF-8", "-l", str(page)],
        env={"MANWIDTH": "80", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""},
    )
    assert done.returncode == 0
    assert not done.stderr, done.stderr
    return done.stdout


def test_every_command_has_a_page_that_formats_without_a_warning(pages: Path) -> None:
    found = sorted(pages.glob("*.1"))
    names = {page.stem for page in found}
    assert {"advisor", "advisor-scan", "advisor-rollback-script", "advisor-profiles-lint"} <= names
    for page in found:
        text = shown(page)
        sections = [line for line in text.splitlines() if line[:1].isupper() and line.isupper()]
        assert {"NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "EXIT STATUS", "FILES", "ENVIRONMENT"} <= set(sections)
        assert max(map(len, text.splitlines())) <= 80
        assert "\N{HYPHEN}\n" not in text, f"{page.stem}: what is copied is broken with a hyphen"
        synopsis = text.partition("SYNOPSIS\n")[2].partition("\n\n")[0]
        assert synopsis.count("[") == synopsis.count("]"), page.stem


def test_a_page_has_every_option_that_help_shows(pages: Path) -> None:
    helped = run(sys.executable, "-m", "advisor", "apply", "--help")
    options = {word.rstrip(",") for word in helped.split() if word.startswith("--")} - {"--help"}
    page = (pages / "advisor-apply.1").read_text().replace(r"\-", "-")
    assert len(options) > 5
    assert {one for one in options if rf"\fB{one}\fR" not in page} == set()


def test_what_is_pasted_from_a_page_is_what_help_prints(pages: Path) -> None:
    text = shown(pages / "advisor-apply.1")
    assert "advisor apply sysctl:vm.swappiness=10 --yes\n" in text
    assert "'sysctl:net.core.rmem_max>=8388608'" in text
    assert " ~/.config/advisor/profiles\n" in text


def test_completions_load_and_complete(tmp_path: Path) -> None:
    bin_directory = Path(sys.executable).parent
    run("sh", ROOT / "packaging/completions.sh", tmp_path, extra={"ADVISOR": str(bin_directory / "advisor")})
    script = (
        f'PATH="{bin_directory}:$PATH"; source "{tmp_path}/advisor"; COMP_WORDS=(advisor rollb); COMP_CWORD=1; '
        '_advisor_completion advisor; echo "${COMPREPLY[@]}"; COMP_WORDS=(advisor plan jumbo); COMP_CWORD=2; '
        '_advisor_completion advisor; echo "${COMPREPLY[@]}"'
    )
    assert run("bash", "-c", script).splitlines() == ["rollback rollback-script", "jumbo-frames"]
    # zsh looks for it in the first line alone.
    assert (tmp_path / "_advisor").read_text().startswith("#compdef advisor\n")
    assert "complete --command advisor" in (tmp_path / "advisor.fish").read_text()
