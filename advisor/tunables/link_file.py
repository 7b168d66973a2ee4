"""A systemd .link file that gives one link settings of its own and hides nothing from it (systemd.link(5))."""

from __future__ import annotations

import re

from advisor.facts.link_claim import udev_property
from advisor.host import Host, Missing, RunCommand
from advisor.tunables.edits import FileEdit
from advisor.tunables.link_identity import ByAddress, ByName, ByPlace, link_identity

_RELOAD = (RunCommand(("udevadm", "control", "--reload")),)
_DIRECTORY = "/etc/systemd/network"
_DEFAULT_LINK_FILE = "/usr/lib/systemd/network/99-default.link"
# Of the files that match a link only the first is read.
_PREFIXES = ("10", "05", "00")


def link_file_edit(host: Host, link: str, settings: str) -> FileEdit | Missing:
    """A .link file that matches this link alone and keeps what its present one says; ``settings`` are ``KEY=VALUE``.

    One that carried these alone would take the naming and MAC policies of the file it hides from the link, and
    rename it at the next boot.
    """
    match = _match_section(host, link)
    if isinstance(match, Missing):
        return match
    present = udev_property(host, link, "ID_NET_LINK_FILE")
    path = _file_path(link, present, settings)
    if isinstance(path, Missing):
        return path
    lines = []
    section = ""
    # A line that ends in a backslash goes on in the next one (systemd.syntax(7)).
    for line in host.read_or_empty(present or _DEFAULT_LINK_FILE).replace("\\\n", " ").splitlines():
        stripped = " ".join(line.split())
        if stripped.startswith("["):
            section = stripped
        elif section == "[Link]" and "=" in stripped and stripped[0] not in "#;":
            lines.append(stripped)
    own = tuple(one.partition("=")[0] for one in settings.split())
    link_section = "".join(line + "\n" for line in lines if line.partition("=")[0].strip() not in own)
    fresh = f"[Match]\n{match}\n\n[Link]\n{link_section}".encode()
    return FileEdit(path, "section", "Link/", settings, fresh, reload=_RELOAD)


def _match_section(host: Host, link: str) -> str | Missing:
    match link_identity(host, link):
        case ByName(name) if re.fullmatch(r"[\w.-]+", name, re.ASCII):
            return f"OriginalName={name}"
        case ByName():
            return Missing("unreadable", "its name cannot be written as a match of a .link file")
        case ByAddress(address, driver):
            return f"MACAddress={address}" + (f"\nDriver={driver}" if driver else "")
        case ByPlace(path):
            return f"Path={path}"
        case Missing() as missing:
            return missing


def _file_path(link: str, present: str | None, settings: str) -> str | Missing:
    """A place before the file that the link has now, by name: the directory does not count."""
    first = present.rpartition("/")[2] if present else ""
    for prefix in _PREFIXES:
        name = f"{prefix}-advisor-{_file_name(link)}.link"
        if not first or name <= first:
            return f"{_DIRECTORY}/{name}"
    key = settings.partition("=")[0]
    return Missing("unreadable", f"{present} comes before any other .link file: set {key}= there")


def _file_name(link: str) -> str:
    return re.sub(r"[^\w.-]", lambda found: "".join(f"_{byte:02x}" for byte in found[0].encode()), link, flags=re.ASCII)
