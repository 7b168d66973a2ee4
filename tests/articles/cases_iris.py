"""The cases of docs/systems/iris.md, on hosts built from the article's text."""

from __future__ import annotations

from typing import Final

from tests.articles.iris_hosts import ARTICLE, TEST_1, TEST_2, TEST_3, VOLUMES_1, VOLUMES_2, VOLUMES_3, iris
from tests.articles.table import Case, found, limited, limited_account, planned, recommended, sized
from tests.articles.volume_hosts import gp3, over_volumes

_DAEMONS: Final = "iris-write-daemons"
_MIRROR: Final = "Failover^Primary"
_CROSS_ZONE: Final = "iris,rtt=1.16ms,replication=sync"

_WRITE_DAEMONS: Final[tuple[Case, ...]] = (
    Case(
        case="RANWRITE is declared, and IRIS has its default write daemons",
        article="S002: the tests of high write rates ran with Asyncwij=16 and wdparm=16,32,512,128; 8 is the default",
        host=iris(),
        ask=recommended(_DAEMONS, "iris.ranwrite"),
        says=("yes (workload)", "advisor plan iris-write-daemons"),
    ),
    Case(
        case="An application of 70 % writes on the databases of 16 striped gp3 volumes",
        article="S002: some special cases have very high rates of writes; test 2 is on 16 striped gp3 volumes",
        host=iris(TEST_2),
        ask=recommended(_DAEMONS, "iris,write=70%"),
        says=("yes (workload)",),
    ),
    Case(
        case="The usual transactional load, 70 % reads",
        article="S002: most transactional applications read 70 and write 30",
        host=iris(),
        ask=recommended(_DAEMONS, "iris"),
        says=("perhaps (intent)",),
    ),
    Case(
        case="RANREAD: reads only",
        article="S002: write daemons write the databases and the WIJ",
        host=iris(),
        ask=recommended(_DAEMONS, "iris.ranread"),
        says=("no (unfit)", "only reads"),
    ),
    Case(
        case="Nothing is declared",
        article="S002: it depends on the rate of writes",
        host=iris(),
        ask=found("iris.write-daemons"),
        says=("(info)",),
    ),
    Case(
        case="The article's own cpf, with RANWRITE",
        article="S002: Asyncwij=16, wdparm=16,32,512,128, wduseasyncio=1",
        host=iris(cpf=ARTICLE),
        ask=recommended(_DAEMONS, "iris.ranwrite"),
        says=("yes (in-force)", "one of its cases"),
    ),
    Case(
        case="The plan from IRIS' defaults",
        article="S002: Asyncwij=16, wdparm=16,32,512,128, wduseasyncio=1",
        host=iris(),
        ask=planned(_DAEMONS),
        says=("Asyncwij (unset) → 16", "wdparm (unset) → 16,32,512,128", "wduseasyncio (unset) → 1"),
    ),
    Case(
        case="More writes to the WIJ in flight than the article's",
        article="S002: Asyncwij=16 means sixteen at a time; nothing is lowered",
        host=iris(cpf=ARTICLE.replace("Asyncwij=16", "Asyncwij=32")),
        ask=planned(_DAEMONS),
        says=("Asyncwij",),
        never=("Asyncwij 32 →",),
    ),
    Case(
        case="Databases and WIJ on rotating disks",
        article="S002: volumes of 256,000 IOPS; more writes in flight need volumes that carry them",
        host=iris(model="ST12000NM0027", rotational=True),
        ask=recommended(_DAEMONS, "iris.ranwrite"),
        says=("no (unfit)", "only queue"),
    ),
)
_MEMORY: Final[tuple[Case, ...]] = (
    Case(
        case="globals of 589,824 MB and no huge pages",
        article="S002: globals=0,0,589824,0,0,0 on 780 GB; of 2 MiB these are 294,912 pages",
        host=iris(),
        ask=found("iris.huge-pages-short"),
        says=("(advice)", "There are no huge pages", "advisor plan iris"),
    ),
    Case(
        case="The plan of the host",
        article="S002: 294,912 pages for the cache; routines, heap and 5 % come to it. InterSystems: 5, 5 and 10",
        host=iris(),
        ask=planned("iris"),
        says=(
            "sysctl:vm.nr_hugepages 0 → 311269",
            "vm.swappiness 30 → 5",
            "vm.dirty_ratio 30 → 10",
            "vm.dirty_background_ratio 10 → 5",
            "thp:enabled always → madvise",
        ),
    ),
    Case(
        case="Huge pages for the cache alone: 294,912",
        article="S002: 589,824 MB are 294,912 pages of 2 MiB; IRIS takes all of its shared memory from them or nothing",
        host=iris(pages=294_912),
        ask=found("iris.huge-pages-short"),
        says=("too few",),
    ),
    Case(
        case="Enough huge pages, in use",
        article="S002: the cache fits",
        host=iris(pages=311_269),
        ask=found("iris.huge-pages-short"),
        says=("no finding",),
    ),
    Case(
        case="IRIS holds the memory in small pages: 100 GiB are available",
        article="S002: the cache is three quarters of the memory",
        host=iris(available_gib=100),
        ask=planned("iris"),
        says=("refused: memory budget", "free memory first"),
    ),
    Case(
        case="kernel.shmmax of an old guide, 64 GiB",
        article="S002: the cache is 589,824 MB; the kernel's own limit is none",
        host=iris(kernel__shmmax=str(64 << 30)),
        ask=found("iris.shmmax"),
        says=("(warning)", "remove the line that lowers kernel.shmmax"),
    ),
    Case(
        case="The kernel's own kernel.shmmax",
        article="S002: minimal changes to the operating system",
        host=iris(),
        ask=found("iris.shmmax"),
        says=("no finding",),
    ),
    Case(
        case="A cache of 75 % of the memory",
        article="S002: 589,824 of 780 GB",
        host=iris(cpf=ARTICLE),
        ask=found("iris.cache-share"),
        says=("no finding",),
    ),
)
_VOLUMES: Final[tuple[Case, ...]] = (
    Case(
        case="Test 1: journal, WIJ and databases on a volume each",
        article="S002: a volume of its own isolates the impact of the WIJ on reads of the databases",
        host=iris(TEST_1, ARTICLE),
        ask=found("iris.parts-apart", "iris.ranwrite"),
        says=("lie on 3 volumes", "--target /iris/db", "--target /iris/wij", "--target /iris/jrn"),
    ),
    Case(
        case="Test 3: WIJ and databases on one io2 volume, many writes declared",
        article="S002: the larger writes of the WIJ hold up the reads; latency of the primary is higher",
        host=iris(TEST_3, ARTICLE, wij="db"),
        ask=found("iris.wij-shared", "iris.ranwrite"),
        says=("(advice)", "set wijdir"),
    ),
    Case(
        case="Test 3 with nothing declared",
        article="S002: WIJ and databases may share a volume to save cost",
        host=iris(TEST_3, ARTICLE, wij="db", mirror=_MIRROR),
        ask=found("iris.wij-shared"),
        says=("(info)",),
    ),
    Case(
        case="The journal on the volume of the databases",
        article="S002: the volume of the journal is always apart from those of WIJ and databases",
        host=iris({"wij": [2], "db": [3]}, ARTICLE, journal="db"),
        ask=found("iris.journal-shared"),
        says=("(advice)", "a volume of its own"),
    ),
    Case(
        case="The journal on a volume of its own",
        article="S002: a single gp3 volume as it comes, 3,000 IOPS and 125 MB/s",
        host=iris(TEST_1, ARTICLE),
        ask=found("iris.journal-shared"),
        says=("no finding",),
    ),
    Case(
        case="Stripes of 4 MB",
        article="S002: LVM stripes of 4 MB",
        host=iris(TEST_2, ARTICLE),
        ask=found("iris.stripe-size"),
        says=("no finding",),
    ),
    Case(
        case="Stripes of 64 KiB, as lvcreate makes them",
        article="S002: LVM stripes of 4 MB",
        host=iris(TEST_2, ARTICLE, chunk_kib=64),
        ask=found("iris.stripe-size"),
        says=("lvcreate -i 16 -I 4m",),
    ),
    Case(
        case="ext4 below the databases",
        article="S002: all volumes have XFS",
        host=iris(TEST_1, ARTICLE, kind="ext4"),
        ask=found("iris.file-system"),
        says=("another file system than XFS",),
    ),
    Case(
        case="Test 1: io2 of 100,000 IOPS for the databases",
        article="S002: 100,000 IOPS and 4,000 MB/s",
        host=iris(TEST_1),
        ask=limited("/iris/db", VOLUMES_1),
        says=("100,000 write IOPS by EBS volume", "4,194 MB/s writing by EBS volume"),
    ),
    Case(
        case="Test 2: 16 gp3 in one stripe for the databases",
        article="S002: 256,000 IOPS and 16,000 MB/s together; the instance carries 7,500",
        host=iris(TEST_2),
        ask=limited("/iris/db", VOLUMES_2),
        says=("256,000 write IOPS by 16 EBS volumes", "7,500 MB/s writing by EC2 instance"),
    ),
    Case(
        case="Test 2: all volumes against the instance",
        article="S002: 21 gp3 volumes; the instance carries 7,500 MB/s and 260,000 IOPS",
        host=iris(TEST_2),
        ask=limited_account(VOLUMES_2),
        says=("instance 7,500: 65 % not usable", "instance 260,000: 24 % not usable"),
    ),
    Case(
        case="Test 1: 356,000 provisioned IOPS, no quota declared",
        article="S002: the account's quota had to be raised to 600,000 IOPS",
        host=iris(TEST_1),
        ask=limited_account(VOLUMES_1),
        says=("356,000 IOPS, more than the default of 100,000", "own quota is unknown", "--quota-code L-8D977E7E"),
    ),
    Case(
        case="Test 3: the mirror's other member has 256,000 of a quota of 600,000",
        article="S002: 256K + 256K of the quota of 600,000; both on one volume because of it",
        host=iris(TEST_3),
        ask=limited_account(VOLUMES_3),
        says=("512,000 IOPS of the quota of 600,000; 88,000 are left",),
    ),
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
_NETWORK: Final[tuple[Case, ...]] = (
    Case(
        case="A mirror over two zones, 1.16 ms",
        article="S002: 1.16 ms from zone b to zone c, 1.12 ms back",
        host=iris(TEST_3, ARTICLE, wij="db", mirror=_MIRROR),
        ask=found("iris.mirror-round-trip", _CROSS_ZONE),
        says=("Mirrored commits wait for another zone", "advisor probe PEER"),
    ),
    Case(
        case="Socket buffers for that mirror",
        article="S002: minimal changes to the operating system; 0.73 MB are in flight at the 5 Gbit/s of one flow",
        host=iris(TEST_3, ARTICLE, wij="db", mirror=_MIRROR),
        ask=recommended("socket-buffers-8m", _CROSS_ZONE),
        says=("no (unfit)",),
    ),
)

CASES: Final[tuple[Case, ...]] = (*_WRITE_DAEMONS, *_MEMORY, *_VOLUMES, *_NETWORK)
