"""Hosts of the IRIS article: a r5b.24xlarge with journal, WIJ and databases on EBS volumes, as its tests have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from advisor.facts.clusters.iris import QLIST
from advisor.facts.unknown import IRIS_REGISTRY
from advisor.host import Host
from tests.limits.hosts import EBS
from tests.whole_hosts import DISTRIBUTIONS, WholeHost

_SECTORS: Final = 1 << 30
ARTICLE: Final = "Asyncwij=16\nglobals=0,0,589824,0,0,0\nwdparm=16,32,512,128\nwduseasyncio=1\n"
DEFAULTS: Final = "globals=0,0,589824,0,0,0\n"
TEST_1: Final[Mapping[str, Sequence[int]]] = {"jrn": [1], "wij": [2], "db": [3]}
TEST_2: Final[Mapping[str, Sequence[int]]] = {"jrn": [1], "wij": range(2, 7), "db": range(7, 23)}
TEST_3: Final[Mapping[str, Sequence[int]]] = {"jrn": [1], "db": [2]}


def iris(
    layout: Mapping[str, Sequence[int]] = TEST_1,
    cpf: str = DEFAULTS,
    *,
    wij: str = "wij",
    journal: str = "jrn",
    mirror: str = "",
    pages: int = 0,
    available_gib: int = 700,
    chunk_kib: int = 4096,
    distribution: str = "rhel-8",
    kind: str = "xfs",
    scheduler: str = "none",
    instance: str = "r5b.24xlarge",
    model: str = EBS,
    rotational: bool = False,
    running: bool = True,
    **sysctl: str,
) -> Callable[[], Host]:
    """``layout`` names the EBS volumes below /iris/NAME: one as it is, several as one LVM stripe. ``wij`` and
    ``journal`` are the directories that the cpf names, ``pages`` the huge pages of 2 MiB."""

    def host() -> Host:
        made = WholeHost(DISTRIBUTIONS[distribution], gib=768, cpus=96, nodes=2, vm__nr_hugepages=str(pages), **sysctl)
        made.ec2(instance)
        made.link("eth0", "10.0.1.5/24", driver="ena", mtu=9001, speed=None, route=True)
        made.drive(0, EBS, gib=50, at=("/",), kind="xfs")
        made.files["/proc/meminfo"] = made.files["/proc/meminfo"].replace(
            f"MemAvailable: {(768 << 20) * 2 // 3}", f"MemAvailable: {available_gib << 20}"
        )
        pool = "/sys/kernel/mm/hugepages/hugepages-2048kB"
        made.files |= {f"{pool}/nr_hugepages": f"{pages}\n", f"{pool}/free_hugepages": "0\n"}
        for at, (name, numbers) in enumerate(layout.items()):
            _volume(made, at, f"/iris/{name}", numbers, (kind, scheduler, model), 2 * chunk_kib, rotational=rotational)
        _instance(made, cpf, wij, journal, mirror, running)
        return made.host()

    return host


def _volume(
    made: WholeHost,
    at: int,
    place: str,
    numbers: Sequence[int],
    words_of: tuple[str, str, str],
    chunk_sectors: int,
    *,
    rotational: bool,
) -> None:
    kind, scheduler, model = words_of
    for number in numbers:
        made.drive(number, model, gib=1000, at=())
        queue = next(path for path in made.files if f"/nvme{number}n1/queue/scheduler" in path)
        words = ("none", "mq-deadline", "kyber")
        made.files[queue] = " ".join(f"[{word}]" if word == scheduler else word for word in words) + "\n"
        made.files[queue.replace("scheduler", "rotational")] = f"{int(rotational)}\n"
    if len(numbers) == 1:
        made.mount(f"259:{10 * numbers[0]}", place, kind)
        return
    name = f"vg_{place.rpartition('/')[2]}-lv"
    made.dm(at, name, "LVM-" + f"{at}" * 32 + "v" * 32, [f"nvme{number}n1" for number in numbers], sectors=_SECTORS)
    made.mount(f"253:{at}", place, kind)
    members = " ".join(f"259:{10 * number} 2048" for number in numbers)
    table = f"{name}: 0 {_SECTORS} striped {len(numbers)} {chunk_sectors} {members}\n"
    known = made.answers.get(("dmsetup", "table"))
    made.answer(("dmsetup", "table"), getattr(known, "stdout", "") + table)


def _instance(made: WholeHost, cpf: str, wij: str, journal: str, mirror: str, running: bool) -> None:
    made.directories.add(IRIS_REGISTRY)
    made.files["/usr/irissys/iris.cpf"] = (
        "[ConfigFile]\nProduct=IRIS\nVersion=2023.2\n[Databases]\nIRISSYS=/usr/irissys/mgr/\nAPP=/iris/db/app/\n"
        f"[Journal]\nCurrentDirectory=/iris/{journal}/\n[config]\n{cpf}wijdir=/iris/{wij}/\n"
    )
    state = "running, since Sat Jul 22 10:00:00 2023" if running else "down, last used Sat Jul 22 10:00:00 2023"
    made.answer(QLIST, f"LIVE^/usr/irissys^2023.2.0.204.0^{state}^iris.cpf^1972^52773^62972^ok^IRIS^{mirror}^^\n")


def volumes(kinds: Mapping[int, str], quota: str = "") -> str:
    """A file for ``--volumes``: what was bought of each volume."""
    return quota + "".join(
        f'[[volume]]\ndevice = "nvme{number}n1"\ngib = 1000\n{bought}\n' for number, bought in kinds.items()
    )


GP3: Final = 'type = "gp3"'
GP3_MOST: Final = 'type = "gp3"\niops = 16000\nthroughput-mb-per-s = 1000'
IO2_WIJ: Final = 'type = "io2"\niops = 256000'
IO2_DATABASE: Final = 'type = "io2"\niops = 100000'
VOLUMES_1: Final = volumes({0: GP3, 1: GP3, 2: IO2_WIJ, 3: IO2_DATABASE})
VOLUMES_2: Final = volumes({0: GP3, 1: GP3, **dict.fromkeys(range(2, 23), GP3_MOST)})
VOLUMES_3: Final = volumes({0: GP3, 1: GP3, 2: IO2_WIJ}, "[quota]\niops = 600000\nelsewhere-iops = 256000\n")
