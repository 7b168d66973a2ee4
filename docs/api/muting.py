"""Accept a finding until a day, and see that it is muted."""

import os
from datetime import date
from pathlib import Path

from advisor import operations
from advisor.operations import muting

os.environ["ADVISOR_IGNORE_FILE"] = str(Path("ignore.toml").absolute())  # by default /etc/advisor/ignore.toml
host = operations.open_host(snapshot="node1.tar.gz")
(first, *_) = operations.scan(host).active
muting.add_muting(muting.MutingEntry(first.id, "replaced in spring", host="*", until=date(2999, 12, 31)))
print([one.label for one in muting.read_muting()])
assert first.id not in {one.id for one in operations.scan(host).active}
muting.remove_muting(first.id, host="*")
