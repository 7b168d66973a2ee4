"""What is fuzzed: every public parser that the package has, found by introspection, and what else takes foreign bytes.

A parser is a public function named ``parse_…``. One that takes a single text or byte string is a target as it is; any
other needs an entry in `BY_HAND`, without which `tests/fuzz/test_fuzz.py` fails.
"""

from __future__ import annotations

import ast
import gzip
import importlib
import inspect
import io
import json
import pkgutil
import re
import socket
import struct
import tarfile
import tempfile
import typing
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, Final, NamedTuple, TypeGuard

import yaml

import advisor
from advisor.errors import AdvisorError, InvalidInputError, UsageError
from advisor.facts.block.smart_raid import parse_arcconf
from advisor.facts.block.stacked import parse_zpool_status
from advisor.facts.host_facts import Facts, scan
from advisor.facts.processors.cpulist import parse_allowed
from advisor.facts.settings.sysctl import parse_sysctl_file
from advisor.facts.text import parse_settings
from advisor.facts.tuned.files import parse_tuned_ini
from advisor.host import Completed, Host, Missing
from advisor.host.probes import reduce
from advisor.importers.pasted.forms import read_pasted
from advisor.limits.declared import parse_declared
from advisor.limits.machine_file import parse_machines
from advisor.limits.what_if import parse_changes
from advisor.observe.cgroups import parse_io_pairs, parse_io_table
from advisor.observe.network import parse_port_use
from advisor.observe.sample import parse_counts
from advisor.observe.tracing import decode_pages
from advisor.operations.muting import parse_muting, parse_until
from advisor.operations.severity import check_severity
from advisor.planning.records import Plan
from advisor.profiles.profile import parse_profile
from advisor.profiles.toml_text import lines_of
from advisor.proof import archive
from advisor.proof.covariates import parse_disk_bytes
from advisor.proof.live_source import parse_limits
from advisor.proof.own_command import LIVE_KINDS, CommandMetric, parse_metrics
from advisor.proof.pattern import parse_workload_file
from advisor.reach.echo import IP_RECVERR, IPV6_RECVERR, parse_reply, parse_said
from advisor.sizing.cloud import parse_prices
from advisor.sizing.records import parse_demand
from advisor.snapshot import archive as snapshot
from advisor.snapshot import tar as tarball
from advisor.snapshot.remote.stream import Stream
from advisor.transaction.journal import (
    Applied,
    Begun,
    Doing,
    Done,
    Entry,
    Left,
    Record,
    Undoing,
    Undone,
    decode_journal,
    encode_entry,
    replay_entries,
)
from advisor.tunables import FileEdit, apply_edit, mentions_key, parse_tunable
from tests import smart_documents as smart
from tests.fuzz import capture_stream
from tests.fuzz.conform import conforms
from tests.importers.hosts import machine
from tests.observe import trace

TESTS: Final = Path(__file__).parents[1]


class Target(NamedTuple):
    """``run`` takes the input and gives the result, ``hint`` is the type that it must have; None for any."""

    name: str
    run: Callable[[Any], object]
    takes: type[str] | type[bytes]
    raises: tuple[type[Exception], ...] = ()
    hint: Any = None


def _sysctl_file(text: str) -> object:
    return [parse_sysctl_file(text, "/etc/sysctl.d/x.conf", at_boot=at_boot) for at_boot in (True, False)]


def _demand(text: str) -> object:
    found = []
    for name in ("read", "write", "iops", "latency", "capacity"):
        with suppress(UsageError):
            found.append(parse_demand(**{name: text}))
    return found


def _live_metrics(text: str) -> tuple[CommandMetric, ...]:
    """What the limits may be of: metrics as they are given with --live, where the text holds any."""
    try:
        return parse_metrics(text.split("\n"), LIVE_KINDS)
    except UsageError:
        return parse_metrics(["host:disk-wait"], LIVE_KINDS)


def _tuned_ini(text: str) -> object:
    for is_variables in (True, False):
        sections = parse_tuned_ini(text, "tuned.conf", is_variables=is_variables)
        assert all(one.line >= 1 for options in sections.values() for one in options.values())
    return None


