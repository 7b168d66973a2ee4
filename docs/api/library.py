"""The profiles that there are, and a check of one's own file."""

from pathlib import Path

from advisor.operations import library

profiles, faults = library.list_profiles()
print(f"{len(profiles)} profiles, {len(faults)} that cannot be read")
print(library.read_profile("socket-buffers-8m").title)

Path("swap.toml").write_text("""\
name = "swap"
title = "Less swapping"
summary = "Keeps anonymous pages in memory longer."
helps-when = "Memory is ample."
hurts-when = "Memory is short."
sources = ["Linux kernel documentation, admin-guide/sysctl/vm"]

[[tunables]]
tunable = "sysctl:vm.swappiness"
value = "10"
why = "Anonymous pages are used again sooner than cached ones."
hurts-when = "Memory is short."
sources = ["Linux kernel documentation, admin-guide/sysctl/vm"]
""")
print(library.lint_file(Path("swap.toml")).profile.name)
