"""A desired state for nmstate (nmstatectl apply): MTU and what ethtool sets."""

from __future__ import annotations

from typing import Any

from advisor.interchange.export.settings import Bundle, Exported, LeftOut
from advisor.interchange.export.words import head, left_out_words
from advisor.interchange.export.yaml_text import dumped

_GROUPS = {"ring": "ring", "coalesce": "coalesce", "feature": "feature", "pause": "pause"}


def state(wanted: Exported) -> Bundle:
    """``state.yaml`` with each link that something is wanted of; all else of the links stays as it is."""
    links: dict[str, dict[str, Any]] = {}
    left: list[LeftOut] = []
    for setting in wanted.settings:
        kind, _, rest = setting.tunable.partition(":")
        link, _, key = rest.partition(":")
        group, _, name = key.partition(".")
        if kind == "link" and key == "mtu":
            links.setdefault(link, {"name": link})["mtu"] = int(setting.value)
        elif kind == "link" and group in _GROUPS:
            place = links.setdefault(link, {"name": link}).setdefault("ethtool", {}).setdefault(_GROUPS[group], {})
            place[name] = _value(setting.value)
        else:
            why = "nmstate has no word for it" if kind == "link" else "nmstate sets links alone"
            left.append(LeftOut(setting.tunable, setting.value, why))
    every = (*left, *wanted.left_out)
    text = head(wanted, "A desired state of nmstate.") + left_out_words(every)
    text += dumped({"interfaces": list(links.values())})
    use = ("nmstatectl apply --no-commit --timeout 60 state.yaml", "nmstatectl commit")
    return Bundle({"state.yaml": text.encode()} if links else {}, every, use if links else ())


def _value(text: str) -> bool | int | str:
    if text in ("on", "off"):
        return text == "on"
    return int(text) if text.isdigit() else text