@cache
def _small_host() -> tuple[Host, Facts]:
    host = machine()
    return host, scan(host)


def _pasted(text: str) -> object:
    found = read_pasted(text, "x", *_small_host())
    assert all(one.line >= 1 for one in found.settings)
    return None


def _reduced(text: str) -> object:
    return [reduce(text, form) for form in ("words", "flow:highwater", "unit-numa")]


def _edited(data: bytes) -> object:
    """An edit is idempotent, is found again, and keeps what it has no business with."""
    edits = (
        FileEdit("/x", "sysctl", "net.core.rmem_max", "1"),
        FileEdit("/x", "section", "Link/", "MTUBytes=9000 RxChannels=4"),
        FileEdit("/x", "llttab-flow", "highwater", "2000"),
    )
    for edit in edits:
        once = apply_edit(data, edit)
        assert apply_edit(once, edit) == once
        assert mentions_key(once, edit)
    return None


def _journal(data: bytes) -> object:
    """As it is, and with every line signed again, so that what is in it is looked at."""
    signed = b"\n".join(_signed(line) for line in data.split(b"\n"))
    found = []
    for one in (data, signed):
        with suppress(InvalidInputError):
            found.append(replay_entries("0001", decode_journal(one, "journal")))
    return found


def _signed(line: bytes) -> bytes:
    body = line.partition(b" ")[2]
    return b"%08x %b" % (zlib.crc32(body), body) if line else b""


def _traced(data: bytes) -> object:
    """As pages, and as the events of one."""
    made = struct.pack("=QQ", 1 << 60, len(data)) + data
    pages = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    return [decode_pages(trace.layout(), one) for one in (pages, [made[:65536]])]


def _said(data: bytes) -> object:
    at = min(len(data), 36)
    forms = ((socket.IPPROTO_IP, IP_RECVERR), (socket.IPPROTO_IPV6, IPV6_RECVERR), (1, 2))
    return [parse_said([(level, kind, data[:at])], data[at:]) for level, kind in forms]


def _snapshot(data: bytes) -> object:
    """As it is, and with every header summed again, so that what it says is looked at."""
    for one in (data, _summed(data)):
        with tempfile.NamedTemporaryFile() as file, suppress(InvalidInputError):
            file.write(one)
            file.flush()
            host = snapshot.open_snapshot(Path(file.name))
            for path in ("/", "/sys", "/sys/a", "/proc/self"):
                host.read(path + "/f")
                host.readlink(path)
                assert conforms([*host.names(path)], list[str])
            assert isinstance(host.run(("ip", "-j")), Completed | Missing)
            host.ethtool("eth0", "rings")
    return None


def _proof(data: bytes) -> object:
    for one in (data, gzip.compress(data)):
        with tempfile.NamedTemporaryFile() as file, suppress(InvalidInputError):
            file.write(one)
            file.flush()
            archive.load_proof(file.name)
    return None


def _tar(data: bytes) -> object:
    found = []
    for one in (data, _summed(data)):
        stream = io.BytesIO(one)
        with suppress(ValueError, tarball.DamagedError):
            reader = tarball.TarReader(tarball.BoundedStream(stream, stream, 1 << 24))
            found.append([(member, reader.content()) for member in reader])
    return found


def _summed(data: bytes) -> bytes:
    blocks = [data[at : at + 512] for at in range(0, len(data), 512)]
    return b"".join(_with_sum(block) if block[257:262] == b"ustar" and len(block) == 512 else block for block in blocks)


def _with_sum(block: bytes) -> bytes:
    total = sum(block[:148]) + sum(block[156:]) + 8 * ord(" ")
    return block[:148] + b"%06o\0 " % total + block[156:]


