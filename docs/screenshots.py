"""Takes the pictures of docs/images: terminals as SVG, HTML pages as PNG, of scans and plans of captured hosts.

python docs/screenshots.py            takes those whose text has changed, and all pages if Chromium is there
python docs/screenshots.py --check    writes nothing; exit code 1 if the text of a terminal is stale

Nothing is drawn by hand: each picture is what the command printed of the captured host docs/examples/lab.tar.gz, on a
terminal of the width that the picture's name says.
"""

from __future__ import annotations

import html
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parent
IMAGES = DOCS / "images"
LAB = "docs/examples/lab.tar.gz"
LARGEST_BYTES = 150_000

# rich's own frame, without the fonts that it would fetch.
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px;
line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class Terminal(NamedTuple):
    """A picture of the first lines that a command prints."""

    name: str
    columns: int
    words: str
    lines: int = 60


class Page(NamedTuple):
    """A picture of the HTML page of a scan, in the light or the dark colours of the reader's choice."""

    name: str
    is_dark: bool
    size: tuple[int, int] = (1000, 820)


TERMINALS = (
    Terminal("scan-80", 80, "scan"),
    Terminal("scan-160", 160, "scan"),
    Terminal("explain-80", 80, "explain 3", 16),
    Terminal("plan-80", 80, "plan llt-highwater-doubled"),
    Terminal("recommend-80", 80, "recommend", 24),
)
PAGES = (Page("scan-light", is_dark=False), Page("scan-dark", is_dark=True))


def run_advisor(words: Sequence[str], columns: int) -> str:
    """What a call prints on a terminal with colours."""
    environment = {**os.environ, "COLUMNS": str(columns), "FORCE_COLOR": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    environment.pop("NO_COLOR", None)
    call = [sys.executable, "-m", "advisor", *words]
    return subprocess.run(
        call, env=environment, cwd=DOCS.parent, capture_output=True, text=True, check=False, timeout=120
    ).stdout


def print_terminal(shot: Terminal) -> str:
    """The lines that the picture shows, with the terminal's colours."""
    lines = run_advisor([*shot.words.split(), "--snapshot", LAB], shot.columns).splitlines()
    return "\n".join([*lines[: shot.lines], *(["…"] if len(lines) > shot.lines else [])]) + "\n"


def draw_terminal(shot: Terminal, printed: str) -> str:
    """The picture as SVG."""
    from rich.console import Console
    from rich.text import Text

    console = Console(
        record=True, width=shot.columns, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Text.from_ansi(printed), end="", soft_wrap=True)
    return console.export_svg(title=f"advisor {shot.words}", code_format=FRAME, unique_id=shot.name)


def text_of(picture: str) -> list[str]:
    """The words of a terminal's picture, line by line."""
    rows: dict[float, str] = {}
    for _x, y, words in re.findall(r'<text class="[^"]*-r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', picture):
        rows[float(y)] = rows.get(float(y), "") + html.unescape(words)
    return [" ".join(rows[y].split()) for y in sorted(rows) if rows[y].strip()]


def photograph_page(page: Page) -> None:
    """Write the PNG of a page, as Chromium shows it."""
    with tempfile.TemporaryDirectory() as directory:
        run_advisor(["scan", "--snapshot", LAB, "--html", f"{directory}/page.html"], 80)
        width, height = page.size
        subprocess.run(
            [
                *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                f"--window-size={width},{height}",
                f"--blink-settings=preferredColorScheme={0 if page.is_dark else 1}",
                f"--screenshot={IMAGES / page.name}.png",
                f"file://{directory}/page.html",
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


def main(arguments: Sequence[str]) -> int:
    is_check = "--check" in arguments
    stale = []
    IMAGES.mkdir(exist_ok=True)
    for shot in TERMINALS:
        path = IMAGES / f"{shot.name}.svg"
        picture = draw_terminal(shot, print_terminal(shot))
        if not path.is_file() or text_of(path.read_text("utf-8")) != text_of(picture):
            stale.append(path)
            if not is_check:
                path.write_text(picture, "utf-8")
    if not is_check and shutil.which("chromium"):
        for page in PAGES:
            photograph_page(page)
    for path in stale:
        print(f"{path.relative_to(DOCS.parent)}: {'is stale' if is_check else 'written'}")
    too_large = [path.name for path in IMAGES.iterdir() if path.stat().st_size > LARGEST_BYTES]
    if too_large:
        print(f"larger than {LARGEST_BYTES} bytes: {', '.join(too_large)}")
    return 1 if too_large or (is_check and stale) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
