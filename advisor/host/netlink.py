"""What is set over netlink, by pyroute2: link attributes, qdiscs, and ethtool's own family.

Netlink says why it refuses (``requested ring size exceeds maximum``), which the ioctls do not. pyroute2 takes 170 ms to
load: whoever needs this module imports it in the function that does.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections.abc import Mapping
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink import (
    NETLINK_ROUTE,
    NLA_F_NESTED,
    NLM_F_ACK,
    NLM_F_CREATE,
    NLM_F_REPLACE,
    NLM_F_REQUEST,
    genlmsg,
    nla,
)
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket
from pyroute2.netlink.nlsocket import NetlinkSocket
from pyroute2.netlink.rtnl import RTM_DELQDISC, RTM_NEWQDISC, TC_H_ROOT
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from advisor.errors import CommandError
from advisor.host.ethtool import UNSUPPORTED, Answer, Ethtool
from advisor.host.missing import ABSENT, Missing, from_os_error
from advisor.host.steps import QDISC_HANDLES, SetEthtool, SetQdisc


def set_link(link: str, attribute: str, value: int) -> None:
    """Set an attribute of a link by pyroute2's name for it: ``mtu``, ``txqlen``. Raises CommandError."""
    index = _link_index(link)
    try:
        with IPRoute(ext_ack=True) as netlink:
            netlink.link("set", index=index, **{attribute: value})
    except (NetlinkError, OSError) as error:
        raise _refusal_error(f"link {link}: {attribute} {value}", error) from error


def set_qdisc(step: SetQdisc) -> None:
    """Attach or delete a root qdisc. Raises CommandError."""
    message = tcmsg()
    message["index"] = _link_index(step.link)
    message["parent"] = TC_H_ROOT
    kind, flags, what = RTM_DELQDISC, NLM_F_REQUEST | NLM_F_ACK, "the kernel's own again"
    if step.kind is not None:
        kind, flags, what = RTM_NEWQDISC, flags | NLM_F_CREATE | NLM_F_REPLACE, step.kind
        message["handle"] = int(QDISC_HANDLES[step.kind].rstrip(":"), 16) << 16
        # Without options, so that the kernel's defaults hold; IPRoute.tc would give some kinds its own.
        message["attrs"] = [("TCA_KIND", step.kind)]
    try:
        with NetlinkSocket(family=NETLINK_ROUTE, ext_ack=True, nlm_generator=False) as netlink:
            netlink.bind()
            netlink.nlm_request(message, msg_type=kind, msg_flags=flags)
    except (NetlinkError, OSError) as error:
        raise _refusal_error(f"link {step.link}: qdisc {what}", error) from error


def set_ethtool(step: SetEthtool) -> None:
    """Set one value of a driver; by ioctl where the kernel has no ethtool family. Raises CommandError."""
    value = {"off": 0, "on": 1}.get(step.value)
    number = int(step.value) if value is None else value
    try:
        try:
            attribute, request_value = _attribute_of(step, number)
            message = _Message()
            message["cmd"] = _REQUESTS[step.group]
            message["version"] = 1
            device = {"attrs": [("INDEX", _link_index(step.link)), ("FLAGS", _OMIT_REPLY)]}
            message["attrs"] = [("DEVICE", device), (attribute, request_value)]
            _ask_kernel(message, flags=NLM_F_ACK)
        except _NoFamilyError:
            Ethtool().set(step.link, step.group, step.key, number)
    except (NetlinkError, OSError) as error:
        raise _refusal_error(f"link {step.link}: {step.group} {step.key} {step.value}", error) from error


def read_coalesce(link: str) -> Answer | Missing:
    """What `Ethtool.query` gives for coalesce, less what the driver does not have: the ioctl has zeros there.

    By ioctl where the kernel has no ethtool family.
    """
    try:
        index = _link_index(link)
    except CommandError:
        return ABSENT
    message = _CoalesceAnswer()
    message["cmd"] = _READ_COALESCE
    message["version"] = 1
    message["attrs"] = [("DEVICE", {"attrs": [("INDEX", index)]})]
    try:
        (answer,) = _ask_kernel(message)
    except _NoFamilyError:
        return Ethtool().query(link, "coalesce")
    except NetlinkError as error:
        return UNSUPPORTED if error.code == errno.EOPNOTSUPP else Missing("unreadable", os.strerror(error.code))
    except OSError as error:
        return from_os_error(error)
    found = {key: answer.get_attr(key) for group, key in _ATTRIBUTES if group == "coalesce"}
    switches = ("adaptive-rx", "adaptive-tx")
    return {key: bool(value) if key in switches else value for key, value in found.items() if value is not None}


