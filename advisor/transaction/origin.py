"""Where a transaction was made: on which machine, and in which of its namespaces; every way back asks."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from advisor.errors import RefusedError
from advisor.facts.system.identity import read_container
from advisor.host import Host, Missing
from advisor.host.signals import entering_words, first_words, network_cookie
from advisor.planning.records import Origin, Plan
from advisor.tunables import namespace_of

KINDS = ("net", "ipc")
"""The kinds of namespaces (namespaces(7)) whose values are tunables of the running kernel."""
_HARDWARE = "/sys/class/dmi/id/product_uuid"


class Elsewhere(msgspec.Struct, frozen=True):
    """Why a transaction is none of this place, and what leads to it. ``is_machine``: it is of another machine."""

    why: str
    hint: str
    is_machine: bool = False

    def as_error(self, identity: str) -> RefusedError:
        return RefusedError(f"transaction {identity} {self.why}", hint=self.hint)


def origin_of(host: Host) -> Origin:
    """What distinguishes this machine, this boot and the network namespace of this process, where it has its own."""
    hardware, boot_id = host.read(_HARDWARE), host.read("/proc/sys/kernel/random/boot_id")
    return Origin(
        None if isinstance(hardware, Missing) or not hardware else hardware.lower(),
        None if isinstance(boot_id, Missing) else boot_id,
        network_cookie() if "net" in private_namespaces(host) else None,
    )


def private_namespaces(host: Host) -> dict[str, int]:
    """The namespaces of this process that are not those of the running host, or container, as a whole: their inode
    numbers by kind."""
    if not host.is_live:
        return {}
    container = read_container(host)
    found: dict[str, int] = {}
    for kind in KINDS:
        own, first = (host.readlink(f"/proc/{process}/ns/{kind}") for process in ("self", "1"))
        if container.namespaces.get(kind) != "own" or isinstance(own, Missing) or own == first:
            continue
        # Where process 1 cannot be asked, a container's own is taken for that of all its processes.
        if isinstance(first, Missing) and container.is_inside:
            continue
        found[kind] = int(own.partition("[")[2].rstrip("]"))
    return found


def items_in(plan: Plan, kind: str) -> Iterator[str]:
    """The tunables of a plan of which each namespace of the kind has a value of its own."""
    names = [one.tunable for one in (*plan.changes, *plan.claims)] + [one.tunable for one in plan.side_effects]
    return (name for name in names if namespace_of(name) == kind)


def gone_kinds(host: Host, plan: Plan, origin: Origin) -> frozenset[str]:
    """The kinds of namespaces of a plan that are there no more; what was set in them went with them."""
    private, here = private_namespaces(host), origin_of(host)
    return frozenset(
        kind
        for kind, inode in (plan.namespace or {}).items()
        # After a boot a namespace of the same number is another one.
        if host.is_live
        and (
            origin.boot_id != here.boot_id
            or (
                not _is_here(kind, inode, private, origin, here) and entering_words(kind, inode, origin.network) is None
            )
        )
    )


def _is_here(kind: str, inode: int | None, private: dict[str, int], origin: Origin, here: Origin) -> bool:
    """Is this process in the namespace of that number, and is it still the same one?"""
    is_later = kind == "net" and inode is not None and None not in (origin.network, here.network)
    return private.get(kind) == inode and not (is_later and origin.network != here.network)


def find_elsewhere(
    host: Host, identity: str, plan: Plan, origin: Origin, *, any_host: bool = False, command: str = "advisor rollback"
) -> Elsewhere | None:
    """Why a transaction is not of this machine, or not of the namespaces of this process; None where it is."""
    machine, here = host.read("/etc/machine-id"), origin_of(host)
    if not any_host:
        hint = f"{command} {identity} --any-host; where its values are to stay, set its records aside"
        if plan.machine_id is not None and not isinstance(machine, Missing) and machine != plan.machine_id:
            return Elsewhere(
                f"was made on another machine (its machine-id is {plan.machine_id})", hint, is_machine=True
            )
        if origin.hardware is not None and here.hardware is not None and here.hardware != origin.hardware:
            why = f"was made on another machine with this machine-id (its product UUID is {origin.hardware})"
            return Elsewhere(why, hint, is_machine=True)
    if not host.is_live:
        return None
    recorded, private = plan.namespace or {}, private_namespaces(host)
    for kind in KINDS:
        inode = recorded.get(kind)
        if _is_here(kind, inode, private, origin, here) or not any(items_in(plan, kind)):
            continue
        if inode is None:
            why = f"was made in the {kind} namespace of the host, and this is another one"
            return Elsewhere(why, f"{first_words(kind)} {command} {identity}")
        if origin.boot_id == here.boot_id and (words := entering_words(kind, inode, origin.network)) is not None:
            return Elsewhere(f"was made in another {kind} namespace ({inode})", f"{words} {command} {identity}")
    return None
