"""What reported the arms apart is in the record of a proof: every live value that the plan toggled."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from advisor.profiles.requested import RequestedProfile
from advisor.proof.archive import load_proof, reanalyse_proof
from advisor.proof.profile import prove_profile
from advisor.proof.records import ArmSetting, Proof
from advisor.proof.session import self_test
from advisor.report.proof import proof_text
from advisor.report.proof_page import proof_page
from advisor.transaction.journal import Store
from tests.trees import host_of, listing, make_tree

from .fakes import FakeFio, calm_host, calm_tree
from .sessions import WORKLOAD
from .test_protocol import SHORT, settings

SMALL = "212992"
SOCKETS = {f"net.core.{name}": SMALL for name in ("rmem_max", "wmem_max", "rmem_default", "wmem_default", "optmem_max")}
NFS = "27 1 0:99 / / rw - nfs4 server:/export rw\n"


def text_of(proof: Proof) -> str:
    return proof_text(proof, width=100, color=False)


@pytest.fixture
def tree(fake_fio: FakeFio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A captured host on NFS; fio is the fake one."""
    monkeypatch.setenv("PATH", f"{fake_fio.directory}:/usr/bin:/bin")
    made = calm_tree(tmp_path / "tree", proc__self__mountinfo=NFS, proc__meminfo="MemTotal: 16000000 kB\nDirty: 0 kB\n")
    return make_tree(made, {f"/proc/sys/{name.replace('.', '/')}": f"{value}\n" for name, value in SOCKETS.items()})


def prove_values(tree: Path, disk: Path, asked: str | RequestedProfile, **more: object) -> Proof:
    before = listing(tree)
    chosen = settings(disk, **more, **SHORT)
    store = Store(str(tree.parent / "state"))
    proof = prove_profile(host_of(tree), asked, {}, chosen, workloads=(WORKLOAD,), reconnect="true", store=store)
    assert listing(tree) == before
    return proof


def test_a_proof_of_a_profile_holds_the_values_that_were_toggled(tree: Path, disk: Path, tmp_path: Path) -> None:
    place = tmp_path / "kept.gz"
    proof = prove_values(tree, disk, "socket-buffers-8m", save_to=str(place))
    assert {one.tunable: (one.before, one.after) for one in proof.values or ()} == {
        f"sysctl:{name}": (SMALL, "8388608") for name in SOCKETS
    }
    assert all(one.why for one in proof.values or ())
    assert reanalyse_proof(load_proof(place)).values == proof.values
    assert msgspec.json.decode(msgspec.json.encode(proof))["values"][0]["after"] == "8388608"
    for said in (text_of(proof), proof_page(proof)):
        assert all(f"sysctl:{name}" in said for name in SOCKETS)
        assert "8388608" in said


def test_a_self_test_has_no_values_and_many_alike_are_one_line_of_the_text(
    fake_fio: FakeFio, disk: Path, tmp_path: Path
) -> None:
    proof = self_test(calm_host(tmp_path / "calm"), [WORKLOAD], settings(disk, **SHORT), runner=fake_fio.runner)
    assert proof.values == ()
    assert "Arms" not in text_of(proof)
    # an old record does not know them
    old = msgspec.json.decode(msgspec.json.encode(proof))
    del old["values"], old["session"]["values"]
    assert msgspec.convert(old, Proof).values is None
    interrupts = tuple(ArmSetting(f"irq:{number}:affinity", "0-31", "0-15") for number in range(24, 224))
    made = msgspec.structs.replace(proof, values=(*interrupts, ArmSetting("sysctl:vm.swappiness", "60", "10")))
    lines = text_of(made).splitlines()
    at = lines.index("Arms: in A → in B")
    assert [" ".join(line.split()) for line in lines[at + 1 : at + 3]] == [
        "irq:24-223:affinity (200) 0-31 → 0-15",
        "sysctl:vm.swappiness 60 → 10",
    ]
    changed = msgspec.structs.replace(made.session, self_test=False)
    assert proof_page(msgspec.structs.replace(made, session=changed)).count("irq:") == 200