def _link_index(link: str) -> int:
    try:
        return socket.if_nametoindex(link)
    except OSError as error:
        raise CommandError(f"link {link}: does not exist", errno=errno.ENODEV) from error


def _refusal_error(what: str, error: NetlinkError | OSError) -> CommandError:
    """In the words of the kernel's extended acknowledgement where there are some, and of the error number."""
    code = (error.code if isinstance(error, NetlinkError) else error.errno) or errno.EIO
    plain = os.strerror(code)
    words = str(error.args[-1]) if isinstance(error, NetlinkError) else plain
    return CommandError(f"{what}: {words}" + ("" if words == plain else f" ({plain})"), errno=code)


# linux/ethtool_netlink.h: the request of each group, and number and type of the attribute of each key.
_REQUESTS: Mapping[str, int] = {"features": 12, "rings": 16, "channels": 18, "coalesce": 20, "pause": 22}
_ATTRIBUTES: Mapping[tuple[str, str], tuple[int, str]] = {
    ("rings", "rx"): (6, "uint32"),
    ("rings", "rx-mini"): (7, "uint32"),
    ("rings", "rx-jumbo"): (8, "uint32"),
    ("rings", "tx"): (9, "uint32"),
    ("channels", "rx"): (6, "uint32"),
    ("channels", "tx"): (7, "uint32"),
    ("channels", "other"): (8, "uint32"),
    ("channels", "combined"): (9, "uint32"),
    ("coalesce", "rx-usecs"): (2, "uint32"),
    ("coalesce", "rx-frames"): (3, "uint32"),
    ("coalesce", "tx-usecs"): (6, "uint32"),
    ("coalesce", "tx-frames"): (7, "uint32"),
    ("coalesce", "adaptive-rx"): (11, "uint8"),
    ("coalesce", "adaptive-tx"): (12, "uint8"),
    ("pause", "autoneg"): (2, "uint8"),
    ("pause", "rx"): (3, "uint8"),
    ("pause", "tx"): (4, "uint8"),
}
_READ_COALESCE = 19
_WANTED_FEATURES = (3, "bitset")
_OMIT_REPLY = 2


class _NoFamilyError(Exception):
    """The kernel has no ethtool netlink family."""


class _Device(nla):  # type: ignore[misc]
    nla_flags = NLA_F_NESTED
    nla_map = ((1, "INDEX", "uint32"), (3, "FLAGS", "uint32"))


class _Bit(nla):  # type: ignore[misc]
    nla_flags = NLA_F_NESTED
    nla_map = ((2, "NAME", "asciiz"), (3, "VALUE", "flag"))


class _Bits(nla):  # type: ignore[misc]
    nla_flags = NLA_F_NESTED
    nla_map = ((1, "BIT", "bit"),)
    bit = _Bit


class _Bitset(nla):  # type: ignore[misc]
    nla_flags = NLA_F_NESTED
    nla_map = ((3, "BITS", "bits"),)
    bits = _Bits


class _Message(genlmsg):  # type: ignore[misc]
    """A request about one device that carries one value, by the number and the type of its attribute."""

    nla_map = (
        (1, "DEVICE", "device"),
        *((number, f"{number} {kind}", kind) for number, kind in sorted({*_ATTRIBUTES.values(), _WANTED_FEATURES})),
    )
    device = _Device
    bitset = _Bitset


class _CoalesceAnswer(genlmsg):  # type: ignore[misc]
    nla_map = (
        (1, "DEVICE", "device"),
        *((number, key, kind) for (group, key), (number, kind) in _ATTRIBUTES.items() if group == "coalesce"),
    )
    device = _Device


def _ask_kernel(message: Any, *, flags: int = 0) -> Any:
    """The answers to a request. Raises NetlinkError, _NoFamilyError."""
    with GenericNetlinkSocket(ext_ack=True) as netlink:
        disabled = logging.root.manager.disable
        # pyroute2 logs that a kernel has no such family, where the ioctl stands in.
        logging.disable()
        try:
            netlink.bind("ethtool", type(message))
        except NetlinkError as error:
            if error.code == errno.ENOENT:
                raise _NoFamilyError from error
            raise
        finally:
            logging.disable(disabled)
        return netlink.nlm_request(message, msg_type=netlink.prid, msg_flags=NLM_F_REQUEST | flags)


def _attribute_of(step: SetEthtool, number: int) -> tuple[str, Any]:
    if step.group != "features":
        place, kind = _ATTRIBUTES[step.group, step.key]
        return f"{place} {kind}", number
    # Bits that are not named stay as they are; a named one without a value is off.
    bit = [("NAME", step.key), *([("VALUE", True)] if number else [])]
    place, kind = _WANTED_FEATURES
    return f"{place} {kind}", {"attrs": [("BITS", {"attrs": [("BIT", {"attrs": bit})]})]}
