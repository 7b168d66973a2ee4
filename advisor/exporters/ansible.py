"""An Ansible role that needs no collection and no Python code: it reads each value and sets those that differ."""

from __future__ import annotations

import re

from advisor.exporters.files import own_file, reload_commands
from advisor.exporters.settings import Bundle, Exported
from advisor.exporters.terms import elsewhere_words, file_head, identity_words, left_out_words, not_kept, not_kept_words
from advisor.exporters.yaml_text import dump_yaml
from advisor.shell.rollback_script import MOST_IF_SET, settings_script

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
