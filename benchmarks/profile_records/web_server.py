"""web-server: connections to one address before the ports run out, and connections that wait in a listen queue.

Run by `python -m benchmarks.profile_records.web_server`, without a guest, whose emulated CPU takes long to look for
free ports: both sysctls are those of a network namespace of its own. All is on its loopback link.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from contextlib import ExitStack

from .guest import LIBC, NEW_NETWORK, print_table, read_sysctl, shell, sysctl

PORTS, QUEUE = "net.ipv4.ip_local_port_range", "net.core.somaxconn"
ASKED = 4096
"""Backlog that the server asks listen(2) for."""
EACH = 8_000
"""Connections of one process, whose open files are limited: both ends of each."""


def count_connections(address: str) -> tuple[int, str]:
    """Connections to one address and port that clients can have at once, and what ended it."""
    made, why = 0, ""
    with ExitStack() as opened, socket.create_server((address, 7001), backlog=ASKED) as server:
        while not why:
            more, why = _connect_in_child(address, server, opened)
            made += more
    return made, why


def _connect_in_child(address: str, server: socket.socket, opened: ExitStack) -> tuple[int, str]:
    """How many a further process could make, which it keeps until the stack is closed, and why there were no more."""
    answer, said = os.pipe()
    held, end = os.pipe()
    child = os.fork()
    if child:
        os.close(said)
        os.close(held)
        opened.callback(os.waitpid, child, 0)
        opened.callback(os.close, end)
        with open(answer) as line:
            made, _, why = line.readline().strip().partition(" ")
        return int(made), why
    os.close(end)
    ends: list[tuple[socket.socket, socket.socket]] = []
    why = ""
    while len(ends) < EACH and not why:
        client = socket.socket()
        try:
            client.connect((address, 7001))
            ends.append((client, server.accept()[0]))
        except OSError as error:
            why = errno.errorcode.get(error.errno or 0, str(error))
    os.write(said, f"{len(ends)} {why}\n".encode())
    os.read(held, 1)
    os._exit(0)


def count_waiting(address: str) -> int:
    """Connections that are complete while nobody accepts them: a further one gets no answer."""
    with ExitStack() as opened:
        opened.enter_context(socket.create_server((address, 7002), backlog=ASKED))
        made = 0
        while True:
            client = opened.enter_context(socket.socket())
            client.settimeout(2)
            try:
                client.connect((address, 7002))
            except OSError:
                return made
            made += 1


def main() -> None:
    """Print both tables; each queue is counted twice."""
    if LIBC.unshare(NEW_NETWORK):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    shell("ip link set lo up")
    rows: list[tuple[object, ...]] = []
    for number, value in enumerate((read_sysctl(PORTS), "16384 65535")):
        with sysctl(PORTS, value):
            rows.append((value, *count_connections(f"127.0.1.{1 + number}")))
    print_table((f"`{PORTS}`", "connections to one address and port", "the next one"), rows)
    rows = []
    for number, value in enumerate(("128", "4096", "128", "4096")):
        with sysctl(QUEUE, value):
            rows.append((value, count_waiting(f"127.0.2.{1 + number}")))
    print()
    print_table((f"`{QUEUE}`", f"connections that wait, of {ASKED:,} asked for"), rows)


if __name__ == "__main__":
    main()
