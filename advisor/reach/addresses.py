"""Addresses as the host or the user gives them: checked before anything is done with them."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

import msgspec

from advisor.errors import UsageError
from advisor.reach.records import Role

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_address(text: str) -> Address | None:
    """An IP address, with a scope where one is given; None for anything else. IPv4 in IPv6 clothes becomes IPv4."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def scope_of(address: Address) -> str | None:
    """The link that a scoped IPv6 address names."""
    return address.scope_id if isinstance(address, ipaddress.IPv6Address) else None


def with_scope(address: Address, link: str | None) -> Address:
    """A link-local IPv6 address with the link that it is on, where it names none."""
    if address.version == 4 or not address.is_link_local or scope_of(address) or not link or "%" in link:
        return address
    return ipaddress.IPv6Address(f"{address}%{link}")


def why_not_askable(address: Address) -> str | None:
    """Why no single host has this address; None where one may."""
    if address.is_multicast:
        return "a multicast address"
    if address.is_unspecified:
        return "no address of a host"
    if address == ipaddress.IPv4Address("255.255.255.255"):
        return "the broadcast address"
    if address.version == 6 and address.is_link_local and scope_of(address) is None:
        return "a link-local address without its link"
    return None


def link_groups(addresses: Iterable[str]) -> tuple[str, ...]:
    """The addresses at which all hosts of a link's networks listen, given its own with prefix lengths."""
    known = [ipaddress.ip_interface(text) for text in addresses]
    broadcasts = [
        str(one.network.broadcast_address) for one in known if one.version == 4 and one.network.prefixlen < 31
    ]
    return (*dict.fromkeys(broadcasts), *(("ff02::1",) if any(one.version == 6 for one in known) else ()))


def resolve(text: str) -> Address:
    """The address that a user means: one as it stands, or what the resolver has first for a name.

    Raises UsageError, which says what is wrong with it.
    """
    address = parse_address(text) or _looked_up(text)
    why = why_not_askable(address)
    if why is not None:
        is_local = address.version == 6 and address.is_link_local
        raise UsageError(f"{text}: {why}", hint=f"write {address}%LINK, as in {address}%eth1" if is_local else None)
    scope = scope_of(address)
    if scope is not None:
        try:
            socket.if_nametoindex(scope)
        except (OSError, ValueError) as error:
            raise UsageError(f"{text}: there is no link {scope!r}") from error
    return address


def _looked_up(name: str) -> Address:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, ValueError) as error:
        # UnicodeError, a ValueError: a label that is empty or longer than any may be.
        why = error.strerror if isinstance(error, socket.gaierror) else None
        raise UsageError(
            f"{name[:200]}: neither an address nor a name that can be looked up ({why or 'no host name'})",
            hint="give an IP address, such as 192.0.2.2 or 2001:db8::2",
        ) from error
    addresses = [parse_address(str(entry[4][0])) for entry in found]
    first = next((address for address in addresses if address is not None), None)
    if first is None:
        raise UsageError(f"{name[:200]}: has no IP address")
    return first


class FoundAddress(msgspec.Struct, frozen=True):
    """What a source of peers hands on, not yet checked: ``link`` is the link that the service is bound to, ``source``
    its own address; None where the route decides."""

    address: str
    role: Role
    why: str
    link: str | None = None
    source: str | None = None
