"""What a picture of a host needs beyond its facts."""

from __future__ import annotations

import msgspec

from advisor.facts.host_facts import Facts
from advisor.facts.system.services import Service, read_storage_services
from advisor.facts.unknown import Unknowns
from advisor.host import Host
from advisor.limits.declared import Declared
from advisor.limits.links import read_pci_and_network
from advisor.limits.records import HostCeiling
from advisor.limits.storage_use import read_front
from advisor.limits.what_if import Scene, limits_of_scene


def find_services(host: Host, facts: Facts) -> tuple[Facts, tuple[Service, ...]]:
    """Return the services that use the storage of ``host``, and the facts with what of these services is unknown."""
    unknown = Unknowns()
    services = read_storage_services(host, unknown)
    return msgspec.structs.replace(facts, unknown=(*facts.unknown, *unknown.listed())), services


def host_ceiling(host: Host, facts: Facts, declared: Declared | None = None) -> HostCeiling | None:
    """Return the ceiling of the host as a whole, in MB/s, with what is declared of its volumes; None for a host
    without storage paths. Measures nothing."""
    scene = Scene(facts, read_pci_and_network(host, facts), declared or Declared(), read_front(host, facts))
    return limits_of_scene(scene).host
