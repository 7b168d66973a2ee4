"""``unit:NAME.service:state`` — whether systemd starts a unit at boot, and whether it runs: two words.

The unit may be a service, a socket or a timer. The words are enabled or disabled, and active or inactive; a
sense for each of them leaves the other as it is. Both come back on rollback. systemctl enable and disable keep the
first in the unit's own links. A unit that is masked, or that cannot be enabled, stays as it is. Units that carry the
way to this host, its disks or systemd itself are refused.
"""

from __future__ import annotations

import re

from advisor.host import Host, Missing, Probe, ReadCommand, RunCommand, Step
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import Persisted
from advisor.tunables.preflight import Preflight
from advisor.tunables.tunable import DirectValue, RefusedIdError, UnknownIdError

_UNIT = lazy_regex(r"[\w:.\\@][\w:.\\@-]{0,245}\.(service|socket|timer)", re.ASCII)
_READ = 'systemctl show --property=LoadState,UnitFileState,ActiveState -- "$0" && systemctl show --property=SystemState'
_LINKS = "/etc/systemd/system"
_REFUSED = lazy_regex(
    r"(ssh|sshd|dropbear|telnetd?|NetworkManager|network|networking|network-manager|netplan|wickedd?|connman|dhcpcd"
    r"|dhclient|ifup|iwd|wpa_supplicant|openvpn|wg-quick|tailscaled|strongswan|ipsec|cloud-init|cloud-config|cloud-final|cloud-init-local|qemu-guest-agent|amazon-ssm-agent|waagent"
    r"|walinuxagent|google-guest-agent|getty|serial-getty|console-getty|user|user-runtime-dir|init|dbus|dbus-broker"
    r"|polkit|iscsi|iscsid|open-iscsi|multipathd|mdmonitor|blk-availability|lvm2-lvmpolld|llt|gab|vxfen|vcs|advisor"
    r"|systemd|nm)(-[\w.-]+)?(@.*)?",
    re.ASCII,
)
# During the start of the system a job for a unit would wait for the very script that waits for it.
_START = (
    'case $(systemctl is-system-running) in initializing) exec systemctl --no-block start -- "$0" ;;'
    ' *) exec systemctl start -- "$0" ;; esac'
)


class UnitState(DirectValue, frozen=True):
    unit: str

    risk = "restart"
    id_form = "unit:{self.unit}:state"

    @classmethod
    def parse(cls, rest: str) -> UnitState:
        unit, _, attribute = rest.rpartition(":")
        found = _UNIT.fullmatch(unit)
        if attribute != "state" or not found:
            raise UnknownIdError(rest, kind="unit", hint="write unit:NAME.service:state")
        if _REFUSED.fullmatch(unit.removesuffix(f".{found[1]}")):
            raise RefusedIdError(rest, kind="unit", hint="the way to this host, its disks or systemd itself hang on it")
        return cls(unit)

    @property
    def probe(self) -> Probe:
        return ReadCommand(("/bin/sh", "-c", _READ, self.unit), "unit-state")

    def check_value(self, value: str) -> str | None:
        # systemd knows more states than enabled and disabled; these stay as they are.
        fits = re.fullmatch(r"[a-z][a-z-]{0,30} (active|inactive)", value)
        return None if fits else "is not two words such as enabled active or disabled inactive"

    def make_steps(self, value: str) -> tuple[Step, ...]:
        at_boot, runs = value.split(" ")
        verbs = [{"enabled": "enable", "disabled": "disable"}.get(at_boot), "start" if runs == "active" else "stop"]
        return tuple(RunCommand(("systemctl", verb, "--", self.unit)) for verb in verbs if verb)

    def make_edit(self, host: Host, value: str, *, profile: str) -> Persisted | Missing:
        return Persisted(_LINKS)

    def run_preflight(self, host: Host, before: str, after: str, *, profile: str) -> Preflight:
        undo = [
            RunCommand(("/bin/sh", "-c", _START, self.unit))
            if (isinstance(step, RunCommand) and step.argv[:2] == ("systemctl", "start"))
            else step
            for step in self.make_steps(before)
        ]
        return Preflight(refusal=self._explain_kept(host, before, after), state="not-applicable", undo=tuple(undo))

    def _explain_kept(self, host: Host, before: str, after: str) -> str | None:
        is_now, wanted = before.split(" ")[0], after.split(" ")[0]
        if is_now.startswith("masked"):
            return "it is masked: whoever masked it does not want it to run"
        if wanted != is_now and not {wanted, is_now} <= {"enabled", "disabled"}:
            return f"it is {is_now}, which systemctl does not make {wanted}"
        own = host.read("/proc/self/cgroup")
        if not isinstance(own, Missing) and f"/{self.unit}" in own:
            return "it is the unit that this command runs in"
        return None
