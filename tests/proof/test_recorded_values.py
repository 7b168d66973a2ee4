"""What reported the arms apart is in the record of a proof: every live value that the plan toggled."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from advisor.profiles.requested import RequestedProfile
from advisor.proof.archive import load_proof, reanalyse_proof
from advisor.proof.profile import Means, prove_profile
from advisor.proof.records import Proof
from advisor.report.proof.page import proof_page
from advisor.report.proof.result import proof_text
from advisor.transaction.journal import Store
from tests.trees import host_of, listing, make_tree

from .fakes import FakeFio, calm_tree
from .sessions import WORKLOAD
from .test_bench import settings
from .test_protocol import SHORT

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
    proof = prove_profile(host_of(tree), asked, {}, chosen, Means(reconnect="true"), workloads=(WORKLOAD,), store=store)
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
