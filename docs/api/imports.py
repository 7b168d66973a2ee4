"""What a TuneD profile sets, as a profile of advisor's."""

from pathlib import Path

from advisor import operations
from advisor.operations import imports

host = operations.open_host(snapshot="node1.tar.gz")
print(dict(imports.list_importable(host)))

Path("tuned.conf").write_text("[sysctl]\nvm.swappiness=10\n")
found = imports.import_profile("tuned.conf", host=host)
print(imports.render_profile(found))
