"""A plan for node1, as files for a configuration management tool and as a shell script."""

from pathlib import Path

from advisor import operations
from advisor.operations import exports

host = operations.open_host(snapshot="node1.tar.gz")
plan, bundle = exports.export_profiles(host, ["socket-buffers-8m"], {}, "files")
for name, content in bundle.files.items():
    print(f"{len(plan.changes)} changes, {name}:", content.decode(), sep="\n")

script = exports.write_apply_script(host, ["socket-buffers-8m"], {})
Path("apply-node1.sh").write_text(script)
