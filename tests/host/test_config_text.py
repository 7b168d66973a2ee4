"""The canonical line of configuration files, kernel attributes and commands: alike in Python and in the scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.host import Missing
from advisor.host.probes import reduce
from tests.tunables.form_shell import SHELLS, read_by_both

BEEGFS = """# tuneNumWorkers = 99
tuneNumWorkers               = 12
connInterfacesFile           =
\ttuneTargetChooser=  random   ized\t
tuneNumWorkers=16
"""
CPF = """[Startup]
globals=9

[config]
MaxServers=2
 globals = 0,0,512 0
globals16=1
[ECP]
globals=7
"""
LLTTAB = "set-node a\n#set-arp 1\n\tset-arp   0 # keep\nset-cluster\t7\nset-arpx 5\nset-strictsrc\n"
SECTIONS = """\
devices {
  device {
    rr_min_io_rq 1000
    vendor "LIO-ORG"
    product disk1
  }
  device {
    vendor "NETAPP"
    product "LUN  C-Mode"
    rr_min_io_rq "8"
  }
  device {
    all_devs yes
    rr_min_io_rq 100
  }
  device {
    vendor IBM
  }
  device {
    vendor IBM
  }
}
multipaths {
  multipath {
    wwid 3600a
  }
  multipath {
    wwid 3600b
    rr_min_io_rq 4
  }
}
"""
LINKS = (
    "link a udp - udp 50000 1472 10.0.0.1 -\n\tlink-lowpri b\teth0 - ether - -\r\n#link c d - udp 1 2\n"
    "link d udp - udp 50000\nlink e udp - udp #50000 1 2\nlink f x - udp 1 2\nlink f x - udp 1 3\nlinks a b - udp 1 9\n"
)
MULTIPATH = """# defaults
defaults {
\tpath_selector "service-time  0" # "x"
\trr_weight uniform! }
    no_path_retry   12
}
devices { ! two of them
  device {
    vendor "A{}#!"
    path_checker tur
  }
}
multipaths {
  multipath {
    wwid 1
  }
  multipath {
    wwid 2
  }
}
"""
UNIT = "LoadState=loaded\n{}\n"
MODULES = "nvme_core 1 0 - Live 0x0\nzfs 9 1 a,b, Loading 0x0 (PO)\nold 1 0 -\n"
CONFIG = "# x\noptions nvme-core io_timeout=30 a\nalias nvme_core b=1\noptions nvme_core io_timeout=255\noptions x b=\n"
CMDLINE = 'BOOT_IMAGE=/v root=UUID=1=2 quiet hugepages=1 nosmt= hugepages=8 dyndbg="a b"\n'
STATE = "LoadState={}\nActiveState={}\nUnitFileState={}\n"
FLOW = """Current LLT flow control values (in packets):
  lowwater = 800
  highwater   =1000
  rportlowwater: 800
  rporthiswater = 1000
  strange-name = 7
  text = many
  huge = {}
