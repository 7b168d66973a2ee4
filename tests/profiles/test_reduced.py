"""A profile without some of its values: what it says belongs to the values that are left."""

from __future__ import annotations

from advisor.profiles.lint import reduce_profile, write_toml
from advisor.profiles.profile import load

KEPT = "sysctl:net.ipv4.tcp_rmem"


def test_a_reduced_profile_hurts_where_its_own_values_do_and_cites_their_sources() -> None:
    whole = load("socket-buffers-8m")
    (line,) = (one for one in whole.tunables if one.tunable == KEPT)
    gone = {one.tunable for one in whole.tunables} - {KEPT}
    reduced = reduce_profile(whole, "only-one", without=gone, keep={KEPT}, settings={}, why="Measured.")
    assert [one.tunable for one in reduced.tunables] == [KEPT]
    assert (reduced.hurts_when, reduced.sources) == (line.hurts_when, line.sources)
    assert reduced.sources != whole.sources
    assert 'name = "only-one"' in write_toml(reduced)
