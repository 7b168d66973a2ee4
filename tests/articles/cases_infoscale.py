"""The cases of docs/systems/infoscale.md, on hosts built from the article's text."""

from __future__ import annotations

from typing import Final

from tests.articles.infoscale_hosts import LOCAL, MIRRORED, SHARED, node
from tests.articles.infoscale_volumes import VOLUMES
from tests.articles.table import Case, fact, found, limited, planned, reasons, recommended

_JUMBO, _BUFFERS, _MARKS = "jumbo-frames", "socket-buffers-8m", "llt-highwater-doubled"
_GP2 = '[[volume]]\ndevice = "xvdb"\ntype = "gp2"\ngib = 5\n'

_SINGLE = node(links=(), listed=LOCAL)
_SHARED = node(listed=SHARED)
_TCP = node("tcp", links=("eth1",))
_UDP = node()
_ZONES = node(far=True, lines=("set-bcasthb 0", "set-arp 0"))
_BY_HAND = ("set-flow highwater:2000", "set-flow rporthiswater:2000")
_DOUBLED = ("llt:highwater 1000 → 2000", "llt:rporthighwater 1000 → 2000")

_SIZED = {f"net/core/{end}_{which}": "851968" for end in ("rmem", "wmem") for which in ("default", "max")}

_CONFIGURATIONS: Final = (
    Case(
        "configuration 1, a single node",
        "S001: the reference; no cluster, so nothing crosses the network",
        _SINGLE,
        found("infoscale.configuration"),
        ("InfoScale: a single node", "infoscale-single-node"),
    ),
    Case(
        "configuration 2, a shared disk",
        "S001: as fast as a single node; each node has its disk to itself",
        _SHARED,
        found("infoscale.configuration"),
        ("a node of a cluster that shares its disks",),
    ),
    Case(
        "configuration 3, mirrors over one TCP link",
        "S001: FSS in one zone, the heartbeat is one TCP link",
        _TCP,
        found("infoscale.configuration"),
        ("mirrors its disks over TCP inside one zone",),
    ),
    Case(
        "configuration 4, mirrors over two UDP links",
        "S001: FSS in one zone, the heartbeat is two UDP links",
        _UDP,
        found("infoscale.configuration"),
        ("mirrors its disks over UDP inside one zone",),
    ),
    Case(
        "configuration 5, mirrors across zones, declared",
        "S001: FSS across zones, the heartbeat is two UDP links",
        _ZONES,
        found("infoscale.configuration", "fss-cross-zone"),
        ("mirrors its disks across zones",),
    ),
    Case(
        "configuration 4 or 5, nothing declared",
        "S001: they differ in the distance of the nodes alone",
        _ZONES,
        found("infoscale.configuration"),
        ("is not certain (fss-udp, fss-zones)", "advisor probe"),
    ),
    Case(
        "configuration 4 without root",
        "S001: shared or mirrored is what vxdisk list says",
        node(listed=None),
        found("infoscale.configuration"),
        ("is not certain", "vxdisk -o alldgs list"),
    ),
    Case(
        "what mirroring costs",
        "S001: about half of the IOPS of a local disk, at most 2 % of the CPUs",
        _UDP,
        found("infoscale.mirroring-cost"),
        ("about half of the IOPS",),
    ),
    Case(
        "what mirroring costs, with shared disks",
        "S001: as a single node, within the error",
        _SHARED,
        found("infoscale.mirroring-cost", "infoscale.4k-rand-rw50"),
        ("no finding",),
    ),
    Case(
        "the volume: gp2 of 5 GiB",
        "S001: 2,000 of the 3,000 IOPS of the burst bucket; mind that it empties",
        _SINGLE,
        limited("/data", _GP2),
        ("100 read IOPS by EBS volume", "bucket of credits"),
    ),
)

