"""``sysctl:KEY`` — a kernel parameter below /proc/sys, persisted in sysctl.d (sysctl.d(5))."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from advisor.facts.settings import find_setting
from advisor.facts.settings.record import Setting
from advisor.facts.settings.value import explain_fields, is_text_key, out_of_bounds, refusal, to_canonical
from advisor.facts.system.memory import parse_meminfo
from advisor.facts.system.roles import LISTENERS
from advisor.host import Host, Missing, Step, observe
from advisor.host.numbers import is_count
from advisor.host.patterns import lazy_regex
from advisor.host.would_be import OF_FIRST_NETWORK, in_own_network
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile, with_last_word
from advisor.tunables.kind import NUMBERS, Capture, Effect, Kind, RefusedIdError, UnknownIdError
from advisor.tunables.link_driver import forwarding_preflight
from advisor.tunables.preflight import Preflight, SideEffect, refused_sysctl
from advisor.tunables.sysctl_group import NAMESPACES, group_of, judge_on_host, twin_of


def sysctl_path(key: str) -> str:
    """The file of a dotted key; a slash in it stands for a dot in a name (``net.ipv4.conf.eth0/10.mtu``)."""
    return "/proc/sys/" + key.translate({ord("."): "/", ord("/"): "."})


def _is_key(key: str) -> bool:
    # No name is made of dots alone: ``net.//.x`` would be net/../x. One that begins as a path is sysctl(8)'s own form.
    names = key.split(".")
    return "/" not in names[0] and all(re.fullmatch(r"[\w/:@+-]+", name) and name.strip("/") for name in names)


_MEMINFO = lazy_regex(r"^(\w+): +([0-9]{1,18})(?: kB)?$", re.MULTILINE)
_HINT = "a key is names with dots between, such as net.core.rmem_max"


class Sysctl(KernelFile, frozen=True):
    key: str

    id_form = "sysctl:{self.key}"

    @classmethod
    def parse(cls, rest: str) -> Sysctl:
        if not _is_key(rest):
            raise UnknownIdError(rest, kind="sysctl", hint=_HINT)
        why = refused_sysctl(rest)
        if why:
            raise RefusedIdError(rest, kind="sysctl", hint=why)
        return cls(rest)

    @property
    def setting(self) -> Setting | None:
        """The record of the key; None for one that is unknown here."""
        return find_setting(self.key)

    @property
    def takes_effect(self) -> Effect:
        return self.setting.takes_effect if self.setting else "now"

    def can_read(self, live: str) -> bool:
        return is_text_key(self.key) or NUMBERS.fullmatch(live) is not None

    def explain_absence(self, host: Host, missing: Missing) -> Missing:
        """Return why the key is not there: a capture holds a part of /proc/sys, a network namespace its own keys."""
        if not missing.is_absent or not host.is_live:
            return Missing("absent", "not in this capture") if missing.is_absent else missing
        is_own = any(re.fullmatch(pattern, self.key) for pattern, _ in NAMESPACES)
        is_of_host = self.setting is not None and self.key.startswith("net.") and not is_own
        return Missing("absent", OF_FIRST_NETWORK) if is_of_host and in_own_network() else missing

    @property
    def is_pool(self) -> bool:
        """Whether each who needs some of it needs them for itself, so that two wishes add up."""
        return self.setting is not None and self.setting.is_pool

    @property
    def path(self) -> str:
        return sysctl_path(self.key)

    @property
    def twin(self) -> str | None:
        """The key that says the same in another unit, and that is zero wherever this one is not."""
        return twin_of(self.key)

    def check_value(self, value: str) -> str | None:
        if self.key.endswith("_bytes") and self.twin and value == "0":
            return f"is refused by advisor, before the kernel is asked: {self.twin} is what to set instead"
        if '"' in value or "'" in value:
            return "quotes would be written into the kernel's value and refused there"
        if not value or re.search(r"[\0-\x1f\x7f]", value):
            return "needs one line of plain text"
        # A value that does not read back as it was written would roll back the whole transaction.
        folded = " ".join(value.split())
        read = to_canonical(self.key, folded)
        refused = refusal(self.key, read) or out_of_bounds(self.key, read)
        if refused:
            return f"is refused by advisor, before the kernel is asked: {refused}"
        incomplete = explain_fields(self.key, read)
        if incomplete:
            return incomplete
        return None if read == folded else f"is {read} to the kernel: write that"

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        header = f"# Kernel parameters of the profile {profile}.\n"
        edit = FileEdit(f"/etc/sysctl.d/90-advisor-{profile}.conf", "sysctl", self.key, value, header.encode())
        twins = () if self.twin is None else (msgspec.structs.replace(edit, key=self.twin),)
        return with_last_word(host, edit, profile, also=twins)

    def run_preflight(self, host: Host, before: str, after: str) -> Preflight:
        if before == after:
            return Preflight()
        refusal, notes = judge_on_host(host, self.key, before, after)
        if refusal:
            return Preflight(refusal=refusal)
        around = self._with_coupled(host, before)
        return msgspec.structs.replace(around, notes=(*notes, *around.notes))

    def measure_twin(self, host: Host, live: str) -> tuple[str, str] | Missing | None:
        """Of all memory but huge pages: the kernel's own base (what is free or reclaimable) changes all the time."""
        if self.twin is None or live != "0" or self.key.startswith("vm.overcommit"):
            return None
        other = host.read_int(sysctl_path(self.twin))
        if isinstance(other, Missing) or other == 0:
            return other if isinstance(other, Missing) else None
        sizes = parse_meminfo(host.read_or_empty("/proc/meminfo"))
        total = sizes.get("MemTotal", 0) - sizes.get("HugePages_Total", 0) * sizes.get("Hugepagesize", 0)
        if total <= 0:
            return Missing("unreadable", "no MemTotal in /proc/meminfo")
        if self.twin.endswith("_ratio"):
            amount = total * other // 100
            return str(amount), f"{self.twin} is {other}, of this host's memory {amount >> 20:,} MiB at most"
        percent = min(100, -(-100 * other // total))
        return str(percent), f"{self.twin} is {other >> 20:,} MiB, {percent} % of this host's memory"

    def _with_coupled(self, host: Host, before: str) -> Preflight:
        """What the kernel changes along with it, and how to go back."""
        if self.twin is None:
            siblings = tuple(coupled_side_effects(host, group_of(host, self.key)))
            around = forwarding_preflight(host, self.key, before)
            return msgspec.structs.replace(around, side_effects=(*siblings, *around.side_effects))
        twin = Sysctl(self.twin)
        live = observe(host, twin.probe)
        if isinstance(live, Missing):
            why = twin.explain_absence(host, live).why
            return Preflight(refusal=f"{twin.key} goes with it and cannot be read: {why}", state="unknown")
        sibling = SideEffect(twin.id, live, twin.probe, twin.make_steps(live))
        return Preflight(undo=self._back_to(before, twin, live), side_effects=(sibling,))

    def _back_to(self, before: str, twin: Sysctl, live: str) -> tuple[Step, ...]:
        """The pair as it was: whichever of the two was active is written, and the kernel zeroes the other."""
        if before != "0":
            return self.make_steps(before)
        if live != "0":
            return twin.make_steps(live)
        ratio = twin if twin.key.endswith("_ratio") else self
        # Both were zero. Bytes cannot be; a ratio can, but only one that changes zeroes the bytes.
        return (*ratio.make_steps("1"), *ratio.make_steps("0"))


def explain_commit_limit(host: Host, planned: Mapping[str, str]) -> str | None:
    """Return why strict accounting (vm/overcommit-accounting) would refuse memory to every program at once, with what
    is planned of its keys together; None where there is room, or the figures cannot be read."""
    start = "vm.overcommit_"
    own = {key.removeprefix(start): value for key, value in planned.items() if key.startswith(start)}
    mode = own.get("memory") or host.read_or_empty(sysctl_path(f"{start}memory")).strip()
    if not own or mode != "2":
        return None
    figures = {name: int(size) for name, size in _MEMINFO.findall(host.read_or_empty("/proc/meminfo"))}
    limit, asked = figures.get("CommitLimit"), figures.get("Committed_AS")
    part, ratio = (own.get(unit, "") for unit in ("kbytes", "ratio"))
    total, swap = figures.get("MemTotal"), figures.get("SwapTotal", 0)
    if is_count(part) or is_count(ratio):
        huge = figures.get("HugePages_Total", 0) * figures.get("Hugepagesize", 0)
        room = int(part) if is_count(part) else (total - huge) * int(ratio) // 100 if total is not None else None
        limit = None if room is None else swap + room
    if limit is None or asked is None or asked < limit:
        return None
    return (
        f"programs have asked for {asked // 1024} MiB (Committed_AS), and with 2 only {limit // 1024} MiB may be "
        "asked for (CommitLimit): no program could start; more swap or a larger vm.overcommit_ratio first"
    )


def coupled_side_effects(host: Host, keys: Iterable[str]) -> Iterator[SideEffect]:
    """Those of the keys that can be read and set, each with its value now."""
    for key in keys:
        one = Sysctl(key)
        live = observe(host, one.probe) if _is_key(key) and not refused_sysctl(key) else None
        if isinstance(live, str) and live:
            yield SideEffect(one.id, live, one.probe, one.make_steps(live), coupled=True)


KIND = Kind(
    name="sysctl",
    order=10,
    parse=Sysctl.parse,
    noun="kernel parameter",
    examples=(("sysctl:net.core.rmem_max", "8388608"),),
    capture=Capture(
        files=(
            ("/proc", ("loadavg",)),
            ("/proc/1", ("limits",)),
            ("/proc/sysvipc", ("shm",)),
            ("/proc/sys/kernel/pty", ("nr",)),
            ("/proc/sys/net/ipv4", ("tcp_available_congestion_control", "ip_unprivileged_port_start")),
            ("/proc/sys/net/netfilter", ("nf_conntrack_count",)),
        ),
        system_commands=(LISTENERS,),
    ),
    namespaces=NAMESPACES,
    written_by=frozenset({"tuned", "saptune"}),
)
