"""cloud-guest: a connection over a path that forgets what is idle for 4 minutes, and one over a path that is cut.

Run by `python -m benchmarks.profile_records cloud-guest`; eleven minutes, as the times are real ones. All in network
namespaces of its own (a client, a router with nftables, a server), which are removed at the end: for the kernel's
values and for the profile's at the same time. The programs ask for SO_KEEPALIVE.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time
from contextlib import suppress
from pathlib import Path

from .guest import LIBC, NEW_NETWORK, print_table, require_guest, shell

FORGETS = 240
"""Seconds after which the router forgets a connection: a little less than the shortest that the profile cites."""
IDLE = 300
PATIENCE = 660
FORGOTTEN_PORT, CUT_PORT = 5001, 5002
ARMS = {"the kernel's (7200, 75)": (7200, 75), "the profile's (60, 60)": (60, 60)}


def enter(namespace: str) -> None:
    """Move this thread into a network namespace."""
    descriptor = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    if LIBC.setns(descriptor, NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(descriptor)


def leave(home: int) -> None:
    """Move this thread back to where it was."""
    if LIBC.setns(home, NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "setns")


def lay(arm: int, seconds: tuple[int, int]) -> None:
    """A client c, a router r that tracks connections, and a server s."""
    names = [f"{kind}{arm}" for kind in "crs"]
    shell("; ".join(f"ip netns add {name} && ip -n {name} link set lo up" for name in names))
    for side, index in (("c", 1), ("s", 2)):
        shell(
            f"ip link add e0 netns {side}{arm} type veth peer name {side} netns r{arm} && "
            f"ip -n {side}{arm} addr add 10.0.{index}.1/24 dev e0 && "
            f"ip -n r{arm} addr add 10.0.{index}.2/24 dev {side} && "
            f"ip -n {side}{arm} link set e0 up && ip -n r{arm} link set {side} up && "
            f"ip -n {side}{arm} route add default via 10.0.{index}.2"
        )
    rules = "table inet path { chain forward { type filter hook forward priority 0; ct state invalid drop; }; }"
    shell(f"ip netns exec r{arm} nft '{rules}'")
    enter(f"r{arm}")
    for name, value in (
        ("ipv4/ip_forward", 1),
        ("netfilter/nf_conntrack_tcp_timeout_established", FORGETS),
        ("netfilter/nf_conntrack_tcp_loose", 0),
    ):
        Path("/proc/sys/net", name).write_text(str(value))
    for name in ("c", "s"):
        enter(f"{name}{arm}")
        Path("/proc/sys/net/ipv4/tcp_keepalive_time").write_text(str(seconds[0]))
        Path("/proc/sys/net/ipv4/tcp_keepalive_intvl").write_text(str(seconds[1]))


def connect(arm: int, port: int) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection over the router; the client's first."""
    enter(f"s{arm}")
    listener = socket.create_server(("10.0.2.1", port))
    enter(f"c{arm}")
    client = socket.create_connection(("10.0.2.1", port), timeout=20)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    server = listener.accept()[0]
    client.sendall(b"hello")
    assert server.recv(5) == b"hello"
    client.setblocking(False)
    server.setblocking(False)
    return client, server


def unanswered(client: socket.socket) -> str:
    """Whether it is still connected, and retransmissions, by tcp_info."""
    info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    state = "connected" if info[0] == 1 else f"state {info[0]}"
    return f"{state}, {struct.unpack_from('=I', info, 100)[0]} sent again"


def received(end: socket.socket) -> int:
    """Bytes that have come; raises what ended the connection."""
    with suppress(BlockingIOError):
        return len(end.recv(100))
    return 0


def main() -> None:
    """Print two tables."""
    require_guest()
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    names = [f"{kind}{arm}" for arm in range(len(ARMS)) for kind in "crs"]
    try:
        idle, cut = [], []
        for arm, seconds in enumerate(ARMS.values()):
            lay(arm, seconds)
            idle.append(connect(arm, FORGOTTEN_PORT))
            cut.append(connect(arm, CUT_PORT))
            leave(here)
            shell(f"ip netns exec r{arm} nft 'add rule inet path forward tcp dport {CUT_PORT} drop'")
            shell(f"ip netns exec r{arm} nft 'add rule inet path forward tcp sport {CUT_PORT} drop'")
        started = time.monotonic()
        timers = [
            shell(f"ip netns exec c{arm} ss -tnoH dport = :{CUT_PORT}").split("timer:")[-1] for arm in range(len(ARMS))
        ]
        noticed: dict[int, str] = {}
        outcome: dict[int, str] = {}
        sent = False
        while (passed := time.monotonic() - started) < PATIENCE:
            if not sent and passed >= IDLE:
                for client, _ in idle:
                    client.sendall(b"x" * 100)
                sent = True
            if sent and passed >= IDLE + 60 and not outcome:
                for arm, (client, server) in enumerate(idle):
                    outcome[arm] = f"{received(server)} of 100 bytes; {unanswered(client)}"
            for arm, (client, _) in enumerate(cut):
                if arm not in noticed:
                    try:
                        received(client)
                    except OSError as error:
                        noticed[arm] = f"{passed:.0f} s: {error.strerror}"
            time.sleep(0.5)
        print_table(
            (
                "tcp_keepalive_time, intvl",
                f"sent after {IDLE} s of silence: a minute later",
                "cut path noticed after",
                "timer at first",
            ),
            [
                (name, outcome[arm], noticed.get(arm, f"not in {PATIENCE} s"), timers[arm])
                for arm, name in enumerate(ARMS)
            ],
        )
    finally:
        leave(here)
        for name in names:
            with suppress(RuntimeError):
                shell(f"ip netns del {name}")


if __name__ == "__main__":
    main()
