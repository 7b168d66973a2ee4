"""An exit code for a monitoring system."""

from advisor import operations
from advisor.operations import severity

found = operations.scan(operations.open_host(snapshot="node1.tar.gz")).active
print(2 if severity.has_severity(found, severity.check_severity("critical")) else 0)
