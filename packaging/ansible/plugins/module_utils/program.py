"""What the modules and their action plugins share: arguments, the program advisor, what its documents mean."""

from __future__ import annotations

import base64
import json

VIA = {"type": "str", "default": "auto", "choices": ["auto", "host", "controller"]}

PROFILE_ARGUMENTS = {
    "name": {"type": "list", "elements": "str", "required": True, "aliases": ["names", "profiles"]},
    "state": {"type": "str", "default": "applied", "choices": ["applied", "confirmed", "rolled_back"]},
    "parameters": {"type": "dict", "default": {}},
    "runtime_only": {"type": "bool", "default": False},
    "peers": {"type": "list", "elements": "str", "default": []},
    "confirm": {"type": "bool", "default": True},
    "confirm_within": {"type": "int", "default": 60},
    "force": {"type": "bool", "default": False},
    "via": VIA,
    "executable": {"type": "path"},
    "controller_executable": {"type": "path"},
}

FACTS_ARGUMENTS = {
    "gather": {"type": "list", "elements": "str", "default": []},
    "workload": {"type": "str"},
    "via": VIA,
    "executable": {"type": "path"},
    "controller_executable": {"type": "path"},
}

DIRECTORIES = ("/usr/local/bin", "/opt/advisor/bin", "/root/.local/bin")
"""Where advisor may be besides the search path, which sudo often shortens."""

HOW_TO_INSTALL = (
    "Install it there (a package or the single file: docs/packages.md of advisor), name it with executable, "
    "or have it on the controller: what is planned there runs on the host as a shell script (via: controller)."
)


class AdvisorError(Exception):
    """The program refused or failed: ``fields`` are those of the module's result."""

    def __init__(self, message, **fields):
        super().__init__(message)
        self.fields = fields


def format_setting(key, value):
    """A parameter of a profile as advisor takes it after --set: lists with commas, truth as true and false."""
    if isinstance(value, (list, tuple)):
        value = ",".join(str(one) for one in value)
    elif isinstance(value, bool):
        value = str(value).lower()
    return f"{key}={value}"


def plan_words(params):
    """The arguments that say what is planned; profiles and values come first."""
    words = list(params["name"])
    if any(not name or name.startswith("-") for name in words):
        raise AdvisorError(f"name: {words!r} is no profile")
    for key in sorted(params["parameters"] or {}):
        words += ["--set", format_setting(key, params["parameters"][key])]
    return words + (["--runtime-only"] if params["runtime_only"] else [])


def parse_answer(code, output, noise):
    """The document that advisor printed with --json. Raises AdvisorError for an error document, and for none."""
    try:
        document = json.loads(output)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        said = (noise or output).strip()[-500:]
        raise AdvisorError(f"advisor ended with {code} and printed no answer: {said}", rc=code)
    error = document.get("error")
    if isinstance(error, dict):
        raise describe_error(error)
    return document


def describe_error(error):
    """What becomes of an error document; exit code 5 alone leaves something changed."""
    code, hint, items = error.get("code"), error.get("hint"), error.get("items") or []
    words = [str(error.get("message"))]
    words += ["{}: by hand: {}".format(one.get("what"), one.get("by_hand")) for one in items if isinstance(one, dict)]
    words += [f"hint: {hint}"] if hint else []
    return AdvisorError(
        "; ".join(words), rc=code, kind=error.get("kind"), hint=hint, not_restored=items, changed=code == 5
    )


def active_transactions(status, profiles):
    """Active transactions that have one of these profiles, the last one first."""
    found = [one for one in status["transactions"] if one["in_force"] and set(one["profiles"]) & set(profiles)]
    return sorted(found, key=lambda one: one["id"], reverse=True)


def is_pending(transaction):
    return transaction["state"] == "awaiting-confirmation"


def would_change(plan):
    """Whether carrying a plan out does anything, values that are claimed from another transaction included."""
    return any(plan.get(key) for key in ("changes", "files", "claims", "claimed_files"))


def stale_values(plan, active):
    """What active transactions hold and this plan does not name: value before and after, by id."""
    named = {one["tunable"] for key in ("changes", "skipped") for one in plan[key]}
    named |= {one["tunable"] for one in plan.get("claims") or () if isinstance(one, dict)}
    return {
        one["tunable"]: (one["after"], one["before"])
        for transaction in reversed(active)
        for one in transaction["changes"]
        if one["tunable"] not in named
    }


def plan_diff(plan, stale=None):
    """What --diff prints: live values as one text, and each file."""
    values = [(one["tunable"], one["before"], one["after"]) for one in plan["changes"]]
    values += [(name, before, after) for name, (before, after) in (stale or {}).items()]
    return value_diff(values) + [file_diff(one) for one in plan["files"]]


def value_diff(values):
    if not values:
        return []
    before, after = (
        "".join(f"{one[0]} = {one[place]}\n" for one in sorted(values, key=lambda one: one[0])) for place in (1, 2)
    )
    return [{"before_header": "live values", "after_header": "live values", "before": before, "after": after}]


def file_diff(file):
    """The contents of a file before and after, unless others may not read it: it may hold passwords."""
    is_hidden = not int(file.get("mode") or 0) & 0o004
    found = {"before_header": file["path"], "after_header": file["path"]}
    for place in ("before", "after"):
        content = file[place]
        if content is None:
            found[place] = ""
        elif is_hidden:
            found[place] = f"({place}: others may not read this file)\n"
        else:
            found[place] = base64.b64decode(content).decode("utf-8", "replace")
    return found


def short_changes(plan):
    keys = ("tunable", "before", "after", "persist", "takes_effect", "why")
    return [{key: one.get(key) for key in keys} for one in plan["changes"]]


def short_skipped(plan):
    keys = ("tunable", "before", "wanted", "state", "reason")
    return [{key: one.get(key) for key in keys} for one in plan["skipped"]]


def refusal(plan):
    """Why a plan cannot be applied, from those items that are in its way."""
    reasons = []
    for one in plan["skipped"]:
        text = "{}: {}".format(one["tunable"], one["reason"])
        if one["state"] not in ("in-place", "would-lower") and text not in reasons:
            reasons.append(text)
    return AdvisorError(
        "{} cannot be applied here: {}".format(", ".join(plan["profiles"]), "; ".join(reasons) or "nothing of it fits"),
        rc=3,
        kind="refused",
        skipped_values=short_skipped(plan),
    )


def mixed_refusal(transactions):
    one = transactions[0]
    return AdvisorError(
        "transaction {} holds {} together: name all of them, or roll it back by its id".format(
            one["id"], ", ".join(one["profiles"])
        ),
        rc=3,
        kind="refused",
    )


def scan_facts(document, parts):
    """The facts of a scan, or those parts of it that are asked for."""
    unknown = sorted(set(parts) - set(document))
    if unknown:
        raise AdvisorError(
            "gather: a scan has no {}; it has {}".format(", ".join(unknown), ", ".join(sorted(document)))
        )
    kept = {key: value for key, value in document.items() if not parts or key in parts or key == "schema"}
    return {"ansible_facts": {"advisor": kept}}
