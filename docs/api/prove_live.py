"""Switch a value under the traffic that is there, and judge it by the service's own figure."""

from advisor.operations import measure, prove, prove_live

asked = prove.choose_profile(["sysctl:vm.swappiness=10"])
settings = measure.choose_settings(looks="any-time", seed=1)
options = prove_live.choose_live(["rate=command:./requests-per-second:higher:1/s"], limits=["rate < 100"], period=60)
print(asked.profile.name, options)


def prove_it() -> None:
    """Switch the value, after reading what would be switched."""
    proof = prove_live.prove_live(asked, settings, options, consent=print, values={}, say=print)
    print(proof.verdict, proof.reasons)
