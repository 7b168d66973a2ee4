"""Write an output whole or not at all, with the errors of the command line."""

from pathlib import Path

from advisor.operations import files

files.write_output("report.txt", "one line\n", mode=0o600)
with files.explain_file_errors(Path("report.txt")):  # OSError becomes an error with a hint
    print(Path("report.txt").read_text(), end="")
