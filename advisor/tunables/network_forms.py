"""The forms of edit that files of network managers take, beyond sections of ``KEY=VALUE``."""

from __future__ import annotations

from typing import Literal

from advisor.tunables.assignment_edit import assignment_mentions, edit_assignment
from advisor.tunables.interfaces_edit import edit_interfaces, interfaces_mention
from advisor.tunables.netplan_edit import edit_netplan, netplan_mentions

NetworkForm = Literal["shell", "interfaces", "netplan"]


def edit_network(old: bytes, form: NetworkForm, key: str, value: str) -> bytes:
    """``shell``: the variable ``key``. ``interfaces``: ``key`` is a logical interface and, after a blank, the link
    where that is called otherwise; ``value`` its MTU. ``netplan``: ``key`` is TYPE/ID, ``value`` its MTU.

    A netplan file that cannot be edited (no YAML, blocked by aliases) is begun again: who plans the edit looks first.
    """
    match form:
        case "shell":
            return edit_assignment(old.decode("latin-1"), to_latin(key), to_latin(value)).encode("latin-1")
        case "interfaces":
            return edit_interfaces(old.decode("latin-1"), to_latin(key), to_latin(value)).encode("latin-1")
        case "netplan":
            new = edit_netplan(text, key, value) if (text := _to_utf8(old)) is not None else None
            return (new or edit_netplan("", key, value) or "").encode()


def network_mentions(content: bytes, form: NetworkForm, key: str) -> bool:
    """Whether the file sets this key, whatever the value."""
    match form:
        case "shell":
            return assignment_mentions(content.decode("latin-1"), to_latin(key))
        case "interfaces":
            return interfaces_mention(content.decode("latin-1"), to_latin(key))
        case "netplan":
            text = _to_utf8(content)
            return text is not None and netplan_mentions(text, key)


def network_line(form: NetworkForm, key: str, value: str) -> str:
    """The setting in words of its file."""
    match form:
        case "shell":
            return f"{key}={value}"
        case "interfaces":
            return f"iface {key.partition(' ')[0]}: mtu {value}"
        case "netplan":
            return f"network: {{{key.replace('/', ': {')}: {{mtu: {value}}}}}}}"


def to_latin(text: str) -> str:
    """The bytes of a text as characters, so that an edit keeps those that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _to_utf8(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
