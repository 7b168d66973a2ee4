"""sysctl.d, udev rules, tmpfiles.d and .link files, as a tree to copy onto a host: they act at its next start."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from advisor.exporters.settings import (
    Bundle,
    Exported,
    ExportedSetting,
    elsewhere_words,
    file_head,
    identity_words,
    is_own,
    left_out_words,
    not_kept,
    not_kept_words,
)
from advisor.host import RunCommand
from advisor.shell.rollback_script import MOST_IF_SET, hand_command, settings_script
from advisor.tunables import FileEdit

# YAML as a person would write it, and as ansible-lint wants it: lists indented, texts of several lines as they are.


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # Other line ends of Unicode would be folded unless they are escaped; blanks at a line's end cannot be said in a
    # literal block, and PyYAML then quotes the text by itself.
    plain = text.replace("\n", "")
    style = "|" if "\n" in text and plain.isprintable() else None if plain.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump_yaml(document: object) -> str:
    """The document's text, keys in their own order."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


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


# User data for cloud-init: the files at the first start, and the live values once they are there.


def user_data(wanted: Exported) -> Bundle:
    """``user-data.yaml``, for the instance's user data or a file of /etc/cloud/cloud.cfg.d."""
    left = [one.skip(why) for one in wanted.settings if not one.steps and (why := not_kept(one))]
    for_now = tuple(
        one.skip(f"set at the first start alone: {why}")
        for one in wanted.settings
        if one.steps and (why := not_kept(one))
    )
    commands = [
        ["sh", "-c", command] for command in (*reload_commands(wanted), *taken_up(wanted), *_live_commands(wanted))
    ]
    document: dict[str, object] = {}
    if wanted.files:
        document["write_files"] = [
            {"path": kept.path, "permissions": f"0{kept.mode:o}", "content": kept.content.decode("utf-8", "replace")}
            for kept in wanted.files
        ]
    if commands:
        document["runcmd"] = commands
    every = (*left, *wanted.left_out)
    text = "#cloud-config\n" + file_head(wanted, "User data of cloud-init.", *identity_words(wanted))
    text += elsewhere_words(wanted, wanted.settings) + not_kept_words(for_now) + left_out_words(every)
    text += dump_yaml(document)
    use = (
        "cloud-init schema --config-file DIRECTORY/user-data.yaml",
        "give DIRECTORY/user-data.yaml to the instance as its user data",
    )
    return Bundle({"user-data.yaml": text.encode()}, every, use, not_kept=for_now)


def _live_commands(wanted: Exported) -> list[str]:
    """Commands for values that no file of ``taken_up`` brings about by itself."""
    by_file = {kept.path for kept in wanted.files if kept.path.startswith(("/etc/sysctl.d/", "/etc/tmpfiles.d/"))}
    return [
        command
        for one in wanted.settings
        if not (isinstance(one.edit, FileEdit) and one.edit.path in by_file)
        for command in one.commands
    ]


# An Ansible role that needs no collection and no Python code: it reads each value and sets those that differ.

_NOBODY = "host-unknown"
"""The pattern where the host's name is not known: Ansible says that it matches nothing."""


def make_role(wanted: Exported) -> Bundle:
    """A role ``NAME`` and a playbook that uses it; check mode reports what would change and changes nothing."""
    unkept = [(one, why) for one in wanted.settings if (why := not_kept(one))]
    left = (*(one.skip(why) for one, why in unkept if not one.steps), *wanted.left_out)
    for_now = tuple(one.skip(why) for one, why in unkept if one.steps)
    kept = (one for one in wanted.settings if own_file(one))
    top = file_head(wanted, *identity_words(wanted)) + elsewhere_words(
        wanted, kept, where="in the files (live values are compared first)"
    )
    top += not_kept_words(for_now) + left_out_words(left)
    name = wanted.name.replace("-", "_")
    found = {"site.yml": f"---\n{top}\n{dump_yaml(_make_play(wanted, name))}".encode(), **_role_files(wanted, name)}
    playbook = "ansible-playbook -i INVENTORY" + ("" if _host_pattern(wanted) else " -e target=HOST")
    use = (f"{playbook} --check --diff DIRECTORY/site.yml", f"{playbook} DIRECTORY/site.yml")
    return Bundle(found, left, use, not_kept=for_now)


