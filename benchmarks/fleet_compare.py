"""What comparing many captured hosts costs: ``python -m benchmarks.fleet_compare [HOSTS…]`` (100 300 1000 3000).

The hosts are made from the captured lab host (six NVMe drives, md arrays, LLT, 700 files) and written to a temporary
directory first: names, addresses, machine-ids, clusters of four and node ids are their own, and some have another MTU,
sysctl, size of memory or kernel. Each size is measured in a process of its own; processes that read are counted in.

``--summaries [HOSTS…]`` measures what is left when no capture has to be read: taking summaries in and comparing them.
"""

from __future__ import annotations

import io
import json
import os
import re
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

FIXTURE = Path(__file__).parents[1] / "tests" / "fixtures" / "storage-host-root.tar.gz"
SIZES = (100, 300, 1000, 3000)
SUMMARIES = (300, 1000, 3000, 10_000)
ALONE = 1000
INDEX = "advisor-snapshot.json"


def make_captures(where: Path, count: int) -> None:
    """Snapshots of ``count`` hosts, each different from the others in what is its own and in little else."""
    with tarfile.open(FIXTURE) as archive:
        base = {one.name: archive.extractfile(one).read() for one in archive if one.isfile()}  # type: ignore[union-attr]
    for number in range(count):
        _write_capture(where / f"h{number:05d}.tar.gz", _vary_host(dict(base), number))


def _vary_host(files: dict[str, bytes], number: int) -> dict[str, bytes]:
    high, low = divmod(number, 60)
    place = f"{high // 256}.{high % 256}.{low + 1}"
    index = files[INDEX].decode()
    for old, new in (("192.0.2.65", f"11.{place}"), ("10.0.2.15", f"12.{place}"), ("192.0.2.1", f"10.{place}")):
        index = re.sub(rf"\b{re.escape(old)}\b", new, index)
        files["root/etc/llttab"] = re.sub(rf"\b{re.escape(old)}\b".encode(), new.encode(), files["root/etc/llttab"])
    index = re.sub(r"(\\n *\* *)0( lab)", rf"\g<1>{number % 4}\2", index)
    files["root/etc/llttab"] = files["root/etc/llttab"].replace(b"4711", str(1000 + number // 4).encode())
    files["root/proc/sys/kernel/hostname"] = f"h{number:05d}\n".encode()
    files["root/etc/machine-id"] = f"{number + 1:032x}\n".encode()
    files["root/proc/sys/kernel/random/boot_id"] = f"{number + 1:032x}\n".encode()
    if number % 97 == 5:
        index = re.sub(r'(\\"mtu\\": ?)1500', r"\g<1>9000", index, count=1)
    if number % 53 == 7:
        files["root/proc/sys/vm/swappiness"] = b"60\n"
    if number % 71 == 9:
        files["root/proc/meminfo"] = re.sub(rb"MemTotal: +\d+", b"MemTotal: 1000000", files["root/proc/meminfo"])
    if number % 113 == 11:
        files["root/proc/sys/kernel/osrelease"] = b"6.1.0-40-amd64\n"
    files[INDEX] = index.encode()
    return files


def _write_capture(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))


def measure_comparison(where: Path, count: int, processes: int) -> dict[str, Any]:
    """Read, compare and print the first ``count`` hosts in this process (and those that it starts)."""
    from advisor.fleet.compare.columns import gather_hosts, named_sources
    from advisor.fleet.compare.outliers import find_outliers
    from advisor.report.fleet.compare import comparison_document, comparison_text

    sources = named_sources(sorted(where.iterdir())[:count])
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    fleet, failed = gather_hosts(sources, processes=processes)
    read = time.monotonic()
    found = find_outliers(fleet, failed=failed)
    comparison_text(found, width=100, color=False)
    comparison_document(found)
    ended = time.monotonic()
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "hosts": len(found.compared),
        "processes": processes,
        "wall": ended - began,
        "compare": ended - read,
        "cpu": own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime,
        "rss_mib": own.ru_maxrss / 1024,
        "start_mib": before / 1024,
        "reader_mib": others.ru_maxrss / 1024,
        "findings": len(found.findings),
    }


