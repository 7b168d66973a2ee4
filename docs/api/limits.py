"""The narrowest stage of each storage path of a captured host, in MB/s."""

from advisor import operations
from advisor.operations import limits

found = limits.host_limits(operations.open_host(snapshot="node1.tar.gz"))
for path in found.paths:
    print(path.device, path.sustained)
for missing in found.unknown:
    print("unknown:", missing.what, missing.why)