_THREE: Final = tuple(
    Case(
        f"{title}: {tuning}",
        "S001: the tunings are for virtual mirrors; nothing of this goes over the heartbeat",
        host,
        recommended(tuning, workload),
        says,
        ("fits", ": yes"),
    )
    for title, host, workload, says in (
        ("shared disk, nothing declared", _SHARED, None, ("no (unfit)", "shares its disks, so LLT carries no writes")),
        ("shared disk, declared as mirrored", _SHARED, "infoscale.4k-seq-rw50", ("no (unfit)", "contradicts it")),
        ("single node, declared as mirrored", _SINGLE, "infoscale.4k-seq-rw50", ("no (",)),
    )
    for tuning in (_JUMBO, _BUFFERS, _MARKS)
)

_NINE: Final = tuple(
    Case(f"{tuning}, {workload} across zones", article, _ZONES, recommended(tuning, f"{workload},rtt=1.16ms"), says)
    for tuning, article, rows in (
        (
            _MARKS,
            "S001: for a long round trip and many writes; a read is served by the local copy",
            (
                ("infoscale.4k-rand-r100", ("no (unfit)", "Reads alone")),
                ("infoscale.4k-rand-rw50", ("yes (workload)",)),
                ("infoscale.4k-rand-w100", ("yes (workload)",)),
                ("infoscale.4k-seq-r100", ("no (unfit)", "Reads alone")),
                ("infoscale.4k-seq-rw50", ("yes (workload)",)),
                ("infoscale.4k-seq-w100", ("yes (workload)",)),
                ("infoscale.64k-seq-r100", ("no (unfit)", "Reads alone")),
                ("infoscale.64k-seq-rw50", ("yes (workload)",)),
                ("infoscale.64k-seq-w100", ("yes (workload)",)),
            ),
        ),
        (
            _BUFFERS,
            "S001: for UDP, batch work, many writes in large blocks; one path has one size",
            (
                ("infoscale.64k-seq-rw50", ("yes", "--set bytes=4194304")),
                ("infoscale.4k-seq-rw50", ("yes", "--set bytes=4194304")),
                ("fss-cross-zone", ("yes", "--set bytes=4194304")),
            ),
        ),
    )
    for workload, says in rows
)

