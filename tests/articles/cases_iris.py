"""The cases of docs/systems/iris.md, on hosts built from the article's text."""

from __future__ import annotations

from typing import Final

from tests.articles import iris_hosts, table
from tests.articles.iris_hosts import iris
from tests.articles.table import Case, found, limited, sized
from tests.articles.volume_hosts import gp3, over_volumes
from tests.cases import read_cases

DATA = read_cases(__file__, table, iris_hosts, globals())

_WRITE_DAEMONS: Final[tuple[Case, ...]] = DATA["_WRITE_DAEMONS"]
_MEMORY: Final[tuple[Case, ...]] = (
    *DATA["_MEMORY"],
    Case(
        case="kernel.shmmax of an old guide, 64 GiB",
        article="S002: the cache is 589,824 MB; the kernel's own limit is none",
        host=iris(kernel__shmmax=str(64 << 30)),
        ask=found("iris.shmmax"),
        says=("(warning)", "remove the line that lowers kernel.shmmax"),
    ),
    *DATA["_MEMORY_2"],
)
_VOLUMES: Final[tuple[Case, ...]] = (
    *DATA["_VOLUMES"],
    Case(
        case="The WIJ on a logical volume of 5 stripes over 5 gp3 volumes",
        article="S002: five gp3 volumes of 16,000 IOPS and 1,000 MB/s each, striped, for the WIJ: 80,000 IOPS together",
        host=over_volumes(range(5), place="/wij"),
        ask=limited("/wij", gp3(5)),
        says=("5,000 MB/s writing by 5 EBS volumes", "80,000 write IOPS by 5 EBS volumes"),
        never=("segment", "linear"),
    ),
    Case(
        case="The WIJ's volume was made of 3 stripes and extended by 2 linear volumes",
        article="S002: the WIJ's five volumes are one stripe",
        host=over_volumes(range(3), [3], [4], place="/wij"),
        ask=limited("/wij", gp3(5)),
        says=(
            "3,000 MB/s writing by 3 EBS volumes",
            "of 3, 1 and 1 disks",
            "in its slowest part a stream gets at most",
        ),
    ),
    Case(
        case="The databases of 256,000 IOPS and 4,000 MB/s on r5b.24xlarge: io2 Block Express against 16 × gp3",
        article="S002: one io2 Block Express volume against 16 striped gp3 volumes, on an instance of 7,500 MB/s and "
        "260,000 IOPS: similar write latency, twice the read latency with gp3",
        host=over_volumes(range(16)),
        ask=sized(read="2800MB/s", write="1200MB/s", iops="256000", layout="io2,gp3x16"),
        says=(
            "2 choices carry it",
            "1 × io2: 256 GiB, 256,000 IOPS, 4,000 MiB/s",
            "16 × gp3, striped: each 32 GiB, 16,000 IOPS, 239 MiB/s",
            "r5b.24xlarge 2 %",
        ),
        never=("cannot pass", "not known"),
    ),
    Case(
        case="The same with a latency of 1 ms",
        article="S002: write latency of about 1 ms with both, reads of gp3 twice those of io2 Block Express",
        host=over_volumes(range(16)),
        ask=sized(read="2800MB/s", write="1200MB/s", iops="256000", latency="1ms", layout="io2,gp3x16"),
        says=("1 choice carries it", "1 × io2", "gp3: its documented latency is single-digit milliseconds"),
        never=("16 × gp3",),
    ),
    Case(
        case="More than the instance carries",
        article="S002: r5b.24xlarge has 7,500 MB/s and 260,000 IOPS (10,000 MB/s further down is wrong)",
        host=over_volumes(range(16)),
        ask=sized(read="5GB/s", write="5GB/s", iops="300k"),
        says=("No choice carries it", "7,500 at most: 2,500 MB/s short", "260,000 at most: 40,000 IOPS short"),
    ),
)
_NETWORK: Final[tuple[Case, ...]] = DATA["_NETWORK"]

CASES: Final[tuple[Case, ...]] = (*_WRITE_DAEMONS, *_MEMORY, *_VOLUMES, *_NETWORK)
