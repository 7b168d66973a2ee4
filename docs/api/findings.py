"""What fixes everything that can be fixed without an interruption, on a captured host."""

from advisor import operations
from advisor.operations import findings

host = operations.open_host(snapshot="node1.tar.gz")
first = findings.find_finding("1", host)
assert first is not None
print(first.id, [one.title for one in first.findings])

fix = findings.find_fix(all_safe=True, host=host)
print([one.profile.name for one in fix.asked], "by hand:", len(fix.manual))
plan = operations.plan(*fix.asked, host=host, settings=dict(fix.settings)) if fix.asked else None
