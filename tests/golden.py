"""Compare pages with the files of tests/golden; `pytest --update-golden` writes them instead."""

from __future__ import annotations

from pathlib import Path

_PLACE = Path(__file__).with_suffix("")
_updates: list[bool] = []


def update(*, wanted: bool) -> None:
    """Decide for this process whether pages are written to their files instead of compared."""
    _updates[:] = [wanted]


def assert_golden(name: str, text: str) -> None:
    """Assert that a page, printed 80 columns wide, is as its reviewed file tests/golden/NAME.txt has it."""
    file = _PLACE / f"{name}.txt"
    text = text.rstrip("\n") + "\n"
    if any(_updates):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert file.is_file(), f"{file} is missing: review the page, then write it with --update-golden"
    assert text == file.read_text(), f"{name}: if the new page is better, write it with --update-golden"
