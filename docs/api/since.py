"""Keep today's scan of a captured host, and what has changed since."""

import json

from advisor import operations
from advisor.operations import since

host = operations.open_host(snapshot="node1.tar.gz")
found = operations.scan(host)
path = since.keep_scan(json.dumps(operations.document(found)).encode(), found.provenance.scanned_at)
print(path, since.read_scan_file(path).hostname)
print(operations.scan(host, since=str(path)).difference)
