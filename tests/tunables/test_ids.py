"""Tunable ids: what each names, and that a hostile one names nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import UsageError
from advisor.host import ReadFile
from advisor.tunables import all_kinds, parse_tunable
from tests.each import for_each

IDS = {
    "sysctl:net.core.rmem_max": "/proc/sys/net/core/rmem_max",
    "sysctl:net.ipv4.conf.eth0/10.mtu": "/proc/sys/net/ipv4/conf/eth0.10/mtu",
    "link:eth1:mtu": "/sys/class/net/eth1/mtu",
    "link:bond0.100:mtu": "/sys/class/net/bond0.100/mtu",
    "link:em\u2003x:mtu": "/sys/class/net/em\u2003x/mtu",
    "irq:42:affinity": "/proc/irq/42/smp_affinity_list",
    "irq:0:affinity": "/proc/irq/0/smp_affinity_list",
}


@pytest.mark.parametrize(("identity", "path"), IDS.items())
def test_an_id_is_a_place(identity: str, path: str) -> None:
    one = parse_tunable(identity)
    assert one.id == identity
    assert one.probe == ReadFile(path)


@pytest.mark.parametrize(
    "identity", ["llt:highwater", "unit:a@b\\x2dc.service:numa", "unit:beegfs-storage@a.service:numa"]
)
def test_an_id_of_what_a_command_answers(identity: str) -> None:
    assert parse_tunable(identity).id == identity


@for_each(
    "identity",
    [
        *("", ":", "sysctl", "sysctl:", "Sysctl:vm.swappiness", "nix:1", " sysctl:vm.swappiness"),
        *("sysctl:../../etc/passwd", "sysctl:/etc/passwd", "sysctl:.a", "sysctl:a.", "sysctl:a b", "sysctl:a\n"),
        # A slash stands for a dot, so that two of them would lead to the parent directory.
        *("sysctl:net.//.//.//.etc.passwd", "sysctl:a.//", "sysctl:a./.b", "sysctl:a//b"),
        # sysctl(8) takes these for net.core.rmem_max; one thing has one id.
        *("sysctl:net/core/rmem_max", "sysctl:kernel/sysrq"),
        *("sysctl:a\0b", "sysctl:$(id)", "sysctl:a;b", "sysctl:*"),
        # What the kernel would run as root.
        *(
            "sysctl:kernel.core_pattern",
            "sysctl:kernel.modprobe",
            "sysctl:kernel.poweroff_cmd",
            "sysctl:kernel.hotplug",
        ),
        *("sysctl:fs.binfmt_misc.register", "sysctl:kernel.usermodehelper.bset"),
        *("link:eth1", "link:eth1:speed", "link::mtu", "link:..:mtu", "link:.:mtu", "link:a/b:mtu", "link:a b:mtu"),
        *("link:eth1:mtu\n", "link:a\0b:mtu", "link:a\nb:mtu", "link:sixteen-letters-:mtu", "link:öööööööö:mtu"),
        *("irq:1", "irq:-1:affinity", "irq:01:affinity", "irq:1:affinity\n", "irq:٣:affinity", "irq:99999999:affinity"),
        *("llt:", "llt:a:b", "llt:-F", "llt:HIGH", "llt:a b", "llt:highwater\n"),
        *("unit:a:numa", "unit:a.mount:numa", "unit:../a.service:numa", "unit:a/b.service:numa", "unit:a.service"),
        *("unit:.service:numa", "unit:a b.service:numa", "unit:a.service\n:numa"),
        "unit:" + "a" * 248 + ".service:numa",
    ],
)
def test_an_id_that_is_refused(identity: str) -> None:
    with pytest.raises(UsageError, match="is not a tunable") as caught:
        parse_tunable(identity)
    assert caught.value.hint


@given(
    st.builds(
        "{}:{}{}".format,
        st.sampled_from(sorted(kind.name for kind in all_kinds())),
        st.text(),
        st.sampled_from(["", ":mtu", ":numa"]),
    )
)
def test_any_text(identity: str) -> None:
    try:
        one = parse_tunable(identity)
    except UsageError:
        return
    # The kernel takes a hyphen in the name of a module for an underscore.
    assert one.id == identity or one.id == f"module:{identity[7:].replace('-', '_')}"
    assert one.check_value("\0")
    path = one.probe.path if isinstance(one.probe, ReadFile) else "/"
    assert not {"", ".", ".."} & set(path.split("/")[1:-1])
    assert "\0" not in path


@pytest.mark.parametrize(
    ("identity", "good", "bad"),
    [
        (
            "sysctl:net.ipv4.tcp_rmem",
            ["4096 87380 8388608", "1 1 1"],
            ["10", "9 5 1", "", '"10"', "'1'", "1\n2", "1\0", "1\r2", "\x7f"],
        ),
        ("link:eth1:mtu", ["9000", "1"], ["", "0", "-1", "9000x", "٩٠٠٠", "9000\n", "12345678901"]),
        ("irq:1:affinity", ["0", "0-3,8"], ["", "x", "3-0", "0-", "-1", "99999999"]),
        ("llt:highwater", ["2000"], ["", "-1", "2k", "٢٠٠٠", "2000\n"]),
        (
            "unit:a.service:numa",
            ["NUMAPolicy=bind NUMAMask=0-1 CPUAffinity=numa", "NUMAPolicy=default NUMAMask= CPUAffinity="],
            [
                "",
                "NUMAPolicy=bind",
                "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa\nExecStart=/x",
                "NUMAPolicy=x NUMAMask=0 CPUAffinity=1",
            ],
        ),
    ],
)
def test_values_that_can_be(identity: str, good: list[str], bad: list[str]) -> None:
    one = parse_tunable(identity)
    assert [one.check_value(value) for value in good] == [None] * len(good)
    assert all(one.check_value(value) for value in bad)
