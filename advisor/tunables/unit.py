"""Kind ``unit:``: settings, NUMA placement and state of a unit of systemd."""

from __future__ import annotations

import re

from advisor.facts.processors.cpulist import format_list, parse_list
from advisor.host import Host, Missing, Probe, ReadCommand, RunCommand, Step
from advisor.host.patterns import lazy_regex
from advisor.tunables.edits import FileEdit, Persisted
from advisor.tunables.kind import Capture, Kind, StoredValue, Tunable
from advisor.tunables.preflight import Preflight

_SERVICE = r"(?P<unit>[\w:.\\@-]{1,247}\.service)"
RELOAD = (RunCommand(("systemctl", "daemon-reload")),)
_LIMITS = ("LimitNOFILE", "LimitMEMLOCK", "LimitNPROC", "LimitSTACK", "LimitCORE")
_BOUNDS = {"CPUWeight": (1, 10000), "IOWeight": (1, 10000), "Nice": (-20, 19), "OOMScoreAdjust": (-1000, 1000)}
DIRECTIVES = (*_LIMITS, *_BOUNDS, "TasksMax", "CPUAffinity")
_COUNT = lazy_regex(r"0|[1-9][0-9]{0,17}")


class ServiceValue(StoredValue, frozen=True):
    """What a running service reads when it is restarted."""

    unit: str

    kind = "unit"
    risk = "restart"
    takes_effect = "service-restart"

    @property
    def restart_command(self) -> RunCommand:
        return RunCommand(("systemctl", "restart", self.unit))


class UnitSetting(ServiceValue, frozen=True):
    """``unit:NAME.service:DIRECTIVE`` — a limit, weight or priority of a systemd service (systemd.exec(5)).

    Also systemd.resource-control(5): LimitNOFILE, LimitMEMLOCK, LimitNPROC, LimitSTACK, LimitCORE, CPUAffinity,
    CPUWeight, IOWeight, TasksMax, Nice and OOMScoreAdjust. Limits are in bytes or a number, ``infinity`` for none,
    ``1024:4096`` where the soft one differs. Like ``numa`` it is a drop-in that a running service reads when it is
    restarted.
    """

    directive: str

    id_form = "unit:{self.unit}:{self.directive}"

    id_pattern = lazy_regex(rf"{_SERVICE}:(?P<directive>{'|'.join(DIRECTIVES)})", re.ASCII)
    id_hint = f"write unit:NAME.service:DIRECTIVE, one of {', '.join(('numa', *DIRECTIVES))}"

    @property
    def probe(self) -> Probe:
        more = (f"{self.directive}Soft",) if self.directive in _LIMITS else ()
        more = ("CPUAffinityFromNUMA",) if self.directive == "CPUAffinity" else more
        properties = ",".join(("LoadState", self.directive, *more))
        words = ("systemctl", "show", f"--property={properties}", "--", self.unit)
        return ReadCommand(words, f"unit-setting:{self.directive}")

    def check_value(self, value: str) -> str | None:
        if self.directive == "CPUAffinity":
            try:
                is_canonical = bool(value) and format_list(parse_list(value)) == value
            except ValueError:
                is_canonical = False
            return None if is_canonical else "is not a list of CPUs such as 0-3,8"
        if self.directive in _BOUNDS:
            low, high = _BOUNDS[self.directive]
            fits = re.fullmatch(r"0|-?[1-9][0-9]{0,4}", value) and low <= int(value) <= high
            return None if fits else f"is not a whole number from {low} to {high}"
        # As systemd shows it again: plain numbers, and one alone where both limits are the same.
        has_soft = self.directive in _LIMITS
        soft, colon, hard = value.partition(":")
        if not all(one == "infinity" or _COUNT.fullmatch(one) for one in ((soft, hard) if colon else (soft,))):
            return "is not a whole number or infinity"
        if not colon:
            return None
        if not has_soft:
            return "has no soft limit with it"
        is_lower = soft != "infinity" and (hard == "infinity" or int(soft) < int(hard))
        return None if is_lower else "has a soft limit that is not below the hard one"

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        path = f"/etc/systemd/system/{self.unit}.d/50-advisor.conf"
        if self.directive == "CPUAffinity":
            return FileEdit(path, "unit-list", f"Service/{self.directive}", value, reload=RELOAD)
        return FileEdit(path, "section", "Service/", f"{self.directive}={value}", reload=RELOAD)


_PROPERTIES = "LoadState,NUMAPolicy,NUMAMask,CPUAffinity,CPUAffinityFromNUMA"
DEFAULT = "NUMAPolicy=default NUMAMask= CPUAffinity="


_ALONE = "CPUAffinity="


def binding_value(node: int, *, policy: str = "bind", cpus: str = "numa") -> str:
    """The value that places a service on one node's memory and CPUs; ``cpus`` by number where systemd cannot derive
    them from the node (before 244)."""
    return f"NUMAPolicy={policy} NUMAMask={node} CPUAffinity={cpus}"


def bound_cpus(cpus: str) -> str:
    """The value that places a service on CPUs, where systemd cannot bind memory (before 243)."""
    return _ALONE + cpus