def measure_summaries(count: int) -> dict[str, Any]:
    """Comparing alone: summaries made one after the other from one host's, without captures to read."""
    from advisor.fleet.compare.columns import Fleet, read_source
    from advisor.fleet.compare.outliers import find_outliers
    from advisor.fleet.compare.summary import CaptureSource, HostSummary
    from advisor.report.fleet.compare import comparison_document

    first = read_source(CaptureSource("h", str(FIXTURE)))
    assert isinstance(first, HostSummary)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    fleet = Fleet()
    for number in range(count):
        fleet.add(_make_summary(first, number))
    added = time.process_time()
    found = find_outliers(fleet)
    comparison_document(found)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "hosts": count,
        "add": added - began,
        "compare": time.process_time() - added,
        "rss_mib": peak / 1024,
        "start_mib": before / 1024,
        "findings": len(found.findings),
    }


def _make_summary(first: Any, number: int) -> Any:
    """A host of its own in a cluster of four; one of 53 has another sysctl, one of 97 another MTU."""
    import msgspec

    high, low = divmod(number, 60)
    values = dict(first.values)
    if number % 53 == 7:
        values["sysctl.vm.swappiness"] = "60"
    networks = []
    for place, one in enumerate(first.memberships):
        parts = {"address": f"{10 + place}.{high // 256}.{high % 256}.{low + 1}"}
        parts["network"] = f"{10 + place}.{high // 256}.{high % 256}.0/26"
        is_odd = number % 97 == 5 and place == 0
        networks.append(msgspec.structs.replace(one, **parts, mtu=9000 if is_odd else one.mtu))
    return msgspec.structs.replace(
        first,
        name=f"h{number:05d}",
        hostname=f"h{number:05d}",
        machine_id=f"{number:032x}",
        boot_id=f"{number:032x}",
        cluster=str(number // 4),
        node=str(number % 4),
        values=values,
        memberships=tuple(networks),
    )


def _summary_row(one: dict[str, Any]) -> str:
    per_host = (one["rss_mib"] - one["start_mib"]) * 1024 / one["hosts"]
    return (
        f"| {one['hosts']} | {one['add']:.2f} | {one['compare']:.2f} | "
        f"{1000 * (one['add'] + one['compare']) / one['hosts']:.2f} | {one['rss_mib']:.0f} | {per_host:.1f} | "
        f"{one['findings']} |"
    )


def _print_summaries(sizes: tuple[int, ...]) -> None:
    head = ("hosts", "adding, CPU s", "comparing, CPU s", "CPU ms per host", "peak MiB", "KiB per host", "findings")
    sys.stdout.write(f"| {' | '.join(head)} |\n|{'---|' * len(head)}\n")
    for hosts in sizes:
        argv = [sys.executable, "-m", "benchmarks.fleet_compare", "--summary", str(hosts)]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        sys.stdout.write(_summary_row(json.loads(done.stdout)) + "\n")
        sys.stdout.flush()


def _format_row(one: dict[str, Any]) -> str:
    hosts = one["hosts"]
    per_host = (one["rss_mib"] - one["start_mib"]) * 1024 / hosts
    return (
        f"| {hosts} | {one['processes']} | {one['wall']:.1f} | {one['cpu']:.1f} | {1000 * one['cpu'] / hosts:.1f} | "
        f"{one['compare']:.2f} | {one['rss_mib']:.0f} | {per_host:.1f} | {one['reader_mib']:.0f} | {one['findings']} |"
    )


def _process_counts(hosts: int) -> tuple[int, ...]:
    """As many as the command takes, one for each CPU; for one size, also a single one."""
    usual = len(os.sched_getaffinity(0))
    return (1, usual) if hosts == ALONE and usual > 1 else (usual,)


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        sys.stdout.write(json.dumps(measure_comparison(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))) + "\n")
        return
    if sys.argv[1:2] == ["--summary"]:
        sys.stdout.write(json.dumps(measure_summaries(int(sys.argv[2]))) + "\n")
        return
    if sys.argv[1:2] == ["--summaries"]:
        _print_summaries(tuple(map(int, sys.argv[2:])) or SUMMARIES)
        return
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    with tempfile.TemporaryDirectory(prefix="advisor-fleet.") as place:
        make_captures(Path(place), max(sizes))
        sys.stdout.write(
            "| hosts | processes | wall s | CPU s | CPU ms per host | of it comparing, s | peak MiB | KiB per host | "
            "MiB of a reader | findings |\n|---|---|---|---|---|---|---|---|---|---|\n"
        )
        for hosts in sizes:
            for processes in _process_counts(hosts):
                argv = [sys.executable, "-m", "benchmarks.fleet_compare", "--one", place, str(hosts), str(processes)]
                done = subprocess.run(argv, capture_output=True, text=True, check=True)
                sys.stdout.write(_format_row(json.loads(done.stdout)) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
