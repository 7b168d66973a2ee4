"""Which profiles fit a host and its declared workload, why, and why the others do not: facts and plans → judgement.

``outlooks`` asks what each profile would do here (a plan changes nothing); `recommend` judges, and is pure.
"""

from __future__ import annotations

from advisor.recommend.judgement import recommend
from advisor.recommend.records import Case, Figure, Fits, Outlook, Reason, Recommendation, Standing, declared, outlooks

__all__ = [
    "Case",
    "Figure",
    "Fits",
    "Outlook",
    "Reason",
    "Recommendation",
    "Standing",
    "declared",
    "outlooks",
    "recommend",
]
