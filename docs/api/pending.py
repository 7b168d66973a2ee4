"""Wait until somebody confirms a transaction, or it is rolled back."""

import time

from advisor import operations
from advisor.operations import pending


def wait_for_confirmation(transaction: str) -> str:
    """The state in which it ends."""
    while (record := pending.read_transaction(transaction)).state == "awaiting-confirmation":
        time.sleep(1)
    return record.state


for one in operations.status().records:
    print(one.id, wait_for_confirmation(one.id))
