"""User data for cloud-init: the files at the first start, and the live values once they are there."""

from __future__ import annotations

from advisor.exporters.files import reload_commands, taken_up
from advisor.exporters.settings import Bundle, Exported
from advisor.exporters.terms import elsewhere_words, file_head, identity_words, left_out_words, not_kept, not_kept_words
from advisor.exporters.yaml_text import dump_yaml
from advisor.tunables import FileEdit


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
