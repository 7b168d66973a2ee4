"""A rollback script for a profile, before anything is applied."""

from pathlib import Path

from advisor import operations
from advisor.operations import transactions

host = operations.open_host(snapshot="node1.tar.gz")
print(transactions.taken_out_by(host, operations.plan("socket-buffers-8m", host=host)))
Path("rollback.sh").write_text(transactions.script_for(host, "socket-buffers-8m", {}))
