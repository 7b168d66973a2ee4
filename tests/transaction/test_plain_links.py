"""The script that a person reads, for what is set on links: on a real pair of links, with the ring of a stand-in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import msgspec
import pytest

from advisor.host import ReadEthtool, SetEthtool
from advisor.shell.plain_script import plain_script
from advisor.transaction.journal import Store
from tests.transaction.test_plain_script import SHELLCHECK, SHELLS
from tests.transaction.veth import Veth, veth
from tests.trees import make_command

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="making a network namespace needs root")

# It makes its ring smaller only for frames of 1500 bytes.
DRIVER = """\
case $1 in
-g) printf 'Pre-set maximums:\\nRX:\\t4096\\nCurrent hardware settings:\\nRX:\\t%s\\n' "$(cat {0})" ;;
-G) read -r mtu < "/sys/class/net/$2/mtu"; [ "$mtu" = 1500 ] && echo "$4" > {0} ;;
esac"""
BEFORE = ("1500", "256", "1000")


class Links:
    """Links of which a plan has set the MTU and, in the stand-in, a ring; nothing is left of its transaction."""

    def __init__(self, host: Veth) -> None:
        self.host, self.script, self.ring = host, host.where / "undo.sh", host.where / "ring"
        make_command(host.programs, "ethtool", DRIVER.format(self.ring))
        self.before = host.settled()
        host.advisor("apply", "link:a0:txqueuelen=77", "link:a0:mtu=1400", "--yes", "--confirm-within", "0")
        (record,) = Store(str(host.store)).read_records()
        host.forget()
        mtu, length = sorted(record.plan.changes, key=lambda one: one.tunable)
        steps = [(SetEthtool("a0", "rings", "rx", value),) for value in ("512", "256")]
        ring = msgspec.structs.replace(
            length, tunable="link:a0:ring.rx", before="256", after="512", probe=ReadEthtool("a0", "rings", "rx"),
            steps=steps[0], undo=steps[1],
        )  # fmt: skip
        plan = msgspec.structs.replace(record.plan, changes=(mtu, length, ring))
        made = plain_script(plan, {}, subject="it", fingerprint=plan.fingerprint, origin=record.origin)
        self.script.write_text(made or "")

    def set(self, mtu: int = 1400) -> None:
        self.host.ip(f"link set a0 mtu {mtu} txqueuelen 77")
        self.host.ip("address del 192.0.2.1/24 dev a0")
        self.ring.write_text("512\n")

    def run(self, *options: str, shell: list[str] = SHELLS[0]) -> subprocess.CompletedProcess[str]:
        words = self.host.words(*shell, str(self.script), *options)
        return subprocess.run(words, capture_output=True, text=True, check=False)

    def words(self, *, link: str = "a0") -> tuple[str, ...]:
        (shown,) = self.host.json(f"link show {link}")
        return (str(shown["mtu"]), self.ring.read_text().strip(), str(shown["txqlen"]))


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Links]:
    with veth(tmp_path_factory.mktemp("links")) as host:
        yield Links(host)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_links_are_as_before_and_a_second_run_does_nothing(links: Links, shell: list[str]) -> None:
    links.set()
    done = links.run(shell=shell)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert links.words() == BEFORE
    assert links.host.settled() == links.before
    assert links.run(shell=shell).returncode == 3


def test_it_is_short_and_clean(links: Links) -> None:
    assert len(links.script.read_text().splitlines()) <= 250
    done = subprocess.run([SHELLCHECK, "--shell=sh", links.script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_somebody_set_since_is_kept_unless_forced(links: Links) -> None:
    links.set(1450)
    done = links.run()
    kept = [line.split()[1].rstrip(":") for line in done.stdout.splitlines() if line.startswith("kept")]
    assert (done.returncode, kept, links.words()) == (5, ["link:a0:mtu"], ("1450", "512", "1000"))
    assert links.run("--force").returncode == 0
    assert links.words() == BEFORE


def test_a_link_is_found_by_another_name_and_no_other_by_its_name(links: Links) -> None:
    links.set()
    for line in ("a0 down", "a0 name c0", "c0 up", "b0 down", "b0 name a0", "a0 mtu 1400"):
        links.host.ip(f"link set {line}")
    done = links.run()
    assert (done.returncode, links.words(link="c0"), links.words()[0]) == (0, BEFORE, "1400"), done.stdout
    assert "a0 is now named c0" in done.stdout
    for line in ("a0 name b0", "b0 mtu 9000", "b0 up", "c0 down", "c0 name a0", "a0 up"):
        links.host.ip(f"link set {line}")


def test_it_refuses_another_namespace(links: Links) -> None:
    links.set()
    words = ["unshare", "-n", *SHELLS[0], str(links.script)]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 3
    assert links.run().returncode == 0


def test_a_transaction_with_a_watchdog_is_undone_by_its_own_script(links: Links) -> None:
    links.host.advisor("apply", "link:a0:mtu=1400", "--yes", "--confirm-within", "0")
    links.script.write_text(links.host.advisor("rollback-script"))
    assert len(links.script.read_text().splitlines()) <= 250
    assert links.run().returncode == 0
    assert links.host.standings() == {"0001": "rolled-back"}
    links.host.forget()
    links.host.ip("link delete a0")
    done = links.run()
    assert (done.returncode, "not there, under any name" in done.stdout) == (5, True)
