"""What TuneD's net plugin (TuneD 2.20) can be asked for of a link, by the words that it finds in what ethtool prints.

It reads ``ethtool -k``, ``-g``, ``-l`` and ``-a`` and passes over every name that it does not find there; the indented
lines below a summary (``tcp-segmentation-offload``) are none of them.
"""

from __future__ import annotations

from advisor.exporters.ethtool_words import RENAMED
from advisor.exporters.settings import Exported, ExportedSetting

_OPTIONS = {"ring": "ring", "channels": "channels", "feature": "features", "pause": "pause"}
_NUMBERS = ("mtu", "txqueuelen")
_BELOW_A_SUMMARY = ("tx-checksum-", "tx-scatter-gather", "tx-tcp", "tx-udp-fragmentation")
# It makes "rx" of RX before it comes to RX Mini.
_UNREAD_RINGS = ("rx-mini", "rx-jumbo")

Option = tuple[str, str]
"""TuneD's option and its text."""


def option_of(setting: ExportedSetting, wanted: Exported) -> Option | str:
    """The option for a ``link:`` setting; or why TuneD has none."""
    _, link, key = setting.tunable.split(":", 2)
    if link in wanted.virtual_links:
        return "TuneD's net plugin leaves virtual links alone"
    if key in _NUMBERS:
        return key, setting.value
    group, _, name = key.partition(".")
    if group == "coalesce":
        why = "TuneD gives up on coalescing where ethtool prints a line that it does not know, as CQE mode"
    elif group not in _OPTIONS:
        why = "TuneD's net plugin has no word for it"
    elif group == "feature" and name.startswith(_BELOW_A_SUMMARY):
        why = "TuneD has a word for it and others together alone"
    elif group == "ring" and name in _UNREAD_RINGS:
        why = "TuneD does not find it in what ethtool prints"
    elif group == "channels" and _has_none(link, wanted):
        why = "the link has no channels of a kind that is wanted now, and TuneD then sets the other kind"
    else:
        why = None
    return why or (_OPTIONS[group], f"{RENAMED.get(name, name) if group == 'feature' else name} {setting.value}")


def _has_none(link: str, wanted: Exported) -> bool:
    """Whether the link has none at present of some channels that are wanted: all go to ethtool in one command."""
    before = {one.tunable: one.before for one in wanted.plan.skipped}
    before |= {one.tunable: one.before for one in wanted.plan.changes}
    start = f"link:{link}:channels."
    return any(before.get(one.tunable, one.value) == "0" for one in wanted.settings if one.tunable.startswith(start))
