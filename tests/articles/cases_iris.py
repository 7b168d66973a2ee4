"""The cases of docs/systems/iris.md, on hosts built from the article's text."""

from __future__ import annotations

from typing import Final

from tests.articles.table import Case, limited
from tests.articles.volume_hosts import gp3, over_volumes

CASES: Final[tuple[Case, ...]] = (
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
)
