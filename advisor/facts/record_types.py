"""Types of the fields of records, also of those that `advisor.facts.host_facts` imports only when a host has them."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec

from advisor.facts.block.block import Array, PathLoad
from advisor.facts.block.controller import Controller
from advisor.facts.block.dm import EncryptedDevice
from advisor.facts.block.stacked import ZfsPool
from advisor.facts.clusters.beegfs import Beegfs
from advisor.facts.clusters.infoscale import InfoScale
from advisor.facts.clusters.iris import Iris
from advisor.facts.clusters.llt import Llt
from advisor.facts.host_facts import Facts
from advisor.facts.remote.iscsi import Iscsi
from advisor.facts.remote.network_storage import FcPort
from advisor.facts.system.identity import BurstingVolume, PurchasedFigures
from advisor.facts.system.memory import MemoryModule
from advisor.facts.system.roles import StorageSoftware

_RARE = (
    *(Array, Beegfs, Controller, EncryptedDevice, FcPort, InfoScale, Iris, Iscsi, Llt, MemoryModule, PathLoad),
    *(BurstingVolume, PurchasedFigures, StorageSoftware, ZfsPool),
)
RARE_TYPES: dict[str, type[msgspec.Struct]] = {record.__name__: record for record in _RARE}
"""The records of rare subjects by name: a scan does not load them for a host without the subject."""


def field_types(record: type) -> dict[str, Any]:
    """Return the types of a record's fields by name."""
    return get_type_hints(record, localns=RARE_TYPES if record is Facts else None)
