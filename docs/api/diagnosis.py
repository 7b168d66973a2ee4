"""What binds this host over the next second."""

from advisor.operations import diagnosis

found = diagnosis.diagnose_host(seconds=1)
for one in found.unknown:
    print("unknown:", one.fact, one.why)