class UnitNuma(ServiceValue, frozen=True):
    """``unit:NAME.service:numa`` — NUMA policy, nodes and CPU affinity of a systemd service (systemd.exec(5)).

    The value is the one line that the probe gives: ``NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa``, or
    ``CPUAffinity=0-23,48-71`` alone where systemd has no NUMAPolicy= (before 243): memory cannot be bound there. It is
    brought about by a drop-in and ``systemctl daemon-reload``; a running service applies it when it is restarted.
    """

    id_form = "unit:{self.unit}:numa"

    id_pattern = lazy_regex(f"{_SERVICE}:numa", re.ASCII)
    id_hint = "write unit:NAME.service:numa"
    accepted = lazy_regex(
        r"NUMAPolicy=(default|preferred|bind|interleave|local) NUMAMask=[\d,-]* CPUAffinity=(numa|[\d,-]*)"
        r"|CPUAffinity=[\d,-]*",
        re.ASCII,
    )
    wrong = f"is not a placement such as {binding_value(0)}"

    @property
    def probe(self) -> Probe:
        return ReadCommand(("systemctl", "show", f"--property={_PROPERTIES}", "--", self.unit), "unit-numa")

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        path = f"/etc/systemd/system/{self.unit}.d/50-advisor-numa.conf"
        if value.startswith(_ALONE):
            # systemd before 228 takes single numbers with blanks between them, and neither ranges nor commas.
            numbers = " ".join(map(str, parse_list(value.removeprefix(_ALONE))))
            return FileEdit(path, "unit-list", "Service/CPUAffinity", numbers, reload=RELOAD)
        return FileEdit(path, "section", "Service/", value, b"", reload=RELOAD)


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


class UnitState(Tunable, frozen=True):
    """``unit:NAME.service:state`` — whether systemd starts a unit at boot, and whether it runs: two words.

    The unit may be a service, a socket or a timer. The words are enabled or disabled, and active or inactive; a sense
    for each of them leaves the other as it is. Both come back on rollback. systemctl enable and disable keep the first
    in the unit's own links. A unit that is masked, or that cannot be enabled, stays as it is. Units that carry the way
    to this host, its disks or systemd itself are refused.
    """

    unit: str

    kind = "unit"
    risk = "restart"
    id_form = "unit:{self.unit}:state"

    id_pattern = lazy_regex(r"(?P<unit>[\w:.\\@][\w:.\\@-]{0,245}\.(?:service|socket|timer)):state", re.ASCII)
    id_hint = "write unit:NAME.service:state"
    # systemd knows more states than enabled and disabled; these stay as they are.
    accepted = lazy_regex(r"[a-z][a-z-]{0,30} (active|inactive)")
    wrong = "is not two words such as enabled active or disabled inactive"

    @property
    def why_refused(self) -> str | None:
        is_vital = _REFUSED.fullmatch(self.unit.rpartition(".")[0])
        return "the way to this host, its disks or systemd itself hang on it" if is_vital else None

    @property
    def probe(self) -> Probe:
        return ReadCommand(("/bin/sh", "-c", _READ, self.unit), "unit-state")

    def make_steps(self, value: str) -> tuple[Step, ...]:
        at_boot, runs = value.split(" ")
        verbs = [{"enabled": "enable", "disabled": "disable"}.get(at_boot), "start" if runs == "active" else "stop"]
        return tuple(RunCommand(("systemctl", verb, "--", self.unit)) for verb in verbs if verb)

    def make_edit(self, host: Host, value: str, *, profile: str) -> Persisted | Missing:
        return Persisted(_LINKS)

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
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
        if f"/{self.unit}" in host.read_or_empty("/proc/self/cgroup"):
            return "it is the unit that this command runs in"
        return None


def parse_unit(rest: str) -> Tunable:
    """The tunable of ``UNIT:state``, ``UNIT:numa`` or ``UNIT:DIRECTIVE``. Raises UsageError for what names none."""
    return {"state": UnitState, "numa": UnitNuma}.get(rest.rpartition(":")[2], UnitSetting).parse(rest)


KIND = Kind(
    name="unit",
    order=80,
    parse=parse_unit,
    noun="service",
    examples=(
        ("unit:beegfs-storage.service:numa", "NUMAPolicy=bind NUMAMask=0 CPUAffinity=numa"),
        ("unit:beegfs-storage.service:LimitNOFILE", "1048576"),
        ("unit:irqbalance.service:state", "disabled inactive"),
    ),
    capture=Capture(
        unit_properties=(
            *("NUMAPolicy", "NUMAMask", "CPUAffinity", "CPUAffinityFromNUMA", "UnitFileState", "ActiveState"),
            *("LimitNOFILE", "LimitNOFILESoft", "LimitMEMLOCK", "LimitMEMLOCKSoft", "LimitNPROC", "LimitNPROCSoft"),
            *("LimitSTACK", "LimitSTACKSoft", "LimitCORE", "LimitCORESoft"),
            *("CPUWeight", "IOWeight", "Nice", "OOMScoreAdjust", "TasksMax"),
        )
    ),
    namespaces=((".+", "mnt"),),
    written_by=frozenset({"tuned", "saptune"}),
    harm="Whoever needs the service misses it, or its load disturbs the others.",
)
