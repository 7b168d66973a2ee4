"""What the host is: one file per subsystem; ``advisor.facts.host_facts`` reads them all.

Nothing is imported here: verify and rollback need no reader, and start-up time counts.
"""

from __future__ import annotations
