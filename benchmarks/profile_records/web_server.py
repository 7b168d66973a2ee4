"""web-server: connections to one address before the ports run out, and connections that wait in a listen queue.

Run by `python -m benchmarks.profile_records web-server`. All on the loopback link: a server that never answers, and
clients that connect until one fails. Restores both sysctls.
"""

from __future__ import annotations

import errno
import resource
import socket
from contextlib import ExitStack

from .guest import print_table, read_sysctl, require_guest, sysctl

PORTS, QUEUE = "net.ipv4.ip_local_port_range", "net.core.somaxconn"
ASKED = 4096
"""Backlog that the server asks listen(2) for."""


def count_connections(address: str) -> tuple[int, str]:
    """Connections to one address and port that a client can have at once, and what ended it."""
    with ExitStack() as opened:
        server = opened.enter_context(socket.create_server((address, 7001), backlog=ASKED))
        made = 0
        while True:
            client = opened.enter_context(socket.socket())
            try:
                client.connect((address, 7001))
            except OSError as error:
                return made, errno.errorcode.get(error.errno or 0, str(error))
            opened.enter_context(server.accept()[0])
            made += 1


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
    require_guest()
    resource.setrlimit(resource.RLIMIT_NOFILE, (300_000, 300_000))
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
