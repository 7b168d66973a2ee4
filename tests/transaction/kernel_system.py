"""A small system with clocks, a latency device, modules, units and a scheduler, and stand-ins that keep its state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from advisor.host import Host
from advisor.planning.compute import make_plan
from advisor.planning.expansion import expand_targets
from advisor.planning.observations import observe_targets
from advisor.planning.records import Plan, PlanTarget
from tests.transaction.system import MACHINE, bare_facts
from tests.trees import host_of, make_command, make_tree

# What a stand-in of systemctl keeps: run/units/NAME holds "enabled active"; run/held the hexadecimal number held.
SYSTEMCTL = """
root="{root}"
[ "$1" = --no-block ] && shift
verb=$1
shift
for word; do unit=$word; done
state="$root/run/units/$unit"
set_word() {{
  read -r boot runs < "$state"
  case $1 in boot) boot=$2 ;; runs) runs=$2 ;; esac
  echo "$boot $runs" > "$state"
}}
case $verb in
daemon-reload) ;;
is-system-running) echo running ;;
enable) set_word boot enabled ;;
disable) set_word boot disabled ;;
start) set_word runs active ;;
stop)
  case $unit in
  advisor-cpu-dma-latency*) rm -rf "$root/run/held" "$root"/sys/fs/cgroup/system.slice/advisor-* ;;
  *) set_word runs inactive ;;
  esac ;;
show)
  [ "$unit" = --property=SystemState ] && {{ echo SystemState=running; exit 0; }}
  [ -e "$state" ] || {{ printf 'LoadState=not-found\\nActiveState=inactive\\n'; exit 0; }}
  read -r boot runs < "$state"
  load=loaded
  [ "$boot" = masked ] && load=masked
  printf 'LoadState=%s\\nActiveState=%s\\nUnitFileState=%s\\n' "$load" "$runs" "$boot" ;;
esac
"""
SYSTEMD_RUN = """
root="{root}"
for word; do last=$word; done
held=${{last#*printf }}
echo "${{held%% *}}" > "$root/run/held"
mkdir -p "$root/sys/fs/cgroup/system.slice/advisor-cpu-dma-latency-now.service"
"""
# The least of what is held: by us, and by another process, whose number run/other holds.
OD = """
root="{root}"
case "$*" in *cpu_dma_latency*) ;; *) exec /usr/bin/od "$@" ;; esac
least=2000000000
for file in held other; do
  [ -e "$root/run/$file" ] || continue
  one=$(($(cat "$root/run/$file")))
  [ "$one" -lt "$least" ] && least=$one