_TUNINGS: Final = (
    Case(
        "configuration 3, 4 KiB sequential, half reads",
        "S001: MTU 9000 was the best",
        _TCP,
        recommended(_JUMBO, "infoscale.4k-seq-rw50"),
        ("jumbo-frames: yes",),
    ),
    Case(
        "configuration 3, what is set",
        "S001: MTU 1500 to 9000; TCP sizes its own buffers",
        _TCP,
        planned("infoscale-fss-tcp"),
        ("link:eth1:mtu 1500 → 9000", "ip_local_reserved_ports  → 50000"),
        ("rmem", "llt:highwater"),
    ),
    Case(
        "configuration 4, 64 KiB sequential, half reads",
        "S001: the buffers were slightly the best",
        _UDP,
        recommended(_BUFFERS, "infoscale.64k-seq-rw50"),
        ("socket-buffers-8m: yes", "--set bytes=851968"),
    ),
    Case(
        "configuration 4, what is set",
        "S001: buffers of four times the default (212,992), MTU 9000",
        _UDP,
        planned("infoscale-fss-udp"),
        (
            "sysctl:net.core.rmem_default 212992 → 851968",
            "sysctl:net.core.wmem_max 212992 → 851968",
            "link:eth1:mtu 1500 → 9000",
            "link:eth2:mtu 1500 → 9000",
        ),
        ("llt:highwater",),
    ),
    Case(
        "configuration 5, 4 KiB sequential, half reads",
        "S001: LLT's marks doubled were the best",
        _ZONES,
        recommended(_MARKS, "fss-cross-zone"),
        ("llt-highwater-doubled: yes",),
    ),
    Case(
        "configuration 5, what is set",
        "S001: lltconfig -F highwater:2000 and rporthiswater:2000, at once",
        _ZONES,
        planned("infoscale-fss-zones"),
        (*_DOUBLED, "link:eth1:mtu 1500 → 9000", "the same value on every node"),
    ),
    Case(
        "the size of the buffers of a path, with its numbers",
        'S001: "four times the default", and prints 8 MiB, which is 39 times',
        _ZONES,
        reasons(_BUFFERS, "fss-cross-zone"),
        ("LLT window 50 packets × 17,039 bytes = 851,950", "2 × 10,000 Mbit/s of eth1 × 1.16 ms / 8 = 2,900,000"),
    ),
    Case(
        "the sysctl block as printed",
        "S001: 8 MiB for seven keys, the TCP ones in quotes, after a reboot",
        _UDP,
        planned(_BUFFERS),
        (
            "sysctl:net.core.rmem_max 212992 → 8388608",
            "sysctl:net.ipv4.tcp_rmem 4096 131072 6291456 → 4096 131072 8388608",
        ),
        ('"', "reboot"),
    ),
    Case(
        "kernel with larger buffers",
        "S001: its block would lower them",
        node(sysctl={"net/core/rmem_max": "33554432", "net/core/rmem_default": "16777216"}),
        planned("infoscale-fss-udp"),
        ("sysctl:net.core.rmem_max: already sufficient", "sysctl:net.core.rmem_default: already sufficient"),
    ),
    Case(
        "small writes",
        "S001: for small writes larger frames carry less well",
        _TCP,
        recommended(_JUMBO, "block=512,access=random,write=80%,transport=tcp,replication=sync"),
        ("no (unfit)", "fit into a frame of today"),
    ),
    Case(
        "a round trip alone",
        "S001: a long round trip and many writes",
        _ZONES,
        recommended(_MARKS, "rtt=1.16ms"),
        ("perhaps (intent)",),
    ),
    Case(
        "LLT's marks inside one zone, no round trip declared",
        "S001: inside one zone over UDP the buffers were the best; the marks were it across zones",
        _UDP,
        recommended(_MARKS, "infoscale.64k-seq-rw50"),
        ("perhaps (workload)", "best tuning was the buffers (UDP)"),
    ),
    Case(
        "LLT packets over MTU 1500, links that cannot be raised",
        "S001: MTU larger than the block, so that it is not cut",
        node(most=1500),
        found("llt.mtu-fragments"),
        ("advisor plan infoscale-fss-udp", "set the MTU field"),
        ("(link1 1472",),
    ),
    Case(
        "few writes over a short round trip",
        "S001: flow control fires where the round trip is long",
        _UDP,
        recommended(_MARKS, "replication=sync,write=10%,rtt=100us"),
        ("no (unfit)", "do not fill LLT's queues"),
    ),
    Case(
        "LLT packets over MTU 1500",
        "S001: MTU larger than the block, so that it is not cut",
        _UDP,
        found("llt.mtu-fragments"),
        ("6 IP fragments each", "advisor plan infoscale-fss-udp"),
    ),
    Case(
        "LLT packets over MTU 1500, shared disks",
        "S001: no write crosses the heartbeat",
        _SHARED,
        found("llt.mtu-fragments"),
        ("no finding",),
    ),
)

