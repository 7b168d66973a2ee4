"""sysctl.d, udev rules, tmpfiles.d and .link files, as a tree to copy onto a host: they act at its next start."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.exporters.settings import Bundle, Exported, ExportedSetting, is_own
from advisor.exporters.terms import elsewhere_words, file_head, not_kept
from advisor.host import RunCommand
from advisor.shell.rollback_script import hand_command
from advisor.tunables import FileEdit

_SYSCTL = "/etc/sysctl.d/"
_TMPFILES = "/etc/tmpfiles.d/"


def make_tree(wanted: Exported) -> Bundle:
    """The files that keep each value, below the directory that they are copied from."""
    left = tuple(
        one.skip(not_kept(one) or "no file keeps it: the command that sets it does")
        for one in wanted.settings
        if own_file(one) is None
    )
    found = {
        kept.path.lstrip("/"): b"".join((file_head(wanted).encode(), words.encode(), kept.content))
        for kept in wanted.files
        for words in [elsewhere_words(wanted, (one for one in wanted.settings if own_file(one) == kept.path))]
    }
    # What sets now the values whose files act when their device appears next.
    # No event is made for it: an *add* activates volume groups and assembles arrays, on disks that are another host's
    # as well, and versions of mdadm run their assembly for a *change* of a member, too (64-md-raid-assembly.rules).
    use = (
        "cp -a DIRECTORY/. /",
        *reload_commands(wanted),
        *taken_up(wanted),
        *dict.fromkeys(line for one in wanted.settings for line in _live_lines(one)),
    )
    return Bundle(found, (*left, *wanted.left_out), use)


def own_file(setting: ExportedSetting) -> str | None:
    """The file of our own that keeps the value."""
    return setting.edit.path if isinstance(setting.edit, FileEdit) and is_own(setting.edit) else None


def reload_commands(wanted: Exported) -> tuple[str, ...]:
    """Commands that make the files' owners read them. They change no value: udevadm(8) applies what it has re-read
    to new events alone."""
    steps = (step for kept in wanted.files for step in kept.reload if isinstance(step, RunCommand))
    return tuple(dict.fromkeys(map(hand_command, steps)))


def taken_up(wanted: Exported) -> tuple[str, ...]:
    """Commands that bring about the values of the files that need no device to appear."""
    paths = [kept.path for kept in wanted.files]
    sysctls = [f"sysctl -p {path}" for path in paths if path.startswith(_SYSCTL)]
    return (*sysctls, *(f"systemd-tmpfiles --create {path}" for path in paths if path.startswith(_TMPFILES)))


def _live_lines(setting: ExportedSetting) -> Iterator[str]:
    path = own_file(setting)
    if path is None or path.startswith((_SYSCTL, _TMPFILES)):
        return
    is_device = setting.kind in ("link", "block", "md")
    when = f"when {setting.device} appears next, as at a restart" if is_device else "at the next restart"
    for command in setting.commands:
        yield f"{command}  # now; {path} acts {when}"
