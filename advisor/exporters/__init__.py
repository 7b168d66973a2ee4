"""What a plan wants, in the words of other tools: each form is used by its own tool and needs no part of advisor.

A form that has no word for a setting leaves it out and says so (`Bundle.left_out`); it never approximates.
"""

from __future__ import annotations

import msgspec

from advisor.errors import UsageError
from advisor.exporters import apply_script, files, network_manager, tuned
from advisor.exporters.settings import Bundle, Exported, SkippedSetting, collect_settings

__all__ = ["FORMATS", "Bundle", "Exported", "SkippedSetting", "collect_settings", "export_form"]

FORMATS = {
    "ansible": files.make_role,
    "cloud-init": files.user_data,
    "files": files.make_tree,
    "networkmanager": network_manager.make_nmcli_script,
    "nmstate": network_manager.make_state,
    "shell": apply_script.make_shell_script,
    "tuned": tuned.make_tuned_profile,
}


def export_form(wanted: Exported, form: str) -> Bundle:
    """The files of a form; none where it carries no value. Raises UsageError for one that is not known."""
    if form not in FORMATS:
        raise UsageError(f"--format {form}: not one of {', '.join(FORMATS)}")
    bundle = FORMATS[form](wanted)
    if {one.tunable for one in wanted.settings} - {one.tunable for one in bundle.left_out}:
        return bundle
    # A role or a profile around nothing would look like one that does something.
    return msgspec.structs.replace(bundle, files={}, use=(), executable=())
