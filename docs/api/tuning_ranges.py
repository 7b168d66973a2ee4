"""The candidates of a declared range, each within the limits that a source gives."""

from advisor import operations
from advisor.operations import tuning_ranges

asked = tuning_ranges.parse_range("sysctl:net.core.rmem_max=1M..8M")
print(asked.tunable, asked.values)
for limit in tuning_ranges.cited_limits(asked.tunable, operations.open_host()):
    print(f"{limit.low} to {limit.high}: {limit.source}")
