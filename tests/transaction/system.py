"""A small system with one tunable of every kind, and the plan that changes them all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from advisor.facts.cpu import Cpu
from advisor.facts.host_facts import Facts
from advisor.facts.identity import Identity
from advisor.facts.memory import Memory, Sockets
from advisor.facts.numa import Numa
from advisor.host import Host
from advisor.planning.compute import make_plan
from advisor.planning.observations import observe_targets
from advisor.planning.records import Plan, PlanTarget
from advisor.transaction.apply import apply_plan
from advisor.transaction.journal import Record, Store
from advisor.transaction.rollback import roll_back
from advisor.transaction.side_effects import ItemOutcome
from tests.trees import host_of, make_command, make_tree

MACHINE = "0123456789abcdef0123456789abcdef"

LLTCONFIG = """
state="{root}/run/llt"
case "$1 $2" in
"-F query") echo "Current LLT flow control values (in packets):"; awk '{{ print "  " $1 " = " $2 }}' "$state" ;;
"-F "*) name=${{2%%:*}} value=${{2#*:}}
  grep -q "^$name " "$state" || {{ echo "unknown $name" >&2; exit 1; }}
  sed -i "s/^$name .*/$name $value/" "$state" ;;
*) echo "LLT is running" ;;
esac
"""

SYSTEMCTL = """
loaded="{root}/run/unit"
case $1 in
daemon-reload) cat "{root}"/etc/systemd/system/demo.service.d/*.conf > "$loaded" 2>/dev/null || : > "$loaded" ;;
show)
  policy=$(sed -n 's/^NUMAPolicy=//p' "$loaded" 2>/dev/null) mask=$(sed -n 's/^NUMAMask=//p' "$loaded" 2>/dev/null)
  cpus=$(sed -n 's/^CPUAffinity=//p' "$loaded" 2>/dev/null)
  from=no; [ "$cpus" = numa ] && from=yes
  printf 'LoadState=loaded\\nNUMAPolicy=%s\\nNUMAMask=%s\\nCPUAffinity=\\nCPUAffinityFromNUMA=%s\\n' \
    "${{policy:-n/a}}" "$mask" "$from" ;;
esac
"""

FILES: dict[str, str | bytes] = {
    "/etc/machine-id": MACHINE + "\n",
    "/etc/llttab": "set-node a\n# flow\nlink eth1 eth1 - ether - -\n",
    "/etc/sysctl.d/90-advisor-test.conf": "# kept by hand\nnet.core.rmem_max = 1\nvm.swappiness = 30",
    "/etc/systemd/network/keep.network": "",
    "/run/udev/data/c1:3": "",
    "/proc/sys/net/core/rmem_max": "212992\n",
    "/proc/sys/net/ipv4/tcp_rmem": "4096 131072 6291456\n",
    "/proc/irq/40/smp_affinity_list": "0-7\n",
    "/proc/sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n",
    "/sys/class/net/eth1/mtu": "1500\n",
    "/sys/class/net/eth1/ifindex": "3\n",
    "/sys/class/net/eth1.5/mtu": "1500\n",
    "/run/llt": "highwater 1000\nrporthighwater 900\n",
    "/run/unit": "",
}

TARGETS = (
    ("sysctl:net.core.rmem_max", "8388608", "at-least", 0),
    ("sysctl:net.ipv4.tcp_rmem", "4096 87380 8388608", ("at-least", "at-least", "at-least"), 0),
    ("irq:40:affinity", "0-3", "exactly", 50),
    ("llt:highwater", "2000", "exactly", 60),
    ("llt:rporthighwater", "1800", "exactly", 60),
    ("link:eth1:mtu", "9000", "exactly", 100),
    ("link:eth1.5:mtu", "9000", "exactly", 101),
    ("unit:demo.service:numa", "NUMAPolicy=bind NUMAMask=1 CPUAffinity=numa", "exactly", 200),
)


def build(where: Path) -> Host:
    """The system below ``where``/root, its commands in ``where``/bin."""
    root, commands = make_tree(where / "root", FILES), where / "bin"
    make_command(commands, "lltconfig", LLTCONFIG.format(root=root))
    make_command(commands, "systemctl", SYSTEMCTL.format(root=root))
    make_command(commands, "udevadm", "exit 0")
    return host_of(root, commands)


def store_of(where: Path) -> Store:
    return Store(str(where / "state"))


def bare_facts() -> Facts:
    """Facts of a host of which nothing is known but its machine-id; what a plan of fixed targets needs."""
    identity = msgspec.convert(dict.fromkeys(Identity.__struct_fields__), Identity, strict=False)
    return Facts(
        host=msgspec.structs.replace(identity, machine_id=MACHINE),
        cpu=Cpu(None, None, None, None, None, None, None, None, None),
        memory=Memory(None, None, 4096, None, None, (), Sockets(None, None)),
        numa=Numa((), None, None),
        links=(),
        irqs=(),
        sysctl={},
        sysctl_origin={},
        disks=(),
        filesystems=(),
        arrays=(),
        llt=None,
        unknown=(),
    )


def plan_of_values(
    host: Host,
    wanted: Mapping[str, str],
    *,
    runtime_only: bool = False,
    is_ranked: bool = False,
    known: Facts | None = None,
) -> Plan:
    """A plan of these values; ranked, they are set in this order."""
    targets = tuple(
        PlanTarget(name, value, "exactly", "why", "hurts", ("source",), "test", rank=place * is_ranked)
        for place, (name, value) in enumerate(wanted.items())
    )
    seen = observe_targets(host, targets, {})
    return make_plan(("test",), targets, (), seen, known or bare_facts(), runtime_only=runtime_only)


def apply_locked(host: Host, plan: Plan, store: Store) -> Record:
    with store.hold_lock():
        return apply_plan(host, plan, store)


def roll_back_locked(host: Host, record: Record, store: Store, *, force: bool = False) -> tuple[ItemOutcome, ...]:
    with store.hold_lock():
        return roll_back(host, record, store, force=force)


def plan_of(host: Host, only: Iterable[int] = range(len(TARGETS)), *, runtime_only: bool = False) -> Plan:
    """A plan for some of the targets; the machine's facts beyond its id do not matter here."""
    chosen = [TARGETS[number] for number in sorted(set(only))]
    targets = tuple(
        PlanTarget(name, value, sense, "why", "hurts", ("source",), "test", rank)  # type: ignore[arg-type]
        for name, value, sense, rank in chosen
    )
    seen = observe_targets(host, targets, {})
    return make_plan(("test",), targets, (), seen, bare_facts(), runtime_only=runtime_only)
