"""One plan carried out as one transaction: journal, apply, verify, roll back, watchdog, layers."""
