"""The ceiling of a captured host as a whole, and the services that use its storage."""

from advisor import operations
from advisor.operations import pictures

host = operations.open_host(snapshot="node1.tar.gz")
facts, services = pictures.find_services(host, operations.scan(host).facts)
ceiling = pictures.host_ceiling(host, facts)
print([one.unit for one in services], ceiling and (ceiling.read_mb_s, ceiling.write_mb_s))
