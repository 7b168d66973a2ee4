"""The choice of hardware: which machines with which volumes, or which drives and links, carry a demand.

    Demand + tables (+ a user's files) → Sizing

Nothing of a host is read and nothing is measured. A choice is listed where each figure that the demand needs is known
and large enough; where a table lacks a figure of a machine, the choice says so and comes last. Each limit names its
source. Prices are the user's own (`prices`). Nothing is imported here.
"""

from __future__ import annotations