""".format("9" * 5000)
NUMA = "LoadState=loaded\nNUMAPolicy={}\nNUMAMask={}\nCPUAffinity={}\nCPUAffinityFromNUMA={}\n"
ABSENT, UNREADABLE = "absent", "unreadable"
CASES = [
    ("4096\t131072\t6291456\n", "words", "4096 131072 6291456"),
    ("", "words", ""),
    (FLOW, "flow:highwater", "1000"),
    (FLOW, "flow:rporthighwater", "1000"),
    (FLOW, "flow:rportlowwater", "800"),
    (FLOW, "flow:text", ABSENT),
    (FLOW, "flow:huge", ABSENT),
    ("", "flow:highwater", ABSENT),
    (NUMA.format("n/a", "", "", "no"), "unit-numa", "NUMAPolicy=default NUMAMask= CPUAffinity="),
    (NUMA.format("bind", "0", "0-3", "yes"), "unit-numa", "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa"),
    (NUMA.format("bind", "0 2", "0-3 8", "no"), "unit-numa", "NUMAPolicy=bind NUMAMask=0,2 CPUAffinity=0-3,8"),
    ("LoadState=not-found\n", "unit-numa", ABSENT),
    ("none [mq-deadline] bfq", "selected", "mq-deadline"),
    ("always defer defer+madvise [madvise] never\n", "selected", "madvise"),
    ("none\n", "selected", "none"),
    ("a b", "selected", UNREADABLE),
    ("[a] [b]", "selected", UNREADABLE),
    ("[] b", "selected", UNREADABLE),
    ("", "selected", UNREADABLE),
    ("1000 (system)\n", "md-speed", "system"),
    ("200000 (local)\n", "md-speed", "200000"),
    ("200000\n", "md-speed", UNREADABLE),
    ("x (local)\n", "md-speed", UNREADABLE),
    ("1 (other)\n", "md-speed", UNREADABLE),
    ("Timers:\n  peerinact = 1600\nCurrent LLT Flow Control values\n  peertrouble = 1\n", "timer:peerinact", "1600"),
    ("Timers:\n  peerinact = 1600\nCurrent LLT Flow Control values\n  peertrouble = 1\n", "timer:peertrouble", ABSENT),
    (BEEGFS, "conf:tuneNumWorkers", "16"),
    (BEEGFS, "conf:connInterfacesFile", "(empty)"),
    (BEEGFS, "conf:tuneTargetChooser", "random ized"),
    (BEEGFS, "conf:tuneFileReadSize", "(unset)"),
    ("node.conn[0].timeo.noop_out_interval = 5\r\n", "conf:node.conn[0].timeo.noop_out_interval", "5"),
    (CPF, "cpf:config/globals", "0,0,512 0"),
    (CPF, "cpf:config/wdparm", "(unset)"),
    (CPF, "cpf:ECP/globals", "7"),
    (CPF, "cpf:none/globals", "(unset)"),
    (LLTTAB, "directive:set-arp", "0"),
    (LLTTAB, "directive:set-strictsrc", "(empty)"),
    (LLTTAB, "directive:set-bcasthb", "(unset)"),
    (LINKS, "llttab-mtu:a", "1472"),
    (LINKS, "llttab-mtu:b", "-"),
    (LINKS, "llttab-mtu:c", UNREADABLE),
    (LINKS, "llttab-mtu:d", ABSENT),
    (LINKS, "llttab-mtu:e", ABSENT),
    (LINKS, "llttab-mtu:f", UNREADABLE),
    (MULTIPATH, "multipath:defaults/path_selector", "service-time 0"),
    (MULTIPATH, "multipath:defaults/rr_weight", "uniform"),
    (MULTIPATH, "multipath:defaults/no_path_retry", "12"),
    (MULTIPATH, "multipath:defaults/path_checker", "(unset)"),
    (MULTIPATH, "multipath:devices/device/path_checker", "tur"),
    (MULTIPATH, "multipath:devices/device/vendor", "A{}#!"),
    (MULTIPATH, "multipath:multipaths/multipath/wwid", UNREADABLE),
    (SECTIONS, "multipath:devices/device[LIO-ORG,disk1]/rr_min_io_rq", "1000"),
    (SECTIONS, "multipath:devices/device[NETAPP,LUN C-Mode]/rr_min_io_rq", "8"),
    (SECTIONS, "multipath:devices/device[NETAPP,LUN C-Mode]/prio", "(unset)"),
    (SECTIONS, "multipath:devices/device[NETAPP,LUN C-Mode]/all_devs", "(unset)"),
    (SECTIONS, "multipath:devices/device[all_devs]/rr_min_io_rq", "100"),
    (SECTIONS, "multipath:devices/device[,]/rr_min_io_rq", "(unset)"),
    (SECTIONS, "multipath:devices/device[IBM,]/rr_min_io_rq", UNREADABLE),
    (SECTIONS, "multipath:devices/device/rr_min_io_rq", UNREADABLE),
    (SECTIONS, "multipath:multipaths/multipath[3600b]/rr_min_io_rq", "4"),
    (SECTIONS, "multipath:multipaths/multipath[3600c]/wwid", "(unset)"),
    ("defaults {\n a 1\n}\ndefaults {\n a 2\n}\n", "multipath:defaults/a", "2"),
    ("defaults {\n a 1\n", "multipath:defaults/a", UNREADABLE),
    ("defaults { a 1 }\n", "multipath:defaults/a", UNREADABLE),
    ("}\n", "multipath:defaults/a", UNREADABLE),
    ('defaults {\n a "1\n}\n', "multipath:defaults/a", UNREADABLE),
    ('defaults {\n a ""\n}\n', "multipath:defaults/a", "(empty)"),
    (UNIT.format("LimitNOFILE=524288\nLimitNOFILESoft=1024"), "unit-setting:LimitNOFILE", "1024:524288"),
    (UNIT.format("LimitNOFILE=524288\nLimitNOFILESoft=524288"), "unit-setting:LimitNOFILE", "524288"),
    (UNIT.format("LimitMEMLOCK=infinity\nLimitMEMLOCKSoft=infinity"), "unit-setting:LimitMEMLOCK", "infinity"),
    (UNIT.format("LimitNOFILE=18446744073709551615"), "unit-setting:LimitNOFILE", "infinity"),
    (UNIT.format("IOWeight=18446744073709551615"), "unit-setting:IOWeight", "(unset)"),
    (UNIT.format("IOWeight=[not set]"), "unit-setting:IOWeight", "(unset)"),
    (UNIT.format("Nice=-5"), "unit-setting:Nice", "-5"),
    (UNIT.format("CPUAffinity=\nCPUAffinityFromNUMA=no"), "unit-setting:CPUAffinity", "(unset)"),
    (UNIT.format("CPUAffinity=0-3\nCPUAffinityFromNUMA=yes"), "unit-setting:CPUAffinity", "numa"),
    (UNIT.format("CPUAffinity=0 1 2 3 8"), "unit-setting:CPUAffinity", "0-3,8"),
    (UNIT.format("CPUAffinity=0-1 2 4-5 6-9"), "unit-setting:CPUAffinity", "0-2,4-9"),
    (UNIT.format("CPUAffinity=0f00000000000080"), "unit-setting:CPUAffinity", "0-3,63"),
    (UNIT.format("Nice=1"), "unit-setting:IOWeight", ABSENT),
    (UNIT.format("CPUAffinity="), "unit-numa", "CPUAffinity="),
    (UNIT.format("MainPID=7"), "unit-numa", "CPUAffinity="),
    (UNIT.format("CPUAffinity=0 1 2 48 49"), "unit-numa", "CPUAffinity=0-2,48-49"),
    (UNIT.format("CPUAffinity=ffffff000000ffff" + "ff00000000000000"), "unit-numa", "CPUAffinity=0-23,48-71"),
    (
        UNIT.format("NUMAPolicy=bind\nNUMAMask=0 2\nCPUAffinity=0 1 8"),
        "unit-numa",
        "NUMAPolicy=bind NUMAMask=0,2 CPUAffinity=0-1,8",
    ),
    (
        UNIT.format("NUMAPolicy=n/a\nNUMAMask=\nCPUAffinity=\nCPUAffinityFromNUMA=no"),
        "unit-numa",
        "NUMAPolicy=default NUMAMask= CPUAffinity=",
    ),
    ("LoadState=not-found\nNice=0\n", "unit-setting:Nice", ABSENT),
    ("a [b] c\n", "choice", "b"),
    ("none (voluntary) full \n", "choice", "voluntary"),
    ("[only]", "choice", "only"),
    ("[a] [b]", "choice", "[a] [b]"),
    ("[a b] c", "choice", "[a b] c"),
    ("[] (a) b", "choice", "a"),
    ("1 2\t3\n", "choice", "1 2 3"),
    ("", "choice", ""),
    (" 2000000000\n", "number", "2000000000"),
    ("-1", "number", "-1"),
    ("1 2", "number", UNREADABLE),
    ("", "number", UNREADABLE),
    ("0x10", "number", UNREADABLE),
    (MODULES, "module:nvme_core", "loaded"),
    (MODULES, "module:nvme", "unloaded"),
    (MODULES, "module:zfs", UNREADABLE),
    (MODULES, "module:old", "loaded"),
    ("", "module:a", "unloaded"),
    (CONFIG, "module-option:nvme_core:io_timeout", "255"),
    (CONFIG, "module-option:nvme_core:a", "(set)"),
    (CONFIG, "module-option:nvme_core:b", "(unset)"),
    (CONFIG, "module-option:x:b", "(set)"),
    (CMDLINE, "cmdline:hugepages", "8"),
    (CMDLINE, "cmdline:quiet", "(set)"),
    (CMDLINE, "cmdline:nosmt", "(set)"),
    (CMDLINE, "cmdline:root", "UUID=1=2"),
    (CMDLINE, "cmdline:page", "(unset)"),
    (STATE.format("loaded", "active", "enabled"), "unit-state", "enabled active"),
    (STATE.format("loaded", "failed", "disabled"), "unit-state", "disabled inactive"),
    (STATE.format("loaded", "reloading", "enabled-runtime"), "unit-state", "enabled-runtime active"),
    (STATE.format("masked", "inactive", "masked"), "unit-state", "masked inactive"),
    (STATE.format("loaded", "inactive", ""), "unit-state", "static inactive"),
    (STATE.format("loaded", "activating", "enabled"), "unit-state", UNREADABLE),
    (STATE.format("loaded", "inactive", "enabled") + "SystemState=initializing", "unit-state", "enabled active"),
    (STATE.format("loaded", "active", "disabled") + "SystemState=initializing", "unit-state", "disabled inactive"),
    (STATE.format("loaded", "inactive", "static") + "SystemState=initializing", "unit-state", "static inactive"),
    (STATE.format("loaded", "inactive", "enabled") + "SystemState=running", "unit-state", "enabled inactive"),
    (STATE.format("not-found", "inactive", ""), "unit-state", ABSENT),
    ("", "unit-state", ABSENT),
]


@pytest.mark.parametrize("form", sorted({form.partition(":")[0] for _, form, _ in CASES}))
def test_one_line_in_both_languages(form: str, tmp_path: Path) -> None:
    cases = [case for case in CASES if case[1].partition(":")[0] == form]
    for text, name, value in cases:
        found = reduce(text.rstrip(" \t\r\n"), name)
        assert (found.state if isinstance(found, Missing) else found) == value, (name, text)
    listed = [(name, text.encode()) for text, name, _ in cases]
    for shell in SHELLS:
        for name, content, by_python, by_shell in read_by_both(tmp_path, listed, shell):
            assert by_python == by_shell, (name, content)
