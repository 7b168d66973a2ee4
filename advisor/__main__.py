"""``python -m advisor``."""

import sys

# Every Python since 2.7 can read this file, so that an old one ends in a line and not in a traceback.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("advisor: needs Python 3.11 or newer, this is %d.%d" % sys.version_info[:2])  # noqa: UP031

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # Python has put the working directory first, where anybody's typer.py may lie.
        del sys.path[:1]
    from advisor.cli import run_program

    run_program()
