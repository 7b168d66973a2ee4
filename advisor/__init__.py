"""advisor: inspects a Linux storage or cluster host, tunes it, proves the gain, and puts it all back."""

from __future__ import annotations

__version__ = "0.1.0"