BY_HAND: Final[tuple[Target, ...]] = (
    Target("parse_allowed", lambda text: [parse_allowed(text, "cpus"), parse_allowed(text, "mems")], str),
    Target("parse_arcconf", lambda text: parse_arcconf("1", text), str),
    Target("parse_io_pairs", lambda text: [parse_io_pairs(text, {"rbytes": "read", "wiops": "written"})], str),
    Target("parse_io_table", lambda text: [parse_io_table(text, {"Read": "read", "Write": "written"})], str),
    Target("parse_settings", lambda text: [[*parse_settings(text, continued=one)] for one in (True, False)], str),
    Target("parse_sysctl_file", _sysctl_file, str),
    Target("parse_zpool_status", lambda text: [*parse_zpool_status(text, str)], str),
    Target("parse_tuned_ini", _tuned_ini, str, (InvalidInputError,)),
    Target("read_pasted", _pasted, str),
    Target("parse_profile", lambda data: parse_profile(data, "x.toml"), bytes, (InvalidInputError,)),
    Target("parse_workload_file", lambda data: parse_workload_file(data, "x.json"), bytes, (InvalidInputError,)),
    Target("parse_declared", lambda data: parse_declared(data, "x.toml"), bytes, (InvalidInputError,)),
    Target("parse_machines", lambda data: parse_machines(data, "x.json", "2026-01-01"), bytes, (InvalidInputError,)),
    Target("parse_prices", lambda data: parse_prices(data, "x.toml"), bytes, (InvalidInputError,)),
    Target("parse_changes", lambda text: parse_changes([text]), str, (InvalidInputError,)),
    Target("parse_metrics", lambda text: parse_metrics(text.split("\n")), str, (UsageError,)),
    Target("parse_limits", lambda text: parse_limits(text.split("\n"), _live_metrics(text)), str, (UsageError,)),
    Target("parse_demand", _demand, str, (UsageError,)),
    Target("parse_muting", lambda text: parse_muting(text, Path("x.toml")), str, (InvalidInputError,)),
    Target("parse_until", lambda text: parse_until(text, date(2026, 11, 23)), str, (UsageError,)),
    Target("check_severity", check_severity, str, (UsageError,)),
    Target("parse_disk_bytes", lambda text: parse_disk_bytes(text, "nvme0n1"), str),
    Target("parse_port_use", lambda text: parse_port_use(text, 1024, 60999), str),
    Target("parse_counts", lambda text: parse_counts(text.split(" ")), str),
    Target("parse_reply", lambda data: [parse_reply(4, data, has_ip_header=one) for one in (True, False)], bytes),
    Target("parse_said", _said, bytes),
    Target("reduce", _reduced, str),
    Target("edited", _edited, bytes),
    Target("decode_pages", _traced, bytes),
    Target("decode_journal", _journal, bytes, hint=list[Record | None]),
    Target("open_snapshot", _snapshot, bytes),
    Target("read_stream", capture_stream.read, bytes, hint=Stream | None),
    Target("capture_host", capture_stream.hold, bytes),
    Target("proof_archive", _proof, bytes),
    Target("tarball", _tar, bytes, hint=list[list[tuple[tarball.Member, bytes]]]),
    Target("lines_of", lambda text: _lines(text), str),
    Target("tunable", lambda text: parse_tunable(text).id, str, (UsageError,)),
)


def _lines(text: str) -> object:
    """The keys of what the decoder takes; what it does not take is none of its business."""
    import tomllib

    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    return lines_of(text)


def public_parsers() -> Iterator[tuple[str, FunctionType]]:
    """Name and function of every public parser of the package."""
    for module in pkgutil.walk_packages(advisor.__path__, "advisor."):
        if module.name.endswith("__main__"):
            continue
        loaded = importlib.import_module(module.name)
        for name, one in vars(loaded).items():
            if isinstance(one, FunctionType) and one.__module__ == module.name and name.startswith("parse_"):
                yield f"{module.name.removeprefix('advisor.')}.{name}", one


@cache
def targets() -> tuple[Target, ...]:
    """All of them; a parser that two modules have under one name is named with its module."""
    by_hand = {one.name for one in BY_HAND}
    found = [_of(name, one) for name, one in public_parsers() if one.__name__ not in by_hand and _is_simple(one)]
    return (*sorted(found), *BY_HAND)


def uncovered() -> list[str]:
    """Parsers that nothing fuzzes."""
    covered = {one.name.rpartition(".")[2] for one in targets()}
    return [name for name, _ in public_parsers() if name.rpartition(".")[2] not in covered]


