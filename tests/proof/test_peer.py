"""Two hosts for real: fio at both ends of a wire between namespaces, the far one started over a real sshd."""

from __future__ import annotations

import pytest

from advisor.errors import RefusedError
from advisor.host import live_host
from advisor.proof import fio
from advisor.proof.interrupt import Stop
from advisor.proof.metrics import RunFigures
from advisor.proof.path import find_peer
from advisor.proof.peer import SecondHostPeer
from advisor.proof.workloads import WORKLOADS, get_workload
from tests.known import known

from .second_host import FAR, FAR6, HERE, SecondHost

NETWORK = [name for name, workload in WORKLOADS.items() if workload.is_network]
SECONDS = 0.3


def run(second: SecondHost, name: str, peer: SecondHostPeer | None = None, seconds: float = SECONDS) -> RunFigures:
    job = fio.FioJob(get_workload(name), seconds, 0, 0)
    return second.inside(lambda: fio.run_fio(second.runner(peer), job, None, Stop())[0])


@pytest.mark.parametrize("name", NETWORK)
def test_both_ends_of_a_run_are_counted(second: SecondHost, name: str) -> None:
    found = run(second, name)
    assert found.received_bytes is not None
    assert 0 < found.received_bytes <= known(found.sent_bytes)
    assert found.value(get_workload(name).metric) > 0
    assert found.bandwidth_bytes_per_s == pytest.approx(found.received_bytes / found.runtime_seconds, rel=0.01)
    assert found.latency_p50_us > 0
    assert found.cpu_us_per_io > 0
    assert found.value("delivered") == pytest.approx(100 * found.received_bytes / known(found.sent_bytes))
    if "tcp" in name:
        assert found.value("delivered") == 100
    # nothing of it touched a disk
    assert (found.read_bytes, found.written_bytes) == (0, 0)


def test_over_ipv6(second: SecondHost) -> None:
    peer = second.peer(FAR6)
    assert run(second, "net.tcp-64k", peer).received_bytes
    assert run(second, "net.udp-8k-receive", peer).received_bytes


def test_the_peer_is_found_by_what_ssh_connects_to(second: SecondHost) -> None:
    found = second.inside(lambda: find_peer(live_host(), second.ssh(), "far", None, Stop()))
    assert (found.address, found.source, found.link) == (FAR, HERE, "h0")
    assert found.fio_version.startswith("fio-")


# -- refusals --------------------------------------------------------------------------------------------------------


def refusal(second: SecondHost, destination: str = "far", address: str | None = FAR) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        second.inside(lambda: find_peer(live_host(), second.ssh(), destination, address, Stop()))
    return caught.value


@pytest.mark.parametrize(
    ("configured", "words", "hint"),
    [
        ({"host_key": None}, "host key is not known", "ssh far"),
        ({"host_key": "other_key"}, "another one than before", "ssh-keygen -R"),
        ({"key": "other_key"}, "no key of this user is accepted", "ssh-copy-id far"),
        ({"client": "Host far\n  Port 2222\n"}, "no server listens", "sshd"),
    ],
)
def test_a_host_that_lets_nobody_in(second: SecondHost, configured: dict[str, str], words: str, hint: str) -> None:
    second.configure(**configured)
    error = refusal(second)
    assert words in error.message
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    ("address", "words"), [(HERE, "this host itself"), ("127.0.0.1", "this host itself"), ("203.0.113.9", "route")]
)
def test_an_address_that_is_no_peer(second: SecondHost, address: str, words: str) -> None:
    assert words in refusal(second, address=address).message
