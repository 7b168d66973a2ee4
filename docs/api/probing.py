"""Whether the path to a peer carries jumbo frames."""

from advisor.operations import probing

survey = probing.probe_peers(["127.0.0.1"], mtu=9000, count=2)
for reach in survey.reaches:
    print(reach.peer.address, reach.path_mtu, survey.carries(reach))
