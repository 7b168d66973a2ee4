"""ifcfg files: of Red Hat's network scripts (also read by NetworkManager) and of SUSE's wicked (ifcfg(5))."""

from __future__ import annotations

import re
import shlex

from advisor.facts.link_claim import LinkOwner, is_stopped, link_addresses
from advisor.host import Host, Missing, lazy_regex

NETWORK_SCRIPTS = "/etc/sysconfig/network-scripts"
WICKED = "/etc/sysconfig/network"
# What both leave aside: copies of editors and package managers.
_LEFT_BEHIND = lazy_regex(r".*(~|\.(bak|old|orig|save|scpmbackup|rpm(new|save|orig)|swp|template))|ifcfg-template")
_ASSIGNMENT = lazy_regex(r"[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)=(.*)", re.ASCII)


def parse_assignments(text: str) -> dict[str, str]:
    """Variables of a file that a shell reads, one to a line; the last assignment counts. A value that would have to be
    worked out is left out."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        match = _ASSIGNMENT.fullmatch(line.rstrip("\r"))
        if not match:
            continue
        try:
            words = shlex.split(match[2], comments=True)
        except ValueError:
            found.pop(match[1], None)
        else:
            found[match[1]] = words[0] if words and not match[2][:1].isspace() else ""
    return found


def read_ifcfg(host: Host, directory: str) -> dict[str, dict[str, str]] | Missing:
    """The variables of each ifcfg file of a directory, by path. Missing where one cannot be read."""
    found: dict[str, dict[str, str]] = {}
    for name in host.names(directory):
        if name.startswith("ifcfg-") and name != "ifcfg-lo" and not _LEFT_BEHIND.fullmatch(name):
            text = host.read(f"{directory}/{name}")
            if isinstance(text, Missing):
                return Missing("unreadable", f"{directory}/{name}: {text.why}")
            found[f"{directory}/{name}"] = parse_assignments(text)
    return found


def find_ifcfg(host: Host, directory: str, link: str, uuid: str | None = None) -> str | Missing | None:
    """The link's file: by the profile's UUID, else by its DEVICE, by its hardware address, or by its own name."""
    found = read_ifcfg(host, directory)
    if isinstance(found, Missing):
        return found
    addresses = link_addresses(host, link)
    by_uuid = [path for path, said in found.items() if uuid and said.get("UUID") == uuid]
    by_device = [path for path, said in found.items() if said.get("DEVICE") == link]
    nameless = [path for path, said in found.items() if "DEVICE" not in said]
    by_address = [path for path in nameless if found[path].get("HWADDR", "").lower() in addresses]
    by_name = [path for path in nameless if path == f"{directory}/ifcfg-{link}"]
    matching = by_uuid or by_device or by_address or by_name
    if len(matching) > 1:
        return Missing("unreadable", f"{' and '.join(matching)} both describe it")
    return matching[0] if matching else None


def read_sysconfig_owner(host: Host, link: str) -> LinkOwner | Missing | None:
    """None where neither the network scripts nor wicked bring the link up."""
    if not is_stopped(host, "network.service"):
        path = find_ifcfg(host, NETWORK_SCRIPTS, link)
        if path is not None:
            return _make_owner("network-scripts", link, path)
    if not is_stopped(host, "wickedd.service"):
        path = find_ifcfg(host, WICKED, link)
        if path is not None:
            return _make_owner("wicked", link, path)
    return None


def _make_owner(manager: str, link: str, path: str | Missing) -> LinkOwner | Missing:
    if isinstance(path, Missing):
        return path
    if manager == "wicked":
        return LinkOwner("wicked", path, link, f"wicked brings it up, by {path}")
    return LinkOwner("network-scripts", path, link, f"the network scripts bring it up, by {path}")
