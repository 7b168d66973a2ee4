"""sysctl.d, udev rules, tmpfiles.d and .link files, as a tree to copy onto a host: they act at its next start."""

from __future__ import annotations

from advisor.host import Run
from advisor.interchange.export.settings import Bundle, Exported, LeftOut, is_own
from advisor.interchange.export.words import head, not_kept
from advisor.script import hand_command
from advisor.tunables import FileEdit


def tree(wanted: Exported) -> Bundle:
    """The files that keep each value, below the directory that they are copied from."""
    left = tuple(
        LeftOut(one.tunable, one.value, not_kept(one) or "no file keeps it: the command that sets it does")
        for one in wanted.settings
        if not (isinstance(one.edit, FileEdit) and is_own(one.edit))
    )
    found = {kept.path.lstrip("/"): head(wanted).encode() + kept.content for kept in wanted.files}
    return Bundle(found, (*left, *wanted.left_out), ("cp -a DIRECTORY/. /", *activation(wanted)))


def activation(wanted: Exported) -> tuple[str, ...]:
    """Commands that bring the values of the files about without a reboot."""
    found: list[str] = []
    for kept in wanted.files:
        found += [hand_command(step) for step in kept.reload if isinstance(step, Run)]
        if kept.path.startswith("/etc/sysctl.d/"):
            found.append(f"sysctl -p {kept.path}")
        elif kept.path.startswith("/etc/tmpfiles.d/"):
            found.append(f"systemd-tmpfiles --create {kept.path}")
        elif kept.path.startswith("/etc/udev/rules.d/"):
            subsystem = "block" if "block" in kept.path else "net"
            found += ["udevadm control --reload", f"udevadm trigger --action=add --subsystem-match={subsystem}"]
    return tuple(dict.fromkeys(found))
