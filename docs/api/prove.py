"""Prove a profile on this host, and apply it if the gain is proven."""

from pathlib import Path

from advisor.operations import measure, prove

asked = prove.choose_profile(["socket-buffers-8m"])
settings = measure.choose_settings(target=Path("."), quick=True, keep_if_gain=True)
second = prove.name_second_host("admin@node2", "192.0.2.2")
print(asked.profile.name, second)


def prove_it() -> None:
    """Toggle the profile and measure, with node2 as the peer of the network."""
    proof = prove.prove_profile(asked, settings, values={}, workloads=["net.tcp-64k"], second=second, say=print)
    print(proof.verdict, proof.reasons)
