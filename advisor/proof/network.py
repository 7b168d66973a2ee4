"""One network run: fio's ``net`` engine here and on a peer, and the figures of both ends taken together.

The receiving end listens, the sending end connects. What counts is what arrived, over the time that the receiver
took: a larger buffer that only swallows more at the end gains nothing by it. fio binds a receiving socket to every
address of its host and asks nobody who connects, so it listens for one run only, and a run in which more arrived than
was sent is refused.

Sources: fio(1), ioengine=net; and what fio 3.33 does: an interrupted receiver of UDP hangs until it learns that the
link is closed, by a datagram that may be lost like any other. We repeat it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterable

import msgspec

from advisor.errors import CommandError, RefusedError
from advisor.host import Host, Missing
from advisor.host.commands import find_program
from advisor.host.numbers import whole_number
from advisor.proof import fio
from advisor.proof.interrupt import Stop
from advisor.proof.metrics import RunFigures
from advisor.proof.peer import PORTS, PeerError, RemoteProcess, SecondHostPeer, Ssh
from advisor.proof.process import EndedProcess, FioError, FioProcess, Running
from advisor.proof.workloads import JobSection, Pattern

CHECK_SECONDS = 0.2
LISTEN_SECONDS = 15.0
"""For the end that listens to be ready, ssh's own connecting included."""
FINISH_SECONDS = 5.0
OPENINGS = 3
"""fio's UDP receiver gives up where the first datagram, which opens the link, is lost: then the run is made again."""
# magic and command, as fio 3.33 puts them on the wire, and as its first versions did
_LINK_CLOSE = tuple(struct.pack(f"{order}II", 0x6C696E6B, 0x89) for order in "<>")
_ENDLESS = "100t"
_TCP_AGREEMENT = 0.05
_BOUND = frozenset({"0A", "07", "01"})
"""States of a local port in /proc/net that another socket must not share: listening, or (UDP) bound or connected."""


class NothingArrivedError(FioError):
    """The sender did its part, and the receiver took in nothing."""


