"""``link:IFACE:mtu`` — a link's MTU in bytes, persisted where the link's network manager keeps it.

That is a .link file, a drop-in of systemd-networkd, a profile of NetworkManager, a netplan file, a stanza of
/etc/network/interfaces, or an ifcfg file; docs/persistence.md lists which, and when there is none.
"""

from __future__ import annotations

import re

from advisor.host import Host, Missing, SetMtu, Step
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile
from advisor.tunables.link_driver import LinkRing, observe_side_effect
from advisor.tunables.preflight import Preflight
from advisor.tunables.sysctl import coupled_side_effects
from advisor.tunables.sysctl_group import ipv6_keys

_NAME = lazy_regex(r"[^\s/:\0]{1,15}", re.ASCII)
_MAX_NAME_BYTES = 15
IPV6_MTU_BYTES = 1280
"""The least that IPv6 asks of a link (RFC 8200 section 5); below it the kernel removes all that IPv6 has of it."""


class LinkMtu(KernelFile, frozen=True):
    link: str

    risk = "link"
    holds_count = True
    id_form = "link:{self.link}:mtu"
    path_form = "/sys/class/net/{self.link}/mtu"

    accepted = lazy_regex(r"[1-9][0-9]{0,9}")
    wrong = "is no MTU: that is a number of bytes"

    def make_steps(self, value: str) -> tuple[Step, ...]:
        return (SetMtu(self.link, int(value)),)

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        from advisor.tunables.link_persist import persist_mtu

        return persist_mtu(host, self.link, value)

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        """Drivers that use several buffers for a large packet round their rings for it, and not back (vmxnet3);
        where the MTU is too small for IPv6, the link's settings below net.ipv6 are set to their defaults."""
        from advisor.tunables.link_persist import persistence_notes

        notes = persistence_notes(host, self.link, after)
        if before == after:
            return Preflight(notes=notes)
        rings = (LinkRing(self.link, key) for key in LinkRing.keys)
        siblings = [one for ring in rings for one in observe_side_effect(host, ring)]
        if is_count(before) and int(after) < IPV6_MTU_BYTES <= int(before):
            siblings += coupled_side_effects(host, ipv6_keys(host, self.link))
        return Preflight(side_effects=tuple(siblings), notes=notes)


def is_link_name(name: str) -> bool:
    """Whether the kernel would take it (dev_valid_name)."""
    is_short = len(name.encode("utf-8", "surrogateescape")) <= _MAX_NAME_BYTES
    return bool(_NAME.fullmatch(name)) and is_short and name not in (".", "..")
