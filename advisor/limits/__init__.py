"""Ceilings: what each path from application to medium can carry at most, and which part of it binds.

    Facts + PciAndNetwork + Declared → Limits

Pure but for ``pci_and_network``, which reads what a scan does not keep. A ceiling is read from the host, from a table
with its source, or declared by the user; what is none of these is unknown and listed with the reason, never estimated.
How each figure comes about is described in docs/limits.md. Nothing is imported here.
"""

from __future__ import annotations
