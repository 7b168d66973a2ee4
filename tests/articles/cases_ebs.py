"""The cases of docs/systems/ebs.md, on hosts built from the article's text."""

from __future__ import annotations

from typing import Final

from tests.articles import iris_hosts, table
from tests.articles.table import Case, limited, sized
from tests.articles.volume_hosts import gp3, over_volumes
from tests.cases import read_cases

DATA = read_cases(__file__, table, iris_hosts, globals())

CASES: Final[tuple[Case, ...]] = (
    Case(
        case="One logical volume of 16 stripes over 16 gp3 volumes of 16,000 IOPS",
        article="S002: 16 gp3 volumes of 16,000 IOPS and 1,000 MB/s each, striped: 256,000 IOPS together",
        host=over_volumes(range(16)),
        ask=limited("/iris", gp3(16)),
        says=("7,500 MB/s reading by EC2 instance", "256,000 read IOPS by 16 EBS volumes"),
        never=("segment", "linear"),
    ),
    Case(
        case="8 stripes over 16 gp3 volumes: two segments of 8",
        article="S002: the figures of 16 volumes are those of one stripe over all of them",
        host=over_volumes(range(8), range(8, 16)),
        ask=limited("/iris", gp3(16)),
        says=("128,000 read IOPS by 8 EBS volumes", "2 segments one behind the other, of 8 and 8 disks"),
        never=(": 256,000",),
    ),
    Case(
        case="A linear logical volume over 16 gp3 volumes",
        article="S002: the throughput of 16 volumes is that of a striped volume",
        host=over_volumes(*([number] for number in range(16))),
        ask=limited("/iris", gp3(16)),
        says=("1,000 MB/s reading by EBS volume", "16,000 read IOPS by EBS volume", "linear over 16 disks"),
        never=(": 256,000",),
    ),
    *DATA["CASES"],
    Case(
        case="What test 2 of the article buys, 21 × gp3 of 16,000 IOPS and 1,000 MB/s",
        article="S002: WIJ of 5 and databases of 16 gp3 volumes, 21,000 MB/s and 336,000 IOPS, on an instance of "
        "7,500 MB/s and 260,000 IOPS",
        host=over_volumes(range(21)),
        ask=sized(iops="256000", read="2800MB/s", write="1200MB/s", volumes=gp3(21)),
        says=(
            "21 × gp3, as declared",
            "bound by r5b.24xlarge",
            "64 % of what these volumes promise cannot pass this instance",
        ),
        never=("not known",),
    ),
)
