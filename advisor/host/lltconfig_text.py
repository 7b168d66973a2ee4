"""What ``lltconfig -F query`` and ``-T query`` print."""

from __future__ import annotations

from advisor.host.patterns import lazy_regex

# InfoScale 7.4.2 prints the receive-side name so; Veritas' own documents spell it rporthighwater.
FLOW_ALIASES = {"rporthiswater": "rporthighwater"}

_NAMED = lazy_regex(r"[ \t\r]*([A-Za-z_][A-Za-z0-9_-]*)[ \t\r]*[=:][ \t\r]*(-?[0-9]{1,18})[ \t\r]*")


def parse_flow(text: str) -> dict[str, int]:
    """Name and value of each line ``name = value`` that ``lltconfig -F query`` prints; unknown names are kept.

    The spelling ``rporthiswater`` of InfoScale 7.4.2 is returned as ``rporthighwater``.
    """
    values: dict[str, int] = {}
    for line in text.split("\n"):
        found = _NAMED.fullmatch(line)
        if found:
            values[FLOW_ALIASES.get(found[1], found[1])] = int(found[2])
    return values