_MARKED: Final = (
    Case(
        "lltconfig -F query as printed",
        "S001: highwater 1000, rporthiswater 1000, window 50",
        _UDP,
        fact("llt"),
        ('"highwater": 1000', '"rporthighwater": 1000', '"window": 50'),
    ),
    Case(
        "the paper followed by hand: plan",
        "S001: the marks to twice the default, once",
        node(far=True, live=(2000, 2000), lines=_BY_HAND),
        planned(_MARKS),
        ("llt:highwater: already set", "llt:rporthighwater: already set"),
        ("4000",),
    ),
    Case(
        "the paper followed by hand: scan",
        "S001: the marks to twice the default, once",
        node(far=True, live=(2000, 2000), lines=_BY_HAND),
        found("llt.flow-control-default", "fss-cross-zone"),
        ("no finding",),
    ),
    Case(
        "the manuals' default",
        "S001: twice the default; the manuals say 200",
        node(live=(200, 200)),
        planned(_MARKS),
        ("llt:highwater 200 → 400", "llt:rporthighwater 200 → 400"),
    ),
    Case(
        "marks that point to two defaults",
        "S001: twice the default; a release has one for both marks",
        node(live=(200, 1000)),
        planned(_MARKS),
        ("one default for both marks", "highwater 200 and rporthighwater 1,000", "--set default="),
        ("→",),
    ),
    Case(
        "marks that point to two defaults: scan",
        "S001: twice the default; a release has one for both marks",
        node(live=(200, 1000), far=True),
        found("llt.flow-control-default", "fss-cross-zone"),
        ("Default high-water marks of LLT are unknown",),
        ("is at its default",),
    ),
    Case(
        "a mark that is not a number of packets",
        "S001: twice the default",
        node(live=(1000, -1)),
        planned(_MARKS),
        ("lltconfig prints -1 for rporthighwater", "--set default="),
        (": :",),
    ),
    Case(
        "a set-flow line that is not a number",
        "S001: twice the default; a line of the administrator's is not overwritten in silence",
        node(lines=("set-flow highwater:abc",)),
        planned(_MARKS),
        ('the line "set-flow highwater:abc" of /etc/llttab', "--set default="),
    ),
    Case(
        "another value in /etc/llttab",
        "S001: twice the default, which this value is not",
        node(live=(1500, 1500), lines=("set-flow highwater:1500", "set-flow rporthighwater:1500")),
        planned(_MARKS),
        ("the administrator set highwater to 1,500", "cannot be known", "--set default="),
        ("→",),
    ),
    Case(
        "another value in /etc/llttab, and the default said",
        "S001: twice the default",
        node(live=(1500, 1500), lines=("set-flow highwater:1500", "set-flow rporthighwater:1500")),
        planned(_MARKS, default="1000"),
        ("llt:highwater 1500 → 2000", "llt:rporthighwater 1500 → 2000"),
    ),
    Case(
        "4000 in /etc/llttab, and the default said",
        "S001: twice the default; a larger queue stays",
        node(live=(4000, 4000), lines=("set-flow highwater:4000", "set-flow rporthighwater:4000")),
        planned(_MARKS, default="1000"),
        ("llt:highwater: already set",),
        ("→",),
    ),
    Case(
        "2000 set with lltconfig alone",
        "S001: at once; a restart of LLT loses it",
        node(live=(2000, 2000)),
        planned(_MARKS),
        ("no set-flow line of /etc/llttab keeps it", "--set default="),
        ("4000",),
    ),
    Case(
        "2000 set with lltconfig alone, and the default said",
        "S001: twice the default; kept over a restart",
        node(live=(2000, 2000)),
        planned(_MARKS, default="1000"),
        ("llt:highwater 2000 → 2000",),
    ),
)

_LINKS: Final = (
    Case(
        "two private links and link-lowpri on the public one: jumbo-frames",
        "S001: the MTU of the heartbeat that carries the mirror (eth1)",
        node("ether", low="eth0"),
        planned(_JUMBO),
        (
            "link:eth1:mtu 1500 → 9000",
            "link:eth2:mtu 1500 → 9000",
            "link:eth0:mtu: carries LLT's low-priority link pub",
        ),
        ("default route:", "refused"),
    ),
    Case(
        "two private links and link-lowpri on the public one: infoscale-fss-udp",
        "S001: the MTU of the heartbeat that carries the mirror",
        node(low="eth0"),
        planned("infoscale-fss-udp"),
        ("link:eth1:mtu 1500 → 9000", "heartbeats only: left out"),
        ("link:eth0:mtu 1500",),
    ),
    Case(
        "link-lowpri at 1500, private links at 9000",
        "S001: the heartbeat that carries the mirror is what counts",
        node(low="eth0", mtu=9000),
        found("llt.mtu-fragments"),
        ("no finding",),
    ),
    Case(
        "a driver that allows no 9000",
        "S001: a larger MTU, where there is one",
        node(most=1500),
        planned("infoscale-fss-udp"),
        (
            "file:/etc/llttab:link.link1.mtu - → 1472",
            "file:/etc/llttab:link.link2.mtu - → 1472",
            "manual step: restart LLT",
        ),
        ("link:eth1:mtu 1500 →",),
    ),
    Case(
        "switches that carry 1500",
        "S001: a larger MTU, where there is one",
        _UDP,
        planned("infoscale-fss-udp", mtu="1500"),
        ("file:/etc/llttab:link.link1.mtu - → 1472",),
    ),
    Case(
        "ports of LLT, others reserved already",
        "S001: the heartbeat is UDP (ports 50000 and 50001)",
        node(reserved="8080,9148-9150"),
        planned("infoscale-fss-udp"),
        ("sysctl:net.ipv4.ip_local_reserved_ports 8080,9148-9150 → 8080,9148-9150,50000-50001",),
    ),
    Case(
        "ports of LLT, as a finding",
        "S001: the heartbeat is UDP (ports 50000 and 50001)",
        _UDP,
        found("llt.port-not-reserved"),
        ("advisor plan infoscale-fss-udp",),
    ),
    Case(
        "one TCP link",
        "S001: configuration 3 has a single heartbeat",
        _TCP,
        found("llt.single-link"),
        ("(info)", "link-lowpri"),
    ),
    Case(
        "four nodes",
        "S001: two nodes; the queues must not exceed memory",
        node(nodes=4, listed=MIRRORED),
        planned(_MARKS),
        _DOUBLED,
    ),
)

