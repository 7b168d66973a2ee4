"""The ceiling of a cluster: the sum of its storage servers, each by its own ceiling, against the sum of its clients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from advisor.limits.host_ceiling import STAGES, binding_of, shares_of
from advisor.limits.records import (
    AccountQuota,
    Binding,
    Direction,
    HostCeiling,
    HostStage,
    IopsBinding,
    StageSum,
    account_notes,
)

Part = Literal["server", "client", "other"]
"""What a host counts as: of the storage, of those who use it, or of neither."""
_FIGURES = ("read_mb_s", "write_mb_s", "read_iops", "write_iops")
_UNKNOWN_STAGES: tuple[HostStage, ...] = ("memory", "processor")


class ClusterHost(msgspec.Struct, frozen=True):
    """One host, what it counts as, and its own ceiling."""

    name: str
    part: Part
    host: HostCeiling


class Cluster(msgspec.Struct, frozen=True):
    """The hosts and what they make together."""

    cluster: HostCeiling
    hosts: tuple[ClusterHost, ...]
    account_quotas: tuple[AccountQuota, ...] = ()
    """What the declared volumes of all hosts have of the quotas of one account."""


def cluster_of(ceilings: Iterable[tuple[str, HostCeiling]], quotas: tuple[AccountQuota, ...] = ()) -> Cluster:
    """Of named hosts. Where some are seen to serve storage, those of which nothing says so count as neither."""
    listed = tuple(ceilings)
    has_servers = any(one.role == "server" and one.paths for _, one in listed)
    hosts = tuple(ClusterHost(name, _part_of(one, has_servers), one) for name, one in listed)
    servers = tuple(one for one in hosts if one.part == "server")
    clients = tuple(one for one in hosts if one.part == "client") if servers else ()
    if not servers:
        # Clients alone: what they can draw is all that is known.
        hosts = tuple(msgspec.structs.replace(one, part="server") if one.part == "client" else one for one in hosts)
        servers = tuple(one for one in hosts if one.part == "server")
    stages = tuple(_sum_stages(servers, clients))
    reads, writes = (_total_of(servers, clients, way) for way in ("read", "write"))
    bound_reads = _find_binding(servers, clients, "read", stages, reads)
    bound_writes = _find_binding(servers, clients, "write", stages, writes)
    unlimited = tuple(f"{one.name}:{part}" for one in servers for part in one.host.iops_unknown_of)
    at_most = [
        _sum_known(_at_most(one.host, way) for one in servers) if unlimited else None for way in ("read", "write")
    ]
    machines = {one.host.machine for one in servers if one.host.machine}
    roles = {one.host.role for one in servers}
    return Cluster(
        HostCeiling(
            read_mb_s=reads,
            write_mb_s=writes,
            binds=bound_reads or bound_writes,
            write_binds=bound_writes,
            stages=stages,
            role="server" if "server" in roles or not roles else "assumed" if "assumed" in roles else roles.pop(),
            read_iops=_sum_known(one.host.read_iops for one in servers),
            write_iops=_sum_known(one.host.write_iops for one in servers),
            paths=tuple(f"{one.name}:{path}" for one in servers for path in one.host.paths),
            notes=(*_make_notes(hosts, servers, clients), *account_notes(quotas)),
            machine=machines.pop() if len(machines) == 1 else None,
            iops_binds=_iops_binding(servers, "read"),
            write_iops_binds=_iops_binding(servers, "write"),
            read_iops_at_most=at_most[0],
            write_iops_at_most=at_most[1],
            iops_unknown_of=unlimited,
        ),
        hosts,
        quotas,
    )


def _at_most(one: HostCeiling, way: str) -> float | None:
    known: float | None = getattr(one, f"{way}_iops")
    other: float | None = getattr(one, f"{way}_iops_at_most")
    return other if known is None else known


def _iops_binding(servers: Sequence[ClusterHost], way: Direction) -> IopsBinding | None:
    """The stage that binds the most of the servers' IOPS; next is what they reach where it sets no limit to any."""
    name = "iops_binds" if way == "read" else "write_iops_binds"
    bound = [(one, value, found) for one in servers if (found := getattr(one.host, name)) is not None
             and (value := _at_most(one.host, way)) is not None]  # fmt: skip
    if not bound or len(bound) < len(servers):
        return None
    share = shares_of((found.stage, [f"{one.name}:{name}" for name in found.members], value)
                      for one, value, found in bound)[0]  # fmt: skip
    lifted = _sum_known(found.next_iops if found.stage == share.stage else value for _one, value, found in bound)
    following = [found.next_stage for _one, _value, found in bound if found.stage == share.stage and found.next_stage]
    return IopsBinding(share.stage, share.members, lifted, following[0] if lifted is not None and following else None)


def _part_of(one: HostCeiling, has_servers: bool) -> Part:
    if not one.paths:
        return "other"
    if one.role == "client":
        return "client"
    return "server" if one.role == "server" or not has_servers else "other"


def _sum_known(values: Iterable[float | None]) -> float | None:
    """None where one is not known, or where there are none."""
    listed = tuple(values)
    known = [value for value in listed if value is not None]
    return sum(known) if known and len(known) == len(listed) else None


def _total_of(servers: Sequence[ClusterHost], clients: Sequence[ClusterHost], way: str) -> float | None:
    carried = _sum_known(getattr(one.host, f"{way}_mb_s") for one in servers)
    drawn = _sum_known(getattr(one.host, f"{way}_mb_s") for one in clients)
    if carried is None:
        return drawn
    return carried if drawn is None else min(carried, drawn)