class NetworkFio(FioProcess):
    """The real runner, with a peer for the workloads that take one."""

    def __init__(self, host: Host, peer: SecondHostPeer, ssh: Ssh, *, search_path: str | None = None) -> None:
        super().__init__(search_path=search_path)
        self._host = host
        self.peer = peer
        self._ssh = ssh

    def check(self, workloads: Iterable[Pattern], stop: Stop) -> None:
        """A very short run of each network workload. Raises RefusedError where one cannot be measured, with a hint."""
        for workload in workloads:
            if workload.is_network:
                try:
                    self.run_network(fio.FioJob(workload, CHECK_SECONDS, 0, 0), stop)
                except CommandError as error:
                    raise RefusedError(f"{workload.name}: {error.message}", hint=error.hint) from error

    def run_network(self, job: fio.FioJob, stop: Stop) -> tuple[RunFigures, str]:
        """One run with both ends. Raises FioError for one that does not count, and StoppedError."""
        section = job.workload.sections[0]
        for attempt in range(OPENINGS):
            near, far = (self._send_data if section.pattern == "write" else self._receive_data)(job, section, stop)
            try:
                found = network_figures(job, section, near, far)
            except NothingArrivedError:
                if section.protocol == "tcp" or attempt == OPENINGS - 1:
                    raise
                continue
            return found, f'{{"near": {fio.json_text(near.stdout)}, "far": {fio.json_text(far.stdout)}}}'
        raise AssertionError("the last attempt returns or raises")

    def _send_data(self, job: fio.FioJob, section: JobSection, stop: Stop) -> tuple[EndedProcess, EndedProcess]:
        bound = _bound_seconds(job)
        there = [*_listener_arguments(job, section, bound, is_ipv6=self.peer.is_ipv6)]
        with self._ssh.started(self.peer.ssh, "listen", there, bound=bound) as remote:
            port = remote.port(seconds=LISTEN_SECONDS, stop=stop)
            here = [*_sender_arguments(job, section, self.peer.address), f"--port={port}", *job.options]
            near = self.run(["fio", *here], timeout=job.seconds + fio.GRACE_SECONDS, cwd="/", stop=stop)
            self._require_connected(near, section, port, self.peer.address)
            far = _finish_receiver(remote, lambda: close_link(section, self.peer.address, port), stop)
        return near, self._receiver_output(far, section, port)

    def _receive_data(self, job: fio.FioJob, section: JobSection, stop: Stop) -> tuple[EndedProcess, EndedProcess]:
        bound = _bound_seconds(job)
        taken = self._bound_ports()
        free = next((port for port in PORTS if port not in taken), None)
        if free is None:
            raise FioError(f"ports {PORTS[0]}-{PORTS[-1]} are all in use here", hint="ss -lntup shows by whom")
        port = free
        # fio would wait for ever for a connection, even if this process were killed
        bounded = [*self._ended_with_us(), "timeout", "-k", "2", str(bound)]
        here = [*bounded, *_listener_arguments(job, section, bound, is_ipv6=self.peer.is_ipv6)]
        there = ["fio", *_sender_arguments(job, section, self.peer.source)]
        with (
            self._ssh.started(self.peer.ssh, "send", there, bound=bound) as remote,
            self.started([*here, f"--port={port}", *job.options], cwd="/") as running,
        ):
            self._await_port(port, stop)
            remote.send_port(port)
            far = remote.finish(seconds=LISTEN_SECONDS + job.seconds + fio.GRACE_SECONDS, stop=stop)
            if far is None:
                raise _not_connected(self.peer.source, port, section)
            self._require_connected(far, section, port, self.peer.source)
            near = self._taken_in(running, lambda: close_link(section, self.peer.source, port), stop)
        return self._receiver_output(near, section, port), far

    def _ended_with_us(self) -> tuple[str, ...]:
        """Before `timeout`, which hands the signal on: at the death of this process, not only when its time is up."""
        is_here = not isinstance(find_program("setpriv", self._search_path), Missing)
        return ("setpriv", "--pdeathsig", "TERM") if is_here else ()

    def _taken_in(self, running: Running, wake: Callable[[], None], stop: Stop) -> EndedProcess | None:
        wake()
        near = running.finish(timeout=FINISH_SECONDS, stop=stop, meanwhile=wake)
        return None if near.timed_out else near

    def _receiver_output(self, receiver: EndedProcess | None, section: JobSection, port: int) -> EndedProcess:
        """What the receiving end printed. Raises PeerError where nothing ever came."""
        if receiver is None:
            address = self.peer.address if section.pattern == "write" else self.peer.source
            raise _not_connected(address, port, section)
        return receiver

    def _require_connected(self, sender: EndedProcess, section: JobSection, port: int, address: str) -> None:
        if sender.timed_out or "func=connect" in sender.stderr:
            raise _not_connected(address, port, section)

    def _bound_ports(self) -> set[int]:
        texts = (self._host.read(f"/proc/net/{table}") for table in ("tcp", "tcp6", "udp", "udp6"))
        return {port for text in texts if not isinstance(text, Missing) for port in parse_bound_ports(text)}

    def _await_port(self, port: int, stop: Stop) -> None:
        for _ in range(round(LISTEN_SECONDS / 0.05)):
            if port in self._bound_ports():
                return
            stop.sleep(0.05)
        raise FioError(f"fio here did not listen on port {port} within {LISTEN_SECONDS:g} s")


def parse_bound_ports(text: str) -> set[int]:
    """Local ports in use, of a table such as /proc/net/tcp."""
    found = set()
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 3 and fields[3] in _BOUND:
            port = whole_number(fields[1].rpartition(":")[2], 16)
            if port is not None:
                found.add(port)
    return found


def _bound_seconds(job: fio.FioJob) -> int:
    """Seconds after which an end of the run is ended by `timeout`, whoever forgot it."""
    return round(LISTEN_SECONDS + job.seconds + fio.GRACE_SECONDS)


def _common_arguments(section: JobSection, *, is_ipv6: bool) -> Iterable[str]:
    yield from ("--output-format=json+", "--eta=never", f"--name={section.name}", "--thread", "--ioengine=net")
    yield f"--protocol={section.protocol}{'v6' if is_ipv6 else ''}"
    yield from (f"--bs={section.block_bytes}", f"--size={_ENDLESS}", "--time_based")


def _listener_arguments(job: fio.FioJob, section: JobSection, bound: int, *, is_ipv6: bool) -> Iterable[str]:
    yield "fio"
    yield from _common_arguments(section, is_ipv6=is_ipv6)
    # it ends when the sender does, which may come late
    yield from ("--rw=read", f"--runtime={bound}s")
    if section.protocol == "tcp":
        yield "--listen"


def _sender_arguments(job: fio.FioJob, section: JobSection, address: str) -> Iterable[str]:
    yield from _common_arguments(section, is_ipv6=":" in address)
    yield from ("--rw=write", f"--runtime={round(job.seconds * 1000)}ms", f"--hostname={address}")