def _needed(function: FunctionType) -> list[inspect.Parameter]:
    return [one for one in inspect.signature(function).parameters.values() if one.default is inspect.Parameter.empty]


def _is_simple(function: FunctionType) -> bool:
    needed = _needed(function)
    return len(needed) == 1 and needed[0].annotation in ("str", "bytes")


def _of(name: str, function: FunctionType) -> Target:
    hint = typing.get_type_hints(function)["return"]
    takes = bytes if _needed(function)[0].annotation == "bytes" else str
    is_lazy = typing.get_origin(hint) in (Iterator, Iterable)
    run: Callable[[Any], object] = (lambda data: [*function(data)]) if is_lazy else function
    return Target(name, run, takes, _documented(function), hint)


def _documented(function: FunctionType) -> tuple[type[Exception], ...]:
    """What the docstring says that it raises."""
    known: dict[str, type[Exception]] = {"ValueError": ValueError}
    known |= {one.__name__: one for one in _all_errors(AdvisorError)}
    module: dict[str, object] = vars(inspect.getmodule(function))
    known |= {name: one for name, one in module.items() if _is_error(one)}
    said = re.findall(r"Raises\s+(\w+)(?:(?:,| and| or)\s+(\w+))*", function.__doc__ or "")
    return tuple(known[word] for words in said for word in words if word in known)


