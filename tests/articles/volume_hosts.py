"""Hosts of the IRIS article's instance: one logical volume over EBS volumes, striped, in segments, or linear."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from advisor.host import Host
from tests.facts.storage import Tree
from tests.limits.hosts import EBS

_SECTORS = 1 << 30
_VOLUME_ID = "LVM-" + "g" * 32 + "v" * 32
_CHUNK_SECTORS = 8192  # stripes of 4 MiB, as the article's


def over_volumes(*segments: Sequence[int], place: str = "/iris", instance: str = "r5b.24xlarge") -> Callable[[], Host]:
    """A host whose volume has these segments, each striped over the EBS volumes of these numbers, or linear on one."""

    def host() -> Host:
        tree = Tree()
        numbers = sorted({number for segment in segments for number in segment})
        for number in numbers:
            tree.nvme(number, 0, number=f"259:{number}")
            directory = tree.links[f"/sys/block/nvme{number}n1"].removeprefix("..").rpartition("/")[0]
            tree.files[f"/sys{directory}/model"] = f"{EBS}\n"
        tree.files["/sys/class/dmi/id/sys_vendor"] = "Amazon EC2\n"
        tree.files["/sys/class/dmi/id/product_name"] = f"{instance}\n"
        tree.dm(0, "vg_iris-lv_iris", _VOLUME_ID, [f"nvme{number}n1" for number in numbers])
        tree.mount("253:0", place, "xfs")
        lines = (f"vg_iris-lv_iris: {at * _SECTORS} {_SECTORS} {_target(one)}\n" for at, one in enumerate(segments))
        tree.answer(("dmsetup", "table"), "".join(lines))
        return tree.host()

    return host


def _target(numbers: Sequence[int]) -> str:
    places = " ".join(f"259:{number} 2048" for number in numbers)
    return f"linear {places}" if len(numbers) == 1 else f"striped {len(numbers)} {_CHUNK_SECTORS} {places}"


def gp3(count: int) -> str:
    """A file for ``--volumes``: that many gp3 volumes as the article bought them."""
    bought = 'type = "gp3"\ngib = 3577\niops = 16000\nthroughput-mb-per-s = 1000\n'
    return "".join(f'[[volume]]\ndevice = "nvme{number}n1"\n{bought}' for number in range(count))
