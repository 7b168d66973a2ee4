"""Compare captured hosts, and add up what their storage can carry together."""

from pathlib import Path

from advisor.operations import fleet_hosts

captures = [Path("node1.tar.gz"), Path("node2.tar.gz")]
found = fleet_hosts.compare_fleet(captures)
print(f"{found.alike} of {found.attributes} attributes agree")
for one in found.findings:
    print(one.severity, one.title)

cluster, left_out = fleet_hosts.add_up_ceilings(captures)
print(cluster.cluster.read_mb_s, dict(left_out))