def _all_errors(kind: type[AdvisorError]) -> Iterator[type[AdvisorError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _all_errors(one)


def _is_error(one: object) -> TypeGuard[type[Exception]]:
    return isinstance(one, type) and issubclass(one, Exception)


@cache
def samples(name: str) -> tuple[bytes, ...]:
    """Texts to begin with: what the tests of this parser hold as constants, and `MORE`."""
    own = name.rpartition(".")[2]
    wanted = SOUGHT.get(own, own)
    found: dict[bytes, None] = dict.fromkeys(MORE.get(own, ()))
    for path, source in _sources():
        if re.search(rf"\b{wanted}\b", source) and path.parent != Path(__file__).parent:
            found.update(dict.fromkeys((*_constants(source), *_table_texts(path.with_suffix(".yaml")))))
    return tuple(found)


# Parsers that tests reach by way of another function.
SOUGHT: Final = {
    "parse_assignments": "read_link_owner",
    "parse_commands": "next_boot",
    "parse_distances": "read_numa",
    "parse_os_release": "read_identity",
    "parse_report": "read_version",
    "parse_settings": "networkd",
    "parse_show": "read_services",
    "parse_snmp6": "read_counters",
    "parse_variable": "environment",
    "tarball": "-",
    **dict.fromkeys(("parse_block_sizes", "parse_udev_kind"), "parse_dumpe2fs"),
    **dict.fromkeys(("parse_selected", "parse_sockets"), "read_memory"),
    **dict.fromkeys(("parse_cpufreq", "parse_link", "parse_llt", "parse_module", "parse_unit"), "tunable"),
}

_PLAN: Final = Plan(profiles=("a",), machine_id=None, changes=(), files=(), side_effects=(), skipped=(), notes=())
_ENTRIES: Final[tuple[Entry, ...]] = (
    Begun(_PLAN, None, 1.0, "0"),
    Doing("sysctl:a"),
    Done("sysctl:a", "1"),
    Left("irq:1:affinity", "EIO"),
    Applied(2.0, {"link:a:mtu": "1"}),
    Undoing(3.0, "why"),
    Undone(4.0, (("a", "b"),)),
)
_INDEX: Final = {
    **{"schema": snapshot.SCHEMA, "is_root": True, "links": {"/l": "sys/a"}, "directories": ["/sys"]},
    **{"unreadable": {"/sys/x": "why"}, "commands": [{"argv": ["ip", "-j"], "answer": None, "missing": None}]},
    "ethtool": [{"link": "eth0", "what": "rings", "answer": {"rx": 1}, "missing": None}],
}


def _archive(form: int, **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("sys/" + "l" * 120)
        link.type, link.linkname = tarfile.SYMTYPE, "a"
        tar.addfile(link)
    return buffer.getvalue()


_ARCHIVES: Final = tuple(
    _archive(form, **members)
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    for members in ({"sys/a/f": b"1"}, {snapshot.INDEX: json.dumps(_INDEX).encode(), "root/sys/a/f": b"1"})
)

MORE: Final[Mapping[str, tuple[bytes, ...]]] = {
    "decode_pages": (trace.page_of([trace.Event(at, trace.ISSUE, at) for at in range(40)]),),
    "parse_limits": (b"p99 > 20", b"rate < 1.5e3\np99>0"),
    "parse_route_mtus": (
        b"default via 192.0.2.1 dev eth0 mtu lock 1400 advmss 1360\n",
        b"192.0.2.0/24 dev a mtu 9000\n",
    ),
    "parse_fields": (trace.HEADER.encode(), trace.FORMAT.encode()),
    "parse_event_id": (trace.FORMAT.format(number=7).encode(),),
    "parse_muting": (
        b'[[ignore]]\nid = "vm.swappiness"\nreason = "a test"\nuntil = 2027-01-01\n',
        b'[[ignore]]\nid = "disks.offline"\ndevice = "sd*"\nhost = "db*"\nreason = "x"\n[[ignore]]\nid = 1\n',
    ),
    "parse_smartctl": tuple(
        text.encode()
        for text in (
            smart.ata(smart.attribute(5, "Reallocated_Sector_Ct", "12 (0 0)"), **smart.error_recovery(70)),
            smart.nvme(critical_warning=5),
            smart.scsi(defects=2, status=smart.FAILURE_PREDICTED),
            smart.BEHIND_A_CONTROLLER,
        )
    ),
    "parse_io_lines": (
        b"8:16 enable=1 ctrl=auto rpct=95.00 rlat=75000 min=50.00 max=150.00\n",
        b"8:0 ctrl=user model=linear",
    ),
    "parse_io_levels": (
        b"8:0 rbytes=1 cost.wait=5 cost.indebt=0 delay_nsec=90 use_delay=1 depth=max avg_lat=3 win=100\n",
        b"8:16 depth=17 avg_lat=9\n",
    ),
    "parse_weights": (b"default 100\n8:0 50\n", b"default 100"),
    "parse_vrates": (b"8:0 rbytes=1 wbytes=2 cost.vrate=87.50\n8:16 cost.vrate=100.00 x=1\n",),
    "check_severity": (b"warning", b"critical", b"nope"),
    "parse_script_answer": (
        b'a line of a tool\n{"schema":"advisor.transaction/1","state":"applied","code":0,"id":"0001"}\n',
    ),
    "parse_fstab": (b"/dev/sda1 /srv xfs noatime,nobarrier 0 2\nUUID=1 / ext4 barrier=0,errors=remount-ro 0 1\n",),
    "parse_udev_rules": (
        b'SUBSYSTEM=="block", KERNEL=="sd*", \\\n  ATTR{queue/scheduler}="noop"\n',
        b'ACTION=="add", SUBSYSTEM=="net", RUN+="/sbin/ethtool -K $name tso off"\n',
    ),
    "parse_script": (b"#!/bin/sh\nethtool -K eth0 gro off; echo noop > /sys/block/sda/queue/scheduler\n",),
    "parse_tmpfiles": (b"w /sys/kernel/mm/transparent_hugepage/enabled - - - - never\nw!+ /x - - - - a b\n",),
    "parse_link_file": (b"[Match]\nOriginalName=*\n[Link]\nTCPSegmentationOffload=no\n",),
    "parse_ifcfg": (b'DEVICE=eth0\nETHTOOL_OPTS="-K eth0 tso off gro off"\n',),
    "parse_beegfs": (b"tuneTargetChooser = roundrobin\n# x = y\n",),
    "parse_command_line": (b"BOOT_IMAGE=/vmlinuz ro quiet transparent_hugepage=never elevator=noop\n",),
    "parse_declared": (
        b'[[volume]]\ndevice = "nvme1n1"\ntype = "gp2"\ngib = 100\n',
        b'{"Volumes": [{"VolumeId": "vol-1", "VolumeType": "io2", "Size": 4, "Iops": 100, "Attachments": []}]}',
    ),
    "parse_outcome": (
        b"0 1753000000 time is up\nrestored link:eth0:mtu\n",
        b"5 1 x\nkept /etc/llttab: changed since\n",
    ),
    "parse_told": (
        b'noise\n{"schema":"advisor.transaction/1","id":"0001","state":"applied","code":0,"message":"x"}\n',
    ),
    "parse_event": (b'{"advisor": 1, "host": "node01", "state": "unreachable", "message": "x"}',),
    "parse_facts": (b'{"started": 1.5, "ended": 2.5, "host_started": 1, "host_ended": 2}',),
    "parse_inventory": (
        b'{"_meta": {"hostvars": {"a": {"ansible_host": "h", "ansible_port": 22}}}, "all": {"children": ["g"]}, '
        b'"g": {"hosts": ["a"]}}',
    ),
    "parse_gate_answer": (b"echo 10.0.0.2 9000 ok\necho fe80::1%eth0 1280 lost\nllt\n*0 a OPEN\n 1 b OPEN\n  l1 UP\n",),
    "decode_journal": (b"".join(map(encode_entry, _ENTRIES)), *map(encode_entry, _ENTRIES)),
    "open_snapshot": (*_ARCHIVES, *map(gzip.compress, _ARCHIVES)),
    "read_stream": capture_stream.STREAMS,
    "capture_host": capture_stream.HELD,
    "tarball": _ARCHIVES,
    "proof_archive": (
        b'{"proof": {"session": 1}, "fio": {"1": "x"}, "schema": "advisor.proof-archive/1"}',
        b"\x1f\x8b",
    ),
    "parse_throughput": (b"132GB/s", b"1.5 MiB/s"),
    "parse_ports": (b"8080,9148,50000-50010\n",),
    "parse_fstyp": (b"vxfs\nmagic a501fcf5  version 15  ctime Fri\nlogstart 0  logend 0\nbsize  8192 size  2621440\n",),
    "parse_vxtunefs": (b"Filesystem I/O parameters for /srv\nread_pref_io = 65536\nread_nstream = 4\n",),
    "parse_machines": (
        b'{"InstanceTypes": [{"InstanceType": "x9.large", "EbsInfo": {"EbsOptimizedInfo": {"BaselineIops": 1}}}]}',
        b'{"value": [{"name": "Standard_D2", "resourceType": "virtualMachines", "capabilities": []}]}',
    ),
    "parse_changes": (b"volumes=4xgp3/500GiB,/srv:type=io2 iops=1000", b"links=+1"),
    "parse_until": (b"2027-01-31", b"January", b"30d", b"2027-01"),
    "parse_demand": (b"2GB/s", b"200k", b"500us", b"10TiB"),
    "parse_prices": (b'currency = "EUR"\n[volumes.gp3]\ngib = 0.08\n', b'{"currency": "EUR", "drives": {}}'),
    "parse_port_state": (b"4: ACTIVE", b"1: DOWN"),
    "parse_page_bytes": (struct.pack("6N", 6, 4096, 16, 1, 0, 0),),
    "parse_settings": (b"[Match]\nName=eth0\n[Link]\nMTUBytes = 9000 \\\n1\n# c\n;d\n",),
}


@cache
def _sources() -> tuple[tuple[Path, str], ...]:
    return tuple((path, path.read_text()) for path in sorted(TESTS.rglob("test_*.py")))


def _table_texts(path: Path) -> Iterator[bytes]:
    """Yield the texts of the tables beside a module of tests."""
    for node in yaml.parse(path.read_text("utf-8"), yaml.SafeLoader) if path.is_file() else ():
        if isinstance(node, yaml.ScalarEvent) and len(node.value) > 1:
            yield node.value.encode("utf-8", "surrogatepass")


def _constants(source: str) -> Iterator[bytes]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and len(node.value) > 1:
            yield node.value if isinstance(node.value, bytes) else node.value.encode("utf-8", "surrogatepass")
