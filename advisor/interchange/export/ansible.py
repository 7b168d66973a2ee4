"""An Ansible role that needs no collection and no Python of ours: it reads each value and sets those that differ."""

from __future__ import annotations

from advisor.interchange.export.files import activation
from advisor.interchange.export.settings import Bundle, Exported, LeftOut
from advisor.interchange.export.words import head, left_out_words, not_kept
from advisor.interchange.export.yaml_text import dumped
from advisor.script import settings_script


def role(wanted: Exported) -> Bundle:
    """A role ``NAME`` and a playbook that uses it; check mode tells what would change and changes nothing."""
    left = [
        LeftOut(one.tunable, one.value, f"not kept over a reboot: {why}" if one.steps else why)
        for one in wanted.settings
        if (why := not_kept(one))
    ]
    every = (*left, *wanted.left_out)
    top = head(wanted) + left_out_words(every)
    live = [one for one in wanted.settings if one.steps]
    name = wanted.name.replace("-", "_")
    place = f"roles/{name}"
    found = {
        "site.yml": f"---\n{top}\n{dumped(_play(name))}".encode(),
        f"{place}/tasks/main.yml": f"---\n{dumped(_tasks(wanted, name, has_live=bool(live)))}".encode(),
        f"{place}/meta/main.yml": f"---\n{dumped(_meta(wanted))}".encode(),
    }
    commands = activation(wanted)
    if commands:
        found[f"{place}/handlers/main.yml"] = f"---\n{dumped(_handlers(commands))}".encode()
    for kept in wanted.files:
        found[f"{place}/files{kept.path}"] = kept.content
    if live:
        text = settings_script((one.tunable, one.value, one.probe, one.steps) for one in live)
        found[f"{place}/files/settings.sh"] = text.encode("utf-8", "surrogateescape")
    return Bundle(
        found,
        every,
        ("ansible-playbook -i INVENTORY --check --diff site.yml", "ansible-playbook -i INVENTORY site.yml"),
    )


def _play(role_name: str) -> object:
    return [
        {
            "name": "Bring the exported values about",
            "hosts": "all",
            "become": True,
            "gather_facts": False,
            "roles": [role_name],
        }
    ]


def _meta(wanted: Exported) -> object:
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


def _tasks(wanted: Exported, role_name: str, *, has_live: bool) -> list[object]:
    tasks: list[object] = []
    parents = sorted({kept.path.rpartition("/")[0] for kept in wanted.files})
    tasks += [
        {
            "name": f"Make {parent}",
            "ansible.builtin.file": {"path": parent, "state": "directory", "mode": "0755"},
        }
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
            "notify": "Take the files up",
        }
        for kept in wanted.files
    ]
    if wanted.files:
        tasks.append(
            {"name": "Take the files up before the live values are looked at", "ansible.builtin.meta": "flush_handlers"}
        )
    if has_live:
        tasks += [
            {
                "name": "Read the live values",
                "ansible.builtin.script": {"cmd": "settings.sh differ"},
                "register": f"{role_name}_differ",
                "changed_when": False,
                "check_mode": False,
            },
            {
                "name": "Set the live values that differ",
                "ansible.builtin.script": {"cmd": "settings.sh set"},
                "when": f"{role_name}_differ.stdout | trim | length > 0",
                "changed_when": True,
            },
        ]
    return tasks


def _handlers(commands: tuple[str, ...]) -> list[object]:
    return [
        {
            "name": f"Run {command}",
            "ansible.builtin.command": {"cmd": command},
            "listen": "Take the files up",
            "changed_when": True,
        }
        for command in commands
    ]
