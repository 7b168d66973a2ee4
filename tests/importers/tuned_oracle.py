"""What TuneD's own loader, variables and functions make of profiles, as JSON on standard output.

Runs in a process of its own whose PYTHONPATH holds TuneD. Nothing is applied, and no profile's ``exec`` is carried out.
Reads a document from standard input: ``directories`` of profiles, ``profiles`` by name, ``inis`` (texts to parse),
``operators`` (pairs of a new and a current value), ``rules`` (device rules with names), ``expanded`` (variables, text),
``links`` (an option of the net plugin, its text and a link: what the plugin gives the ``ethtool`` on PATH).
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import sys
from functools import cache
from pathlib import Path
from typing import Any


def main() -> None:
    asked = json.load(sys.stdin)
    answer = {
        "profiles": {name: loaded(name, asked["directories"]) for name in asked.get("profiles", ())},
        "inis": [parsed(text, is_variables=flag) for text, flag in asked.get("inis", ())],
        "operators": [operated(new, current) for new, current in asked.get("operators", ())],
        "rules": [matched(rules, names) for rules, names in asked.get("rules", ())],
        "expanded": [expanded(variables, text) for variables, text in asked.get("expanded", ())],
        "links": [on_link(*three) for three in asked.get("links", ())],
    }
    json.dump(answer, sys.stdout)


def tuned(name: str) -> Any:
    return importlib.import_module(f"tuned.{name}")


def no_execution() -> None:
    """TuneD's ``exec`` function, for this process, leaves its call as it stands."""
    tuned("profiles.functions.function_exec").execute.execute = lambda self, args: None


def loaded(name: str, directories: list[str]) -> dict[str, Any]:
    variables = tuned("profiles.variables").Variables()
    loader = tuned("profiles.loader").Loader(
        tuned("profiles.locator").Locator(directories),
        tuned("profiles.factory").Factory(),
        tuned("profiles.merger").Merger(),
        None,
        variables,
    )
    try:
        profile = loader.load(name)
    except Exception as error:  # noqa: BLE001
        return {"error": f"{type(error).__name__}: {error}"}
    return {
        "options": profile.options,
        "units": [(unit_name, unit_of(unit, variables)) for unit_name, unit in profile.units.items()],
    }


def unit_of(unit: Any, variables: Any) -> dict[str, Any]:
    said = ("type", "enabled", "devices", "devices_udev_regex", "cpuinfo_regex", "uname_regex")
    options = {key: "\n".join(value) if isinstance(value, list) else value for key, value in unit.options.items()}
    return {
        **{key: getattr(unit, key) for key in said},
        "options": list(options.items()),
        "expanded": [(key, expansion(variables, value)) for key, value in options.items()],
    }


def expansion(variables: Any, value: str) -> str:
    try:
        return str(variables.expand(value))
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"


def expanded(pairs: list[list[str]], text: str) -> str:
    variables = tuned("profiles.variables").Variables()
    for name, value in pairs:
        variables.add_variable(name, value)
    return expansion(variables, text)


def parsed(text: str, *, is_variables: bool) -> Any:
    parser = tuned("utils.config_parser").ConfigParser(
        delimiters=("="), inline_comment_prefixes=("#"), strict=False, allow_no_value=is_variables
    )
    parser.optionxform = str
    try:
        parser.read_string(f"[headerless]\n{text}" if is_variables else text)
        return [
            (section, [(option, parser.get(section, option, raw=True)) for option in parser.options(section)])
            for section in parser.sections()
        ]
    except Exception as error:  # noqa: BLE001
        return {"error": type(error).__name__}


def operated(new: str, current: str | None) -> str | None:
    plugin = tuned("plugins.base").Plugin
    written: str | None = plugin._process_assignment_modifiers(object.__new__(plugin), new, current)
    return written


def on_link(option: str, text: str, link: str) -> dict[str, str] | None:
    """What is set of a line; None where the plugin makes nothing of what ethtool prints."""
    plugin = object.__new__(tuned("plugins.plugin_net").NetTuningPlugin)
    plugin._cmd = tuned("utils.commands").commands()
    present = plugin._get_device_parameters(option, link)
    if not present:
        return None
    done: dict[str, str] = plugin._set_device_parameters(option, text, link, False, dev_params=present)
    return done


def matched(rules: str, names: list[str]) -> list[str]:
    return list(device_matcher().DeviceMatcher().match_list(rules, names))


@cache
def device_matcher() -> Any:
    """By its file: the package around it needs pyudev, which the matcher does not."""
    (place,) = importlib.import_module("tuned").__path__
    spec = importlib.util.spec_from_file_location("device_matcher", Path(place, "hardware", "device_matcher.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    no_execution()
    main()