done
printf ' %11d\\n' "$least"
"""
MODPROBE = """
root="{root}"
case $1 in
--showconfig) cat "$root"/etc/modprobe.d/*.conf 2>/dev/null; exit 0 ;;
esac
for name in $(sed -n "s/^$1: //p" "$root/run/dependencies") "$1"; do
  grep -q "^$name " "$root/proc/modules" || echo "$name 16384 0 - Live 0x0" >> "$root/proc/modules"
done
"""
RMMOD = """
root="{root}"
for name; do
  grep -q "^$name 16384 0 " "$root/proc/modules" || {{ echo "rmmod: ERROR: Module $name is in use" >&2; exit 1; }}
  sed -i "/^$name /d" "$root/proc/modules"
done
"""
_POLICY: Mapping[str, str] = {
    "scaling_driver": "intel_pstate",
    "scaling_governor": "powersave",
    "scaling_available_governors": "performance powersave",
    "energy_performance_preference": "balance_performance",
    "energy_performance_available_preferences": "default performance balance_performance balance_power power",
    "scaling_min_freq": "800000",
    "scaling_max_freq": "2000000",
    "cpuinfo_min_freq": "800000",
    "cpuinfo_max_freq": "3500000",
}
_CPU = "/sys/devices/system/cpu"
FILES: dict[str, str | bytes] = {
    "/etc/machine-id": MACHINE + "\n",
    "/proc/sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n",
    "/proc/sys/kernel/osrelease": "6.1.0\n",
    "/proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=1 ro quiet mitigations=auto mitigations=off nosmt\n",
    "/proc/modules": "dep_a 4096 1 other, Live 0x0\nother 4096 0 - Live 0x0\n",
    "/lib/modules/6.1.0/modules.dep": "kernel/x/new-mod.ko.xz: kernel/x/dep-b.ko.xz kernel/x/dep-a.ko.xz\n"
    "kernel/x/dep-a.ko.xz:\nkernel/x/dep-b.ko.xz:\nkernel/x/lone.ko:\n",
    "/lib/modules/6.1.0/modules.builtin": "kernel/y/core-part.ko\n",
    "/run/dependencies": "new_mod: dep_a dep_b\n",
    "/run/units/demo.service": "enabled active\n",
    "/run/units/quiet.timer": "disabled inactive\n",
    "/run/units/hidden.service": "masked inactive\n",
    "/run/units/fixed.service": "static inactive\n",
    "/run/systemd/system/x": "",
    "/usr/lib/tmpfiles.d/x.conf": "",
    "/etc/modprobe.d/site.conf": "options new-mod depth=3\noptions other depth=1 width=9\n",
    # As systemd has some, which a name before its own does not get past.
    "/etc/modprobe.d/systemd.conf": "options new_mod width=0\n",
    "/etc/modules-load.d/site.conf": "# none\n",
    "/etc/default/grub": 'GRUB_CMDLINE_LINUX=""\n',
    "/usr/sbin/update-grub": "",
    "/sys/fs/cgroup/system.slice/cgroup.procs": "",
    "/dev/cpu_dma_latency": "",
    "/sys/kernel/debug/sched/migration_cost_ns": "500000\n",
    "/sys/kernel/debug/sched/preempt": "none (voluntary) full \n",
    "/sys/kernel/debug/sched/base_slice_ns": "3000000\n",
    "/sys/kernel/mm/ksm/run": "0\n",
    "/sys/module/other/parameters/depth": "8\n",
    "/sys/module/other/parameters/quick": "N\n",
    "/sys/devices/pci0/a/power/control": "auto\n",
    "/sys/devices/pci0/b/power/control": "on\n",
    "/sys/devices/pci0/a/mode": "fast [slow] none\n",
    f"{_CPU}/intel_pstate/no_turbo": "0\n",
    f"{_CPU}/intel_pstate/min_perf_pct": "10\n",
    f"{_CPU}/intel_pstate/max_perf_pct": "60\n",
    **{f"{_CPU}/cpufreq/policy{n}/{name}": f"{text}\n" for n in (0, 1, 10) for name, text in _POLICY.items()},
}
WANTED = {
    "intel_pstate:no_turbo": "1",
    "intel_pstate:min_perf_pct": "80",
    "intel_pstate:max_perf_pct": "100",
    "cpufreq:*:governor": "performance",
    "cpufreq:*:energy_performance_preference": "performance",
    "cpufreq:*:scaling_min_freq": "2500000",
    "cpufreq:*:scaling_max_freq": "3000000",
    "pm-qos:cpu_dma_latency": "10",
    "sched:migration_cost_ns": "5000000",
    "sched:preempt": "full",
    "sysfs:/sys/devices/pci0/*/power/control": "on",
    "sysfs:/sys/devices/pci0/a/mode": "fast",
    "module:new_mod": "loaded",
    "module:other:depth": "16",
    "module:other:quick": "1",
    "module:new_mod:option.width": "7",
    "unit:demo.service:state": "disabled inactive",
    "unit:quiet.timer:state": "enabled active",
}


def build(where: Path, files: Mapping[str, str | bytes | None] | None = None) -> Host:
    """The system below ``where``/root, its commands in ``where``/bin; ``files`` go over its own, or take them away."""
    merged = {path: text for path, text in {**FILES, **(files or {})}.items() if text is not None}
    root, commands = make_tree(where / "root", merged), where / "bin"
    scripts = {"systemctl": SYSTEMCTL, "systemd-run": SYSTEMD_RUN, "od": OD, "modprobe": MODPROBE, "rmmod": RMMOD}
    for name, script in scripts.items():
        make_command(commands, name, script.format(root=root))
    return host_of(root, commands)


def targets_of(wanted: Mapping[str, str], sense: str | tuple[str, ...] = "exactly") -> tuple[PlanTarget, ...]:
    return tuple(
        PlanTarget(name, value, sense, "why", "hurts", ("source",), "test")  # type: ignore[arg-type]
        for name, value in wanted.items()
    )


def plan_of(
    host: Host, wanted: Mapping[str, str], *, runtime_only: bool = False, sense: str | tuple[str, ...] = "exactly"
) -> Plan:
    targets, skipped = expand_targets(host, targets_of(wanted, sense))
    seen = observe_targets(host, targets, {})
    return make_plan(("test",), targets, skipped, seen, bare_facts(), runtime_only=runtime_only)


def values(plan: Plan) -> dict[str, tuple[str, str]]:
    """Tunable → before and after, in the plan's order."""
    return {one.tunable: (one.before, one.after) for one in plan.changes}


def reasons(plan: Plan) -> dict[str, tuple[str, str]]:
    """Tunable → state and reason of what is not done."""
    return {one.tunable: (one.state, one.reason) for one in plan.skipped}


def order(plan: Plan, names: Iterable[str]) -> list[str]:
    wanted = set(names)
    return [one.tunable for one in plan.changes if one.tunable in wanted]
