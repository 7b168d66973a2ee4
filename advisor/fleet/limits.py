"""Captures of many hosts become their ceilings, one host's facts in memory at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from advisor.errors import InvalidInputError
from advisor.facts.host_facts import scan
from advisor.fleet.compare.columns import Progress, read_sources
from advisor.fleet.compare.summary import CaptureSource
from advisor.host import tree_host
from advisor.limits.declared import Declared, DeclaredVolume
from advisor.limits.host_ceiling import with_host
from advisor.limits.links import read_pci_and_network
from advisor.limits.media import Media
from advisor.limits.paths import limits_of
from advisor.limits.records import AccountQuota, HostCeiling, account_quotas
from advisor.limits.storage_use import read_front
from advisor.snapshot.open import open_host


def gather_ceilings(
    sources: Sequence[CaptureSource],
    declared: Declared,
    of_host: Mapping[str, Declared],
    progress: Progress = lambda done, total: None,
) -> tuple[tuple[tuple[str, HostCeiling], ...], dict[str, str], tuple[AccountQuota, ...]]:
    """The ceiling of each host by its name, those that could not be read with the reason, and what the volumes of all
    have of the account's quotas. ``of_host`` is what is declared of one host, ``declared`` of all others."""
    found = []
    failed: dict[str, str] = {}
    bought: dict[str, DeclaredVolume] = {}

    def read(source: CaptureSource) -> tuple[HostCeiling, dict[str, DeclaredVolume]]:
        return read_ceiling(Path(source.path), of_host.get(source.name, declared))

    for host, (one, volumes) in read_sources(sources, read, failed, progress, processes=1):
        found.append((host, one))
        # A volume that is attached to several hosts is bought once.
        bought |= {each.volume_id or f"{host}:{name}": each for name, each in volumes.items()}
    every = msgspec.structs.replace(declared, volume=tuple(bought.values()))
    return tuple(found), failed, account_quotas(every)


def read_ceiling(path: Path, declared: Declared) -> tuple[HostCeiling, dict[str, DeclaredVolume]]:
    """Of a snapshot, of what the capture script printed, or of a tree of captured files; with what is declared of its
    disks."""
    if path.is_dir():
        if not any((path / name).is_dir() for name in ("proc", "sys")):
            raise InvalidInputError(f"{path}: holds neither proc nor sys")
        host = tree_host(str(path))
    else:
        host = open_host(snapshot=path)
    facts = scan(host)
    around = read_pci_and_network(host, facts)
    limits = with_host(limits_of(facts, around, declared), facts, around, declared, read_front(host, facts))
    assert limits.host is not None
    media = Media(facts, declared)
    volumes = {disk.name: one for disk in facts.disks if (one := media.declared(disk.name)) is not None}
    return limits.host, volumes
