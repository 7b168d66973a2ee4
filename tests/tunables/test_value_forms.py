"""Each form of a value is read alike by Python and by the scripts' sh and awk, whatever a file or a command gives.

`TEXTS` has real contents for each form; the examples are these with pieces inserted, removed and exchanged. All
examples of a batch are read by one process of each shell.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from advisor.host import Probe, probes
from advisor.tunables import all_kinds, parse_tunable
from tests.tunables import test_link_texts, test_queue_texts
from tests.tunables.form_shell import NOTHING, SHELLS, read_by_both

UNIT = "LoadState=loaded\n"
LLT = """Current LLT flow control values (in packets):
  lowwater = 800
  highwater   =1000
  rportlowwater: 800
  rporthiswater = 0900
  window = -7
  huge = 123456789012345678
"""
TIMERS = """Current LLT timer values (.01 sec units):
  heartbeat   = 50
  peerinact   = 1600
Current LLT flow control values (in packets):
  highwater = 7
"""
MULTIPATH = """# defaults
defaults {
\tpath_selector "service-time  0" # "x"
    no_path_retry   12
}
devices { ! two of them
  device {
    vendor "NETAPP"
    product "LUN  C-Mode"
    path_checker tur
  }
  device {
    all_devs yes
    path_checker directio
  }
}
"""
CPF = "[Startup]\nglobals=9\n\n[config]\nMaxServers=2\n globals = 0,0,512 0\nglobals16=1\n[ECP]\nglobals=7\n"
LLTTAB = (
    "set-node a\n#set-arp 1\n\tset-arp   0 # keep\nset-cluster\t7\nlink a udp - udp 50000 1472 10.0.0.1 -\n"
    "\tlink-lowpri b\teth0 - ether - -\r\n#link c d - udp 1 2\nlink e udp - udp #50000 1 2\n"
)
ADDRESSES = (
    "2: eth0    inet 192.0.2.1/24 brd 192.0.2.255 scope global eth0\\       valid_lft forever preferred_lft forever\n"
    "2: eth0    inet6 2001:db8::1/64 scope global noprefixroute \\       valid_lft forever preferred_lft forever\n"
    "2: eth0    inet6 fe80::1/64 scope link \n"
)
ROUTES = (
    "default via 192.0.2.254 proto static metric 100 linkdown \n"
    "192.0.2.0/24 proto kernel scope link src 192.0.2.1 \n"
    "broadcast 192.0.2.255 table local proto kernel scope link src 192.0.2.1 \n"
    "2001:db8::/64 proto kernel metric 256 pref medium\n"
    "fe80::/64 proto kernel metric 256 pref medium\n"
    "198.51.100.0/24 via 192.0.2.2 expires 30sec offload\n"
)
QDISCS = (
    "qdisc mq 0: root \nqdisc fq_codel 0: parent :2 limit 10240p flows 1024\n"
    "qdisc fq_codel 0: parent :1 limit 10240p flows 1024\nqdisc clsact ffff: parent ffff:fff1 \n"
)
RSS = (
    "RX flow hash indirection table for eth0 with 4 RX ring(s):\n"
    "    0:      0     1     2     3     0     1     2     3\n"
    "    8:      0     1     2     3     0     1     2     3\nRSS hash key:\n6d:5a:56:da\n"
)
MODPROBE = (
    "# x\noptions nvme-core io_timeout=30 a\nalias nvme_core b=1\noptions nvme_core io_timeout=255\noptions x b=\n"
)

RULES = (
    'ACTION!="remove", IMPORT{db}="ADVISOR_A_1"\nKERNEL=="sd*", ENV{ADVISOR_A_1}=="", '
    'ENV{ADVISOR_A_1}="$attr{queue/scheduler}", ATTR{queue/scheduler}="none"\n'
    '# ENV{ADVISOR_C_3}="$attr{x}", ATTR{x}="1"\n'
    'ENV{ADVISOR_B_2}=="", ATTR{queue/nr_requests}=="?|[1-3]?", ENV{ADVISOR_B_2}="$attr{queue/nr_requests}", '
    'ATTR{queue/nr_requests}="40"\n'
)

TEXTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "words": (("4096\t131072\t6291456\n", "60\n", "bbr\n", ""), ("",)),
    "flow": ((LLT,), ("highwater", "rporthighwater", "rportlowwater", "window", "huge")),
    "timer": ((TIMERS, LLT), ("peerinact", "heartbeat", "highwater")),
    "unit-numa": (
        (
            UNIT + "NUMAPolicy=bind\nNUMAMask=0 2\nCPUAffinity=0-3 8\nCPUAffinityFromNUMA=no\n",
            UNIT + "NUMAPolicy=n/a\nNUMAMask=\nCPUAffinity=\nCPUAffinityFromNUMA=yes\n",
            UNIT + "CPUAffinity=0 1 2 48 49\n",
            UNIT + "CPUAffinity=ffffff000000ffffff00000000000000\n",
        ),
        ("",),
    ),
    "unit-setting": (
        (
            UNIT + "LimitNOFILE=524288\nLimitNOFILESoft=1024\nIOWeight=[not set]\nNice=-5\n",
            UNIT + "LimitNOFILE=18446744073709551615\nIOWeight=18446744073709551615\nCPUAffinity=0-1 2 4-5\n",
            UNIT + "IOWeight=200\nCPUAffinity=0f00000000000080\nCPUAffinityFromNUMA=no\nNice=0\n",
        ),
        ("LimitNOFILE", "IOWeight", "CPUAffinity", "Nice"),
    ),
    "unit-state": (
        (
            UNIT + "ActiveState=active\nUnitFileState=enabled\nSystemState=running\n",
            UNIT + "ActiveState=inactive\nUnitFileState=disabled\nSystemState=initializing\n",
            "LoadState=masked\nActiveState=failed\nUnitFileState=masked\n",
        ),
        ("",),
    ),
    "selected": (("none [mq-deadline] kyber bfq\n", "always [madvise] never\n", "none\n"), ("",)),
    "choice": (("none (voluntary) full \n", "a [b] c\n", "1 2\t3\n"), ("",)),
    "number": ((" 2000000000\n", "-1\n"), ("",)),
    "md-speed": (("1000 (system)\n", "200000 (local)\n"), ("",)),
    "cpumask": (("00000000,0000000f\n", "ffffffff,80000001\n", "0\n", "F3"), ("",)),
    "qdisc": ((QDISCS, "qdisc fq ad4: root refcnt 5 limit 10000p\n", "qdisc noqueue 0: root refcnt 2 \n"), ("",)),
    "rss": ((RSS,), ("",)),
    "conf": (
        ("# n = 99\nn               = 12\nconnFile           =\n\tnode.a[0].b=  random   ized\t\nn=16\n",),
        ("n", "connFile", "node.a[0].b", "none"),
    ),
    "cpf": ((CPF,), ("config/globals", "ECP/globals", "Startup/globals", "none/globals")),
    "directive": ((LLTTAB,), ("set-arp", "set-cluster", "set-node", "link")),
    "llttab-mtu": ((LLTTAB,), ("a", "b", "c", "e")),
    "multipath": (
        (MULTIPATH,),
        (
            "defaults/path_selector",
            "devices/device[NETAPP,LUN C-Mode]/path_checker",
            "devices/device[all_devs]/path_checker",
        ),
    ),
    "addresses": ((ADDRESSES,), ("",)),
    "routes": ((ROUTES,), ("4", "6")),
    "module": (("nvme_core 1 0 - Live 0x0\nzfs 9 1 a,b, Loading 0x0 (PO)\nold 1 0 -\n",), ("nvme_core", "zfs", "old")),
    "module-option": ((MODPROBE,), ("nvme_core:io_timeout", "nvme_core:a", "x:b")),
    "udev-class": ((RULES,), ("ADVISOR_A_1", "ADVISOR_B_2", "ADVISOR_C_3")),
    "cmdline": (
        ('BOOT_IMAGE=/v root=UUID=1=2 quiet hugepages=1 nosmt= hugepages=8 a="b c"\n',),
        ("hugepages", "nosmt"),
    ),
}
"""Form: texts as they occur, and arguments of the form."""

ELSEWHERE = {"ethtool": test_link_texts.check_batch, "irqs": test_queue_texts.check_batch}
"""Forms whose probes are records of their own: the kernel answers Python by netlink, or several files are read."""

ODD = (
    *(" ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1f", "\x7f", "\x85", "\xa0", "\u1680", "\u2028", "\u3000"),
    *("é", "１", "٣", "\U0001f600"),
    *(
        "0",
        "007",
        "010",
        "1",
        "9" * 19,
        "-",
        "+",
        "=",
        ":",
        ",",
        ";",
        ".",
        "/",
        "\\",
        "'",
        '"',
        "$x",
        "`",
        "%s",
        "\\n",
        "*",
    ),
    *("[", "]", "(", ")", "{", "}", "#", "!", "a", "_", "0x1f", "1e3", "inf", "nan"),
)


NEVER_READ = {
    "conf:none",
    "cpf:none/globals",
    "llttab-mtu:c",
    "llttab-mtu:e",
    "timer:highwater",
    "module:zfs",
    "udev-class:ADVISOR_C_3",
}
"""Of `TEXTS`, what is not there or cannot be read."""


def mutated(text: str, edits: list[tuple[int, int, str | None]]) -> str:
    """The text after each edit: a piece inserted, or (None) a part of the text that is there moved."""
    for start, length, piece in edits:
        at = start % (len(text) + 1)
        if piece is None:
            text = text[:at] + text[at + length :] + text[at : at + length] * (length % 3)
        else:
            text = text[:at] + piece + text[at + length % 4 :]
    return text


def examples(form: str) -> st.SearchStrategy[tuple[str, bytes]]:
    texts, arguments = TEXTS[form]
    edit = st.tuples(st.integers(0, 400), st.integers(0, 12), st.none() | st.sampled_from(ODD))
    words = sorted({word for text in texts for word in text.split()})
    known = st.tuples(st.integers(0, 400), st.just(0), st.sampled_from(words or [""]))
    made = st.builds(mutated, st.sampled_from(texts), st.lists(edit | known, max_size=5))
    lines = st.lists(st.lists(st.sampled_from([*words, *ODD[:4]]), max_size=8).map(" ".join), max_size=4)
    made |= lines.map("\n".join)
    named = [f"{form}:{argument}".removesuffix(":") for argument in arguments]
    return st.tuples(st.sampled_from(named), made.map(str.encode))


def test_each_form_that_a_kind_or_a_probe_has_is_tested() -> None:
    own = (vars(kind)["form"] for kind in get_args(Probe))
    fixed = {form.fget(None) for form in own if isinstance(form, property) and form.fget}
    of_kinds = {
        parse_tunable(identity).probe.form.partition(":")[0] for kind in all_kinds() for identity, _ in kind.examples
    }
    assert {*TEXTS, *ELSEWHERE} == {*probes.FORMS, *fixed}
    assert of_kinds <= {*TEXTS, *ELSEWHERE}


@pytest.mark.parametrize("form", TEXTS)
def test_the_examples_have_values(form: str, tmp_path: Path) -> None:
    """Two texts that nobody can read agree, too."""
    texts, arguments = TEXTS[form]
    listed = [(f"{form}:{name}".removesuffix(":"), text.encode()) for text in texts for name in arguments]
    for shell in SHELLS:
        found = read_by_both(tmp_path, listed, shell)
        assert all(by_python == by_shell for *_, by_python, by_shell in found)
        assert {name for name, _, by_python, _ in found if by_python not in (NOTHING, "(unset)", "")} >= {
            name for name, _ in listed
        } - NEVER_READ


def check_batch(where: Path, listed: list[tuple[str, bytes]]) -> None:
    for shell in SHELLS:
        for form, text, by_python, by_shell in read_by_both(where, listed, shell):
            assert by_python == by_shell, (shell[0], form, text)


@pytest.mark.parametrize("form", TEXTS)
def test_both_read_the_same(form: str, tmp_path: Path) -> None:
    # A failure names the text; to shrink the whole batch takes minutes.
    @settings(max_examples=3, derandomize=True, database=None, phases=[Phase.generate])
    @given(st.lists(examples(form), min_size=20, max_size=20))
    def check(listed: list[tuple[str, bytes]]) -> None:
        check_batch(tmp_path, listed)

    check()


@pytest.mark.thorough
@pytest.mark.parametrize("form", TEXTS)
def test_both_read_the_same_in_thousands_of_texts(form: str, tmp_path: Path) -> None:
    @settings(max_examples=40)
    @given(st.lists(examples(form), min_size=50, max_size=50))
    def check(listed: list[tuple[str, bytes]]) -> None:
        check_batch(tmp_path, listed)

    check()
