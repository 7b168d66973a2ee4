"""Which kind of tunable has a file below /sys, so that one thing has one id."""

from __future__ import annotations

import re

from advisor.errors import UsageError
from advisor.host import Host
from advisor.tunables.catalogue import all_kinds, parse_tunable


def owner_of(path: str, host: Host) -> str | None:
    """The id of another kind for this file; None where none has it."""
    forms = [form for kind in all_kinds() for form in kind.sysfs]
    real = host.real(path)
    for place in (path, real if isinstance(real, str) else path):
        for pattern, identity in forms:
            found = re.fullmatch(pattern, place)
            if found:
                try:
                    return parse_tunable(found.expand(identity)).id
                except UsageError:
                    break
    return None
