"""What the host is: one file per subsystem; ``advisor.facts.host_facts`` reads them all.

Nothing is imported here: a command that verifies or puts back needs no reader, and start-up is a feature.
"""

from __future__ import annotations
