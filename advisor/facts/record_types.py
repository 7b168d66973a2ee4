"""Types of the fields of records, also of those that `advisor.facts.host_facts` imports only when a host has them."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec

from advisor.facts.array import Array
from advisor.facts.beegfs import Beegfs
from advisor.facts.controller import Controller
from advisor.facts.encrypted import EncryptedDevice
from advisor.facts.fibre_channel import FcPort
from advisor.facts.host_facts import Facts
from advisor.facts.infoscale import InfoScale
from advisor.facts.iris import Iris
from advisor.facts.iscsi import Iscsi
from advisor.facts.llt import Llt
from advisor.facts.memory_modules import MemoryModule
from advisor.facts.path_load import PathLoad
from advisor.facts.purchase import BurstingVolume, PurchasedFigures
from advisor.facts.software import StorageSoftware
from advisor.facts.zfs import ZfsPool

_RARE = (
    *(Array, Beegfs, Controller, EncryptedDevice, FcPort, InfoScale, Iris, Iscsi, Llt, MemoryModule, PathLoad),
    *(BurstingVolume, PurchasedFigures, StorageSoftware, ZfsPool),
)
RARE_TYPES: dict[str, type[msgspec.Struct]] = {record.__name__: record for record in _RARE}
"""The records of rare subjects by name: a scan does not load them for a host without the subject."""


def field_types(record: type) -> dict[str, Any]:
    """Return the types of a record's fields by name."""
    return get_type_hints(record, localns=RARE_TYPES if record is Facts else None)
