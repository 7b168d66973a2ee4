"""Files that follow bad advice, and the same files that do not."""

from __future__ import annotations

from tests.cases import read_cases

SITE = "/etc/sysctl.d/99-site.conf"
DATA = read_cases(__file__)

BASE = {**DATA["BASE"], **{f"/sys/devices/system/cpu/cpu{n}/topology/core_id": str(n) for n in range(4)}}
UDEV = "/etc/udev/rules.d/60-disks.rules"
RC_LOCAL = "/etc/rc.local"

# The rule, the file, its text that follows the advice, the text that does not.
SYSCTLS = DATA["SYSCTLS"]
FILES = DATA["FILES"]
ALL = [*((rule, SITE, bad, good) for rule, bad, good in SYSCTLS), *FILES]
