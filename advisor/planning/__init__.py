"""What a profile means on this host, now. Computing a plan changes nothing.

``targets`` turns profiles and facts into wanted values, ``observations`` reads what is there (the only part that
touches the host), ``compute`` compares the two. The first and the last are pure: same host state, same profile, same
bytes. Nothing is imported here: what only reads a journal needs the ``records`` alone.
"""

from __future__ import annotations
