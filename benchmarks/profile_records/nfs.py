"""nfs-client and nfs-server: how many requests of an NFSv3 mount are under way at a time, by
sunrpc.tcp_max_slot_table_entries, and how the server's threads are spread, by sunrpc's pool_mode.

Run by `python -m benchmarks.profile_records nfs`. The kernel's own server and a mount of it over the loopback link; the
counts are the kernel's: the line xprt of /proc/self/mountstats, /proc/fs/nfsd/pool_threads and pool_stats. Stops the
server and restores both values at the end.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from .guest import print_table, require_guest, shell, sysctl

MIB = 1 << 20
EXPORT, MOUNT = Path("/run/records-export"), Path("/run/records-mount")
SLOTS = ("65536", "128", "64")
POOL_MODE = Path("/sys/module/sunrpc/parameters/pool_mode")


def write_and_flush(mib: int) -> tuple[int, str, str]:
    """The most requests that were under way, and on average waiting for a slot, while a file is written and closed."""
    with (MOUNT / "file").open("wb", buffering=0) as file:
        for _ in range(mib):
            file.write(b"x" * MIB)
    line = next(one for one in transports() if one.split()[1] == "tcp")
    # srcport, bind_count, connect_count, connect_time, idle_time, sends, recvs, bad_xids, req_u, bklog_u, max_slots,
    # sending_u, pending_u
    numbers = [int(word) for word in line.split()[2:]]
    sends, backlog, most, pending = numbers[5], numbers[9], numbers[10], numbers[12]
    return most, f"{backlog / max(1, sends):.1f}", f"{pending / max(1, sends):.1f}"


def transports() -> list[str]:
    """The lines xprt of the mount."""
    text = Path("/proc/self/mountstats").read_text().split(f"mounted on {MOUNT} ", 1)[1]
    return [line.strip() for line in text.split("\ndevice ", 1)[0].splitlines() if "xprt:" in line]


def mount(options: str) -> None:
    """Mount the export."""
    shell(f"mount -t nfs -o {options},addr=127.0.0.1 127.0.0.1:{EXPORT} {MOUNT}")


def start_server(threads: int, mode: str) -> None:
    """The kernel's server with so many threads, grouped by mode."""
    POOL_MODE.write_text(mode)
    shell(f"rpc.nfsd --no-udp {threads}; exportfs -o rw,no_root_squash,insecure,fsid=77 127.0.0.1:{EXPORT}")


def stop_server() -> None:
    """No threads: their grouping can change."""
    shell("rpc.nfsd 0; exportfs -ua")


def pools() -> tuple[str, int]:
    """Threads of each group, and the number of groups."""
    threads = Path("/proc/fs/nfsd/pool_threads").read_text().split()
    return " + ".join(threads), len(threads)


def served() -> list[int]:
    """Packets that each group has received so far."""
    lines = Path("/proc/fs/nfsd/pool_stats").read_text().splitlines()
    return [int(line.split()[1]) for line in lines if not line.startswith("#")]


def reachable(node: int, cpus: str) -> str:
    """Whether a process on the CPUs of a node can mount, write, and unmount, within 40 s."""
    place = f"{MOUNT}.{node}"
    Path(place).mkdir(exist_ok=True)
    options = "vers=3,nolock,soft,timeo=50,retrans=1,retry=0,nosharecache,addr=127.0.0.1"
    use = f"mount -t nfs -o {options} 127.0.0.1:{EXPORT} {place} && echo x >{place}/file && umount {place}"
    try:
        shell(f"timeout -s KILL 40 taskset -c {cpus} sh -c '{use}'", timeout=90)
    except RuntimeError:
        with suppress(RuntimeError):
            shell(f"umount -f -l {place}")
        return "no answer"
    return "yes"


def main() -> None:
    """Print two tables."""
    require_guest()
    for place in (EXPORT, MOUNT):
        place.mkdir(exist_ok=True)
    shell(f"modprobe nfs && modprobe nfsv3 && modprobe nfsd; mount -t tmpfs -o size=900m tmpfs {EXPORT}")
    shell("mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/sm; touch /var/lib/nfs/etab /var/lib/nfs/rmtab")
    shell("mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd; mkdir -p /run/rpcbind")
    shell("useradd --system --no-create-home _rpc 2>/dev/null; touch /etc/exports; rpcbind; rpc.mountd --no-udp")
    before = POOL_MODE.read_text().strip()
    try:
        rows = []
        for mode, threads in (("global", 8), ("pernode", 8), ("global", 1), ("pernode", 1)):
            start_server(threads, mode)
            first = served()
            reached = [reachable(0, "0,1"), reachable(1, "2,3")]
            shares = " + ".join(str(after - one) for one, after in zip(first, served(), strict=True))
            rows.append((mode, threads, pools()[0], shares, *reached))
            print(rows[-1], flush=True)
            stop_server()
        print_table(
            ("pool_mode", "threads", "of each group", "packets of each group", "from node 0", "from node 1"), rows
        )
        start_server(8, "global")
        rows = []
        for version, sizes in (("3", "wsize=32768"), ("4.2", "wsize=32768")):
            for slots in SLOTS:
                with sysctl("sunrpc.tcp_max_slot_table_entries", slots):
                    mount(f"vers={version},{sizes},nolock")
                    try:
                        rows.append((f"NFSv{version}", slots, *write_and_flush(256)))
                    finally:
                        shell(f"umount {MOUNT}")
        print_table(("mount", "tcp_max_slot_table_entries", "most under way", "waiting for a slot", "under way"), rows)
    finally:
        with suppress(RuntimeError):
            shell(f"umount -f -l {MOUNT}")
        with suppress(RuntimeError):
            stop_server()
        with suppress(OSError):
            POOL_MODE.write_text(before)
        shell(f"pkill -x rpc.mountd; pkill -x rpcbind; umount {EXPORT}")


if __name__ == "__main__":
    main()
