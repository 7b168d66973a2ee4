"""The cases of docs/systems/ebs.md, on hosts built from the article's text."""

from __future__ import annotations

from typing import Final

from tests.articles.iris_hosts import GP3_MOST, IO2_WIJ, TEST_1, TEST_2, VOLUMES_1, VOLUMES_2, iris, volumes
from tests.articles.table import (
    Case,
    found,
    limited,
    limited_account,
    limited_host,
    limited_what_if,
    planned,
    purchased,
    recommended,
    sized,
)
from tests.articles.volume_hosts import gp3, over_volumes

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
    Case(
        case="A single io2 volume of 256,000 IOPS",
        article="S002: io2 Block Express carries 256,000 IOPS and 4,000 MB/s for each volume",
        host=iris(TEST_1),
        ask=limited("/iris/wij", VOLUMES_1),
        says=("256,000 write IOPS by EBS volume", "4,194 MB/s writing by EBS volume"),
    ),
    Case(
        case="gp3 as it comes",
        article="S002: 3,000 IOPS and 125 MB/s by default",
        host=iris(TEST_1),
        ask=limited("/iris/jrn", VOLUMES_1),
        says=("3,000 write IOPS by EBS volume", "131 MB/s writing by EBS volume"),
    ),
    Case(
        case="Two io2 volumes striped, above the instance",
        article="S002: the instance must carry what the volumes do; r5b.24xlarge: 260,000 IOPS and 7,500 MB/s",
        host=iris({"db": [2, 3]}),
        ask=limited("/iris/db", volumes({2: IO2_WIJ, 3: IO2_WIJ})),
        says=("260,000 read IOPS by EC2 instance", "7,500 MB/s reading by EC2 instance"),
    ),
    Case(
        case="An instance that no table has",
        article="S002: limits of the instance come before those of the volumes",
        host=iris({"db": [2]}, instance="r99z.24xlarge"),
        ask=limited("/iris/db", volumes({2: GP3_MOST})),
        says=("16,000 read IOPS by EBS volume",),
        never=("by EC2 instance",),
    ),
    Case(
        case="Volumes of which nothing is declared",
        article="S002: there are limits everywhere, of the account too: review them before testing",
        host=iris(TEST_1),
        ask=limited_account(),
        says=("unknown: quota of the AWS account", "aws service-quotas list-service-quotas --service-code ebs"),
    ),
    Case(
        case="The same in a scan",
        article="S002: all volumes of the region count in one total, those of a mirror too",
        host=iris(TEST_1, mirror="Failover^Primary"),
        ask=found("ebs.account-quota"),
        says=("(info)", "aws service-quotas"),
    ),
    Case(
        case="A timeout of 30 seconds",
        article="S002: AWS slows volumes down beyond what was bought; its guide asks for the longest timeout",
        host=iris(TEST_1),
        ask=found("disks.ebs-timeout"),
        says=("(advice)", "io_timeout"),
    ),
    Case(
        case="The plan for volumes of EBS",
        article="S002: minimal changes to the operating system",
        host=iris(TEST_1),
        ask=planned("ebs-volumes"),
        says=("block:nvme2n1:io_timeout 30000 →",),
    ),
    Case(
        case="mq-deadline on EBS volumes",
        article="S002: the operating system as it is: none is what the kernel gives an NVMe device",
        host=iris(TEST_2, scheduler="mq-deadline"),
        ask=found("ebs.scheduler"),
        says=("(info)", "block:nvme1n1:scheduler=none"),
    ),
    Case(
        case="The scheduler none",
        article="S002: the operating system as it is",
        host=iris(TEST_2),
        ask=found("ebs.scheduler"),
        says=("no finding",),
    ),
    Case(
        case="Volumes of EBS are recommended their profile",
        article="S002: AWS takes seconds to notice that a volume is above what was bought, and then delays it",
        host=iris(TEST_1),
        ask=recommended("ebs-volumes"),
        says=("yes (symptom)",),
    ),
    Case(
        case="Test 2: 22 volumes of 21,125 MB/s and 339,000 IOPS behind one instance",
        article="S002: r5b.24xlarge carries 7,500 MB/s, 260,000 IOPS; gp3 of 1,000 MB/s: five for WIJ, 16 for database",
        host=iris(TEST_2),
        ask=purchased(VOLUMES_2),
        says=(
            "ebs.unusable-purchase (advice)",
            "65 % of what these volumes promise cannot pass this instance",
            "r5b.24xlarge 7,500 MB/s",
            "volumes 342,000 IOPS, r5b.24xlarge 260,000 IOPS: 24 % cannot pass",
        ),
    ),
    Case(
        case="Test 1: io2 Block Express of 100,000 IOPS for the database and 256,000 for the WIJ",
        article="S002: the instance carries 260,000 IOPS; the WIJ is written in bursts",
        host=iris(TEST_1),
        ask=purchased(VOLUMES_1),
        says=("ebs.unusable-purchase (info)", "28 % of what these volumes promise"),
    ),
    Case(
        case="Test 2, all volumes at once: what binds the whole host",
        article="S002: an instance must carry what its volumes do; limits of an r5b.24xlarge: 7,500 MB/s, 260,000 IOPS",
        host=iris(TEST_2),
        ask=limited_host(VOLUMES_2),
        says=("EC2 instance (binds) 7,500 7,500", "7,500 MB/s, bound by EC2 instance (r5b.24xlarge)", "IOPS 260,000"),
        never=("links (binds)",),
    ),
    Case(
        case="Test 1 out of test 2: io2 Block Express in place of the striped gp3 volumes",
        article="S002: test 1 has one io2 Block Express volume for databases and one for the WIJ, 4,000 MB/s each",
        host=iris(TEST_2),
        ask=limited_what_if(
            "/iris/db:volumes=1xio2:100000iops", "/iris/wij:volumes=1xio2:256000iops", volumes=VOLUMES_2
        ),
        says=("The ceiling of the host does not change.", "7,500 7,500 unchanged ceiling: reads MB/s"),
    ),
    Case(
        case="Half of the volumes for the databases",
        article="S002: 16 gp3 volumes in one stripe carry 256,000 IOPS and 16,000 MB/s, more than the instance",
        host=iris(TEST_2),
        ask=limited_what_if("/iris/db:volumes=8xgp3:1000MB/s:16000iops", volumes=VOLUMES_2),
        says=("260,000 211,000 -19 % ceiling: IOPS",),
    ),
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
