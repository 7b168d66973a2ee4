"""All that sets values on a host, in the order of time: who has the last word, and what the next boot gives."""

from advisor.facts.writers.last_word import (
    BootSettings,
    is_as_said,
    last_word,
    last_write,
    next_boot,
    overriding_write,
    read_boot_settings,
    read_writes,
    rival_writes,
)
from advisor.facts.writers.programs import LastWord, Write

__all__ = [
    "BootSettings",
    "LastWord",
    "Write",
    "is_as_said",
    "last_word",
    "last_write",
    "next_boot",
    "overriding_write",
    "read_boot_settings",
    "read_writes",
    "rival_writes",
]
