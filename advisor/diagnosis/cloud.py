"""Causes that the cloud itself names: the limits of a volume, of the instance and of its network."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.diagnosis.cause import BINDS_FROM, BindingCause, asks_storage, cause, percent
from advisor.diagnosis.observation import Observation
from advisor.diagnosis.storage import follow_up

_EBS = "Amazon EBS User Guide, EBS detailed performance statistics; nvme-cli, plugins/amzn/amzn-nvme.c"
_ENA = "amzn/amzn-drivers, kernel/linux/ena/ENA_Linux_Best_Practices.rst"

_WORDS = {"iops": "IOPS", "throughput": "throughput"}


def _exceeded(seen: Observation, name: str, whose: str) -> tuple[str, float, float] | None:
    """Which limit of the volume or the instance was exceeded longer, for how many seconds, and of how many."""
    seconds = seen.span.seconds_of("ebs")
    times = {what: (seen.rose("ebs", name, f"{whose}_{what}_us") or 0) / 1e6 for what in ("iops", "throughput")}
    what = max(times, key=lambda one: times[one])
    return (what, times[what], seconds) if seconds and times[what] / seconds >= BINDS_FROM else None


@cause(
    id="cloud.volume-limit",
    resource="cloud",
    help="hardware",
    what="Time in which the demand exceeded what the EBS volume is granted (NVMe log page 0xD0).",
    threshold="10 % of the time",
    sources=(_EBS,),
)
def volume_limit(seen: Observation) -> Iterator[BindingCause]:
    for name in seen.span.names("ebs"):
        found = _exceeded(seen, name, "volume")
        if found:
            what, over, seconds = found
            yield volume_limit.bind(
                over / seconds,
                f"The {_WORDS[what]} of volume {name} binds {percent(over / seconds)} of the time",
                device=name,
                evidence={"limit": f"{what} of the volume", "exceeded_s": over, "observed_s": seconds},
                advice="Buy more IOPS or MB/s for the volume, or spread the load over more volumes.",
                commands=("advisor limits", "advisor limits --what-if volumes=…"),
                asks=asks_storage(seen, name),
                explains=follow_up(seen, name),
            )


@cause(
    id="cloud.instance-limit",
    resource="cloud",
    help="hardware",
    what="Time in which the demand exceeded what the instance is granted for all its EBS volumes (NVMe log page 0xD0).",
    threshold="10 % of the time",
    sources=(_EBS,),
)
def instance_limit(seen: Observation) -> Iterator[BindingCause]:
    found = [(name, one) for name in seen.span.names("ebs") if (one := _exceeded(seen, name, "instance"))]
    if not found:
        return
    name, (what, over, seconds) = max(found, key=lambda one: one[1][1])
    cloud = seen.facts.host.cloud
    yield instance_limit.bind(
        over / seconds,
        f"EBS {_WORDS[what]} of the instance binds {percent(over / seconds)} of the time",
        device=name,
        evidence={
            "limit": f"{what} of the instance",
            "exceeded_s": over,
            "observed_s": seconds,
            "instance_type": (cloud.instance_type if cloud else None) or None,
        },
        advice="An instance type with more EBS bandwidth, or fewer bytes.",
        commands=("advisor limits", "advisor limits --what-if instance=…"),
        asks=asks_storage(seen),
        explains=tuple(text for volume, _ in found for text in follow_up(seen, volume)),
    )


@cause(
    id="cloud.network-limit",
    resource="cloud",
    help="hardware",
    what="Packets that an ENA link queued or dropped for a limit of the instance (*_allowance_exceeded).",
    threshold="1 of 1,000 packets, and at least 10; or 1 of 10,000, and at least 100",
    sources=(_ENA,),
    explains=("net.loss", "net.link-saturated", "net.round-trip", "net.ring-drops"),
)
def network_limit(seen: Observation) -> Iterator[BindingCause]:
    for name in seen.span.names("allowance"):
        counts = {
            field: rise
            for field in seen.span.fields("allowance", name)
            if (rise := seen.rose("allowance", name, field))
        }
        link = seen.links.get(name)
        packets = ((link.rx_packets_per_s or 0) + (link.tx_packets_per_s or 0)) if link else 0
        packets *= seen.span.seconds_of("allowance")
        held = sum(counts.values())
        # As few as count as drops of a ring: TCP slows down for each, so that it never asks for much more than it gets.
        if not (held >= 10 and held >= packets / 1000) and not (held >= 100 and held >= packets / 10_000):
            continue
        most = max(counts, key=lambda one: counts[one]).removesuffix("_allowance_exceeded")
        yield network_limit.bind(
            held / max(packets, held),
            f"The instance's network limit ({most}) holds up packets of {name}",
            of="packets",
            device=name,
            evidence=counts,
            advice="A larger instance type, or flows spread over more instances; rings and buffers do not help.",
            commands=("advisor limits --what-if instance=…",),
        )
