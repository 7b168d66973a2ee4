"""What a program may ask for, and what happens as long as no person has approved it."""

from advisor import operations
from advisor.errors import AdvisorError
from advisor.operations import approvals

host = operations.open_host(snapshot="node1.tar.gz")
made = approvals.request_plan(["socket-buffers-8m"], host=host)
print(made.fingerprint, len(made.changes), "changes")
assert approvals.parse_duration("10m") == 600
try:
    approvals.apply_approved(made.fingerprint)
except AdvisorError as refused:  # a person runs: advisor approve FINGERPRINT --for 10m
    print(refused.message)
