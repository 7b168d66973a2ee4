"""A desired state for nmstate (nmstatectl apply): MTU and what ethtool sets."""

from __future__ import annotations

from typing import Any

from advisor.exporters.ethtool_words import GROUPS, why_unsaid
from advisor.exporters.settings import Bundle, Exported, ExportedSetting
from advisor.exporters.terms import elsewhere_words, file_head, left_out_words
from advisor.exporters.yaml_text import dump_yaml
from advisor.host.numbers import is_count

# Handed on as NetworkManager's tso and sg, each of which switches several of the kernel's features.
_WIDENED = ("feature.tx-tcp-segmentation", "feature.tx-scatter-gather")


def make_state(wanted: Exported) -> Bundle:
    """``state.yaml`` with each link that something is wanted of; all else of the links stays as it is."""
    links: dict[str, dict[str, Any]] = {}
    left = []
    for setting in wanted.settings:
        why = _why_unsaid(setting, wanted)
        if why:
            left.append(setting.skip(why))
            continue
        _, link, key = setting.tunable.split(":")
        found = links.setdefault(link, {"name": link})
        if key == "mtu":
            found["mtu"] = int(setting.value)
            continue
        group, _, name = key.partition(".")
        found.setdefault("ethtool", {}).setdefault(group, {})[name] = _yaml_value(setting.value)
    every = (*left, *wanted.left_out)
    said = (one for one in wanted.settings if _why_unsaid(one, wanted) is None)
    text = file_head(wanted, "A desired state of nmstate.") + elsewhere_words(wanted, said) + left_out_words(every)
    text += dump_yaml({"interfaces": list(links.values())})
    use = ("nmstatectl apply --no-commit --timeout 60 DIRECTORY/state.yaml", "nmstatectl commit")
    return Bundle({"state.yaml": text.encode()} if links else {}, every, use if links else ())


def _why_unsaid(setting: ExportedSetting, wanted: Exported) -> str | None:
    key = setting.tunable.rpartition(":")[2]
    if key in _WIDENED:
        return "nmstate switches others along with it"
    why = why_unsaid(setting, wanted, "nmstate")
    return why or (None if key == "mtu" or key.partition(".")[0] in GROUPS else "nmstate has no word for it")


def _yaml_value(text: str) -> bool | int | str:
    if text in ("on", "off"):
        return text == "on"
    return int(text) if is_count(text) else text
