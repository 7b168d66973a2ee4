"""`advisor --version` in a checkout prints the commit that git itself prints, without starting git."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from advisor.version import __version__, describe_version, read_commit

from .conftest import ROOT, run

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="no git: the tests compare with it")
AUTHOR = {"NAME": "A", "EMAIL": "a@localhost"}
ENVIRONMENT = {f"GIT_{role}_{key}": text for role in ("AUTHOR", "COMMITTER") for key, text in AUTHOR.items()}
ENVIRONMENT |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def git(place: Path, *words: str) -> str:
    return run("git", "-C", place, *words, extra=ENVIRONMENT).strip()


def commit(place: Path) -> str:
    git(place, "commit", "--quiet", "--allow-empty", "--message", "one more")
    return git(place, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "repository"
    run("git", "init", "--quiet", "--initial-branch", "a/branch", place, extra=ENVIRONMENT)
    return place


def test_it_is_the_commit_on_a_branch_packed_or_not_and_detached(repository: Path) -> None:
    assert read_commit(str(repository)) is None, "there is no commit yet"
    first, second = commit(repository), commit(repository)
    assert read_commit(str(repository)) == second
    git(repository, "pack-refs", "--all")
    assert not (repository / ".git/refs/heads/a/branch").exists()
    assert read_commit(str(repository)) == second
    third = commit(repository)  # the loose reference is newer than the packed one
    assert read_commit(str(repository)) == third
    git(repository, "checkout", "--quiet", "--detach", first)
    assert read_commit(str(repository)) == first


def test_a_further_work_tree_and_a_submodule_have_their_own(repository: Path, tmp_path: Path) -> None:
    first = commit(repository)
    git(repository, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "tree"))
    second = commit(tmp_path / "tree")
    assert (read_commit(str(repository)), read_commit(str(tmp_path / "tree"))) == (first, second)
    git(repository, "pack-refs", "--all")
    assert (read_commit(str(repository)), read_commit(str(tmp_path / "tree"))) == (first, second)
    outer = tmp_path / "outer"
    run("git", "init", "--quiet", outer, extra=ENVIRONMENT)
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository), "inner")
    assert (outer / "inner/.git").is_file()
    assert read_commit(str(outer / "inner")) == first


def test_a_branch_may_be_the_name_of_another(repository: Path) -> None:
    made = commit(repository)
    git(repository, "symbolic-ref", "refs/heads/alias", "refs/heads/a/branch")
    git(repository, "symbolic-ref", "HEAD", "refs/heads/alias")
    assert read_commit(str(repository)) == made
    git(repository, "symbolic-ref", "refs/heads/a/branch", "refs/heads/alias")
    assert read_commit(str(repository)) is None, "a circle"


def test_a_repository_of_sha256(tmp_path: Path) -> None:
    run("git", "init", "--quiet", "--object-format", "sha256", tmp_path, extra=ENVIRONMENT)
    made = commit(tmp_path)
    assert len(made) == 64
    assert read_commit(str(tmp_path)) == made


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none\n", "ref: ../../secret\n", "x" * 40, "\xff\x00"])
def test_what_is_no_commit_is_not_printed(tmp_path: Path, head: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text(head, "latin-1")
    assert read_commit(str(tmp_path)) is None


def test_the_command_prints_version_and_commit(repository: Path) -> None:
    (repository / "advisor").symlink_to(ROOT / "advisor")
    command = (sys.executable, "-c", "from advisor.cli import main; main()")
    for words in (("--version",), ("--no-color", "--version")):
        plain = run(*command, *words, extra={"PYTHONPATH": str(repository)}, cwd=repository)
        assert plain == f"advisor {__version__}\n"
    made = commit(repository)
    for words in (("--version",), ("--no-color", "--version")):  # the second by typer
        reported = run(*command, *words, extra={"PYTHONPATH": str(repository)}, cwd=repository)
        assert reported == f"advisor {__version__} ({made[:12]})\n"
    assert describe_version().startswith(__version__)