_IDLE: Final = (
    *(
        Case(
            f"{title}: the MTU of links that carry no write",
            "S001: the tunings are for virtual mirrors; nothing of this goes over the heartbeat",
            host,
            found("links.mtu-below-range"),
            ("no finding",),
        )
        for title, host in (("shared disk", _SHARED), ("single node", _SINGLE))
    ),
    Case(
        "shared disk: jumbo-frames, no link named",
        "S001: the tunings are for virtual mirrors; nothing of this goes over the heartbeat",
        _SHARED,
        planned(_JUMBO),
        ("link:eth1:mtu: carries LLT, and no write crosses LLT here", "link:eth2:mtu: carries LLT"),
        ("→",),
    ),
    Case(
        "shared disk: jumbo-frames, a heartbeat named",
        "S001: the tunings are for virtual mirrors; nothing of this goes over the heartbeat",
        _SHARED,
        planned(_JUMBO, links="eth2"),
        ("link:eth2:mtu 1500 → 9000", "no write crosses LLT here", "cross eth2"),
        ("eth1",),
    ),
    Case(
        "single node: jumbo-frames",
        "S001: the tunings are for virtual mirrors; there is no heartbeat",
        node(links=(), listed=LOCAL, spare=("eth3",)),
        planned(_JUMBO),
        ("link:eth3:mtu 1500 → 9000", "no write crosses LLT here, as this host is a single node"),
    ),
    Case(
        "shared disk: LLT's marks",
        "S001: the tunings are for virtual mirrors; nothing of this goes over the heartbeat",
        _SHARED,
        planned(_MARKS),
        (*_DOUBLED, "no write crosses LLT here"),
    ),
    Case(
        "jumbo-frames with an empty list of links",
        "S001: the MTU of the heartbeat that carries the mirror",
        _UDP,
        planned(_JUMBO, links=""),
        ("refused: --set links: no link is named",),
    ),
    *(
        Case(
            f"LLT over Ethernet: the buffers{', declared' if workload else ''}",
            "S001: the buffers are for UDP; Ethernet frames of LLT pass no socket",
            node("ether"),
            recommended(_BUFFERS, workload),
            ("no (unfit)", "past the sockets"),
        )
        for workload in (None, "infoscale.64k-seq-rw50")
    ),
    *(
        Case(
            f"buffers of four times the default already: {title}",
            "S001: four times the default",
            node(sysctl=_SIZED),
            ask,
            says,
        )
        for title, ask, says in (
            ("scan", found("buffers.below-profile"), ("no finding",)),
            ("recommend", recommended(_BUFFERS), ("no (unfit)", "851,968 bytes) already")),
        )
    ),
    Case(
        "mirrors: LLT's marks",
        "S001: for a long round trip and many writes",
        _ZONES,
        planned(_MARKS),
        _DOUBLED,
        ("no write crosses",),
    ),
)

CASES: Final[tuple[Case, ...]] = (*_CONFIGURATIONS, *_THREE, *_TUNINGS, *_NINE, *_MARKED, *_LINKS, *_IDLE, *VOLUMES)
