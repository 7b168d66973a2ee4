"""The command line: parse, call one function, print. No decisions are taken here."""

from __future__ import annotations

from advisor.cli.main import main, run_program

__all__ = ["main", "run_program"]
