"""The cases of docs/systems/infoscale.md, on hosts built from the article's text."""

from __future__ import annotations

from typing import Final

from tests.articles import infoscale_hosts, table
from tests.articles.infoscale_hosts import LOCAL, SHARED, node
from tests.articles.infoscale_volumes import VOLUMES
from tests.articles.table import Case, found, planned, recommended
from tests.cases import read_cases

_JUMBO, _BUFFERS, _MARKS = "jumbo-frames", "socket-buffers-8m", "llt-highwater-doubled"

_SINGLE = node(links=(), listed=LOCAL)
_SHARED = node(listed=SHARED)
_TCP = node("tcp", links=("eth1",))
_UDP = node()
_ZONES = node(far=True, lines=("set-bcasthb 0", "set-arp 0"))
_DOUBLED = ("llt:highwater 1000 → 2000", "llt:rporthighwater 1000 → 2000")

_SIZED = {f"net/core/{end}_{which}": "851968" for end in ("rmem", "wmem") for which in ("default", "max")}

DATA = read_cases(__file__, table, infoscale_hosts, globals())

_CONFIGURATIONS: Final = DATA["_CONFIGURATIONS"]

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
    *DATA["_TUNINGS"],
    Case(
        "configuration 5, what is set",
        "S001: lltconfig -F highwater:2000 and rporthiswater:2000, at once",
        _ZONES,
        planned("infoscale-fss-zones"),
        (*_DOUBLED, "link:eth1:mtu 1500 → 9000", "the same value on every node"),
    ),
    *DATA["_TUNINGS_2"],
)

_MARKED: Final = DATA["_MARKED"]

_LINKS: Final = DATA["_LINKS"]

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
    *DATA["_IDLE"],
    Case(
        "shared disk: LLT's marks",
        "S001: the tunings are for virtual mirrors; nothing of this goes over the heartbeat",
        _SHARED,
        planned(_MARKS),
        (*_DOUBLED, "no write crosses LLT here"),
    ),
    *DATA["_IDLE_2"],
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
    *DATA["_IDLE_3"],
)

CASES: Final[tuple[Case, ...]] = (*_CONFIGURATIONS, *_THREE, *_TUNINGS, *_NINE, *_MARKED, *_LINKS, *_IDLE, *VOLUMES)