def _role_files(wanted: Exported, name: str) -> dict[str, bytes]:
    place = f"roles/{name}"
    live = [one for one in wanted.settings if one.steps]
    found = {
        f"{place}/tasks/main.yml": f"---\n{dump_yaml(_make_tasks(wanted, name, has_live=bool(live)))}".encode(),
        f"{place}/meta/main.yml": f"---\n{dump_yaml(_role_meta(wanted))}".encode(),
    }
    commands = reload_commands(wanted)
    if commands:
        found[f"{place}/handlers/main.yml"] = f"---\n{dump_yaml(_make_handlers(commands))}".encode()
    for kept in wanted.files:
        found[f"{place}/files{kept.path}"] = kept.content
    if live:
        text = settings_script(
            (one.tunable, one.value, one.probe, one.steps, MOST_IF_SET if one.is_none_at_zero else one.sense)
            for one in live
        )
        found[f"{place}/files/settings.sh"] = text.encode("utf-8", "surrogateescape")
    return found


def _host_pattern(wanted: Exported) -> str | None:
    host = wanted.hostname or ""
    return host if re.fullmatch(r"[A-Za-z0-9][\w.-]*", host, re.ASCII) else None


def _make_play(wanted: Exported, role_name: str) -> object:
    # Its files know the disks and links of one host. Where the inventory has another name for it: -e target=NAME.
    default = _host_pattern(wanted) or _NOBODY
    return [
        {
            "name": "Bring the exported values about",
            "hosts": f"{{{{ target | default('{default}') }}}}",
            "become": True,
            "gather_facts": False,
            "roles": [role_name],
        }
    ]


def _role_meta(wanted: Exported) -> object:
    return {
        "galaxy_info": {
            "author": "advisor",
            "description": f"Values of {wanted.name}, exported by advisor",
            "license": "Apache-2.0",
            "min_ansible_version": "2.14",
            "platforms": [{"name": "GenericLinux", "versions": ["all"]}],
        },
        "dependencies": [],
    }


def _make_tasks(wanted: Exported, role_name: str, *, has_live: bool) -> list[object]:
    tasks: list[object] = []
    parents = sorted({kept.path.rpartition("/")[0] for kept in wanted.files})
    tasks += [
        {"name": f"Make {parent}", "ansible.builtin.file": {"path": parent, "state": "directory", "mode": "0755"}}
        for parent in parents
    ]
    tasks += [
        {
            "name": f"Keep values in {kept.path}",
            "ansible.builtin.copy": {
                "src": kept.path.lstrip("/"),
                "dest": kept.path,
                "owner": "root",
                "group": "root",
                "mode": f"0{kept.mode:o}",
            },
            **({"notify": "Apply the files"} if kept.reload else {}),
        }
        for kept in wanted.files
    ]
    if reload_commands(wanted):
        tasks.append(
            {"name": "Apply the files before the live values are looked at", "ansible.builtin.meta": "flush_handlers"}
        )
    return [*tasks, *_live_tasks(f"{role_name}_differ")] if has_live else tasks


def _live_tasks(found: str) -> list[object]:
    """Reading works in check mode, too; there the values that would be set are shown in the place of setting them."""
    some = f"{found}.stdout | trim | length > 0"
    return [
        {
            "name": "Read the live values",
            "ansible.builtin.script": {"cmd": "settings.sh differ"},
            "register": found,
            "changed_when": False,
            "check_mode": False,
        },
        {
            "name": "Show the live values that would be set",
            "ansible.builtin.debug": {"msg": f"{{{{ {found}.stdout_lines }}}}"},
            "when": ["ansible_check_mode", some],
            "changed_when": True,
        },
        {
            "name": "Set the live values that differ",
            "ansible.builtin.script": {"cmd": "settings.sh set"},
            "when": ["not ansible_check_mode", some],
            "changed_when": True,
        },
    ]


def _make_handlers(commands: tuple[str, ...]) -> list[object]:
    return [
        {
            "name": f"Run {command}",
            "ansible.builtin.command": {"cmd": command},
            "listen": "Apply the files",
            "changed_when": True,
        }
        for command in commands
    ]