def _finish_receiver(remote: RemoteProcess, wake: Callable[[], None], stop: Stop) -> EndedProcess | None:
    done = None
    for _ in range(round(FINISH_SECONDS / 0.1)):
        wake()
        done = remote.finish(seconds=0.1, stop=stop)
        if done is not None:
            break
    return done


def close_link(section: JobSection, address: str, port: int) -> None:
    """Signal to a UDP receiver that the sender has ended: fio does so once, and that datagram may be lost."""
    if section.protocol != "udp":
        return
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as waker:
        for message in _LINK_CLOSE:
            waker.sendto(message, socket.MSG_DONTWAIT, (address, port))


def _not_connected(address: str, port: int, section: JobSection) -> PeerError:
    return PeerError(
        f"nothing gets through to {address}, port {port}/{section.protocol}, although fio listens there",
        hint=(
            f"a firewall in between must let ports {PORTS[0]}-{PORTS[-1]} through while this runs: on that host "
            f"firewall-cmd --add-port={PORTS[0]}-{PORTS[-1]}/{section.protocol} --timeout=1h"
        ),
    )


class _End(msgspec.Struct, frozen=True):
    """What one end did. ``bins`` are its completion latencies in ns."""

    bytes: int
    ios: int
    short: int
    seconds: float
    bins: dict[int, int]
    mean_ns: float
    cpu_ms: float


def _end_of(done: EndedProcess, *, is_sender: bool) -> _End:
    (entry,) = fio.accepted_report(done).jobs[:1] or (None,)
    if entry is None:
        raise FioError("fio reports no job")
    way = entry.write if is_sender else entry.read
    cpu_ms = (entry.usr_cpu + entry.sys_cpu) / 100 * entry.job_runtime
    bins = fio.pooled_bins([way.clat_ns.bins])
    return _End(way.io_bytes, way.total_ios, way.short_ios, way.runtime / 1000, bins, way.clat_ns.mean, cpu_ms)


def network_figures(job: fio.FioJob, section: JobSection, near: EndedProcess, far: EndedProcess) -> RunFigures:
    """The figures of a run that may be counted. Raises FioError that says why it may not.

    Latency is that of the near end: how long a block takes to be handed over to, or from, the socket.
    """
    is_sending = section.pattern == "write"
    here, there = _end_of(near, is_sender=is_sending), _end_of(far, is_sender=not is_sending)
    sender, receiver = (here, there) if is_sending else (there, here)
    received = _received_bytes(section, sender, receiver)
    for end, words in ((sender, "the sender"), (receiver, "the receiver")):
        if end.ios <= 0:
            raise FioError(f"{words} ended well but moved nothing")
        if end.seconds < fio.MINIMUM_RUNTIME_SHARE * job.seconds:
            raise FioError(f"{words} ran for {end.seconds:.3f} s instead of {job.seconds:g} s")
    blocks = received / section.block_bytes
    p50, p95, p99, p999 = (fio.percentile(here.bins, share) / 1000 for share in (0.5, 0.95, 0.99, 0.999))
    return RunFigures(
        iops=blocks / receiver.seconds,
        bandwidth_bytes_per_s=received / receiver.seconds,
        latency_mean_us=here.mean_ns / 1000,
        latency_p50_us=p50,
        latency_p95_us=p95,
        latency_p99_us=p99,
        latency_p999_us=p999,
        ios=round(blocks),
        read_bytes=0,
        written_bytes=0,
        runtime_seconds=receiver.seconds,
        cpu_us_per_io=here.cpu_ms * 1000 / blocks,
        cpu_seconds=near.cpu_seconds,
        sent_bytes=sender.bytes,
        received_bytes=received,
    )


def _received_bytes(section: JobSection, sender: _End, receiver: _End) -> int:
    """Bytes that arrived. Raises FioError where the two ends cannot have talked to each other alone."""
    if receiver.bytes > sender.bytes + section.block_bytes:
        raise FioError(f"{receiver.bytes} bytes arrived, but {sender.bytes} were sent: somebody else sent to that port")
    if receiver.ios <= 0 < sender.ios:
        raise NothingArrivedError("nothing of what was sent arrived")
    if section.protocol == "udp":
        return receiver.bytes
    # TCP loses nothing that was closed in order, so what was sent arrived; fio leaves the first part of a read that
    # came in two out of its count of bytes, so that alone would be too low
    arrived = max(receiver.bytes, (receiver.ios - receiver.short) * section.block_bytes)
    if arrived < (1 - _TCP_AGREEMENT) * sender.bytes:
        raise FioError(f"{sender.bytes} bytes were sent over TCP, but only {arrived} arrived")
    return sender.bytes
