"""``python -m advisor``."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # Python has put the working directory first, where anybody's typer.py may lie.
        del sys.path[:1]
    from advisor.cli import main

    main()