def _sum_stages(servers: Sequence[ClusterHost], clients: Sequence[ClusterHost]) -> Iterable[StageSum]:
    for stage in (*reversed(STAGES), *_UNKNOWN_STAGES):
        found = [(one.name, each) for one in servers for each in one.host.stages if each.stage == stage]
        if found:
            yield _sum_stage(stage, found)
        if stage == "network" and clients:
            figures = [*(_sum_known(getattr(one.host, name) for one in clients) for name in _FIGURES[:2]), None, None]
            silent = [one.name for one in clients if one.host.read_mb_s is None]
            members = tuple(one.name for one in clients)
            why = f"what {len(clients)} client{'' if len(clients) == 1 else 's'} can draw together"
            if silent:
                client_stage = msgspec.convert(
                    _stage_fields("clients", members, figures, "unknown", f"not known of {silent[0]}"), StageSum
                )
            else:
                client_stage = msgspec.convert(_stage_fields("clients", members, figures, "known", why), StageSum)
            yield client_stage


def _sum_stage(stage: HostStage, found: Sequence[tuple[str, StageSum]]) -> StageSum:
    counted = [(name, one) for name, one in found if one.known != "not-counted"]
    if not counted:
        return msgspec.structs.replace(found[0][1], members=())
    members = tuple(f"{name}:{member}" for name, one in counted for member in one.members)
    figures = [_sum_known(getattr(one, name) for _, one in counted) for name in _FIGURES]
    if stage == "quota":
        once = [max((value for _, one in counted if (value := getattr(one, name)) is not None), default=None)
                for name in _FIGURES]  # fmt: skip
        why = "as declared; one account has it once for all its hosts"
        return msgspec.convert(_stage_fields(stage, members[:1], once, "known", why), StageSum)
    unknown = [(name, one) for name, one in counted if one.known in ("unknown", "partly")]
    if unknown:
        who = f"{unknown[0][0]}{f' and {len(unknown) - 1} more' if len(unknown) > 1 else ''}"
        known = "partly" if any(one is not None for one in figures) else "unknown"
        why = unknown[0][1].why if stage in _UNKNOWN_STAGES else f"{who}: {unknown[0][1].why}"
        return msgspec.convert(_stage_fields(stage, members, figures, known, why), StageSum)
    hosts = "1 host" if len(counted) == 1 else f"{len(counted)} hosts"
    return msgspec.convert(_stage_fields(stage, members, figures, "known", f"the sum of {hosts}"), StageSum)


def _stage_fields(
    stage: HostStage, members: tuple[str, ...], figures: Sequence[float | None], known: str, why: str
) -> dict[str, object]:
    values = dict(zip(_FIGURES, figures, strict=True))
    return {"stage": stage, "members": members, "known": known, "why": why, **values}


def _find_binding(
    servers: Sequence[ClusterHost],
    clients: Sequence[ClusterHost],
    way: Direction,
    stages: Sequence[StageSum],
    total: float | None,
) -> Binding | None:
    name = f"{way}_mb_s"
    carried = _sum_known(getattr(one.host, name) for one in servers)
    drawn = _sum_known(getattr(one.host, name) for one in clients)
    if total is None:
        return None
    if drawn is not None and (carried is None or drawn < carried):
        shares = shares_of([("clients", [one.name for one in clients], drawn)])
        return binding_of(shares, stages, name, carried)
    bound = [(one, found) for one in servers if (found := _own_binding(one.host, way)) is not None]
    if not bound:
        return None
    shares = shares_of(
        (share.stage, [f"{one.name}:{member}" for member in share.members], share.mb_s)
        for one, found in bound
        for share in found.shares
    )
    stage = shares[0].stage
    lifted = _sum_known(found.lifted_mb_s if found.stage == stage else getattr(one.host, name) for one, found in bound)
    known = [value for value in (lifted, drawn) if value is not None]
    return binding_of(shares, stages, name, min(known, default=None) if lifted is not None else drawn)


def _own_binding(one: HostCeiling, way: Direction) -> Binding | None:
    if way == "write":
        return one.write_binds
    return one.binds if one.read_mb_s is not None else None


def _make_notes(
    hosts: Sequence[ClusterHost], servers: Sequence[ClusterHost], clients: Sequence[ClusterHost]
) -> Iterable[str]:
    yield "a sum is reached only where the load falls evenly on all servers, and on all of their targets"
    if len({one.host.binds.stage for one in servers if one.host.binds}) > 1:
        yield (
            "the servers are bound by different stages: the ceiling is the sum of what each one reaches by itself, "
            "below the sum of every stage"
        )
    unknown = [one.name for one in servers if one.host.read_mb_s is None and one.host.write_mb_s is None]
    if unknown:
        yield f"no ceiling is known of {', '.join(unknown[:4])}, so none of the cluster"
    if servers and not clients:
        yield "no client is among these hosts: what clients can draw is not counted"
    assumed = [one.name for one in servers if one.host.role == "assumed"]
    if assumed:
        yield f"taken as servers, as nothing says how their storage is used: {', '.join(assumed[:6])}"
    others = [one.name for one in hosts if one.part == "other"]
    if others:
        yield f"neither servers nor clients of this storage, so not counted: {', '.join(others[:6])}"
    metadata = sorted({note for one in servers for note in one.host.notes if "metadata target" in note})
    yield from (f"{next(one.name for one in servers if note in one.host.notes)}: {note}" for note in metadata)
