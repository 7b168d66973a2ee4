"""Copy what a scan reads of this host into an archive, and read the archive like a host."""

from pathlib import Path

from advisor import operations
from advisor.operations import captures

size = captures.save_capture(operations.open_host(), Path("this-host.tar.gz"))
again = operations.scan(operations.open_host(snapshot="this-host.tar.gz"))
print(f"{size} bytes, {len(again.findings)} findings")

# For hosts without Python: run with `ssh node1 sudo sh -s < capture.sh > node1.tar.gz`.
Path("capture.sh").write_text(captures.capture_script())
