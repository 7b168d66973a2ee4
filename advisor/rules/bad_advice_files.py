"""Bad advice in fstab, udev rules, multipath.conf, start-up scripts and other files outside sysctl.d.

Each rule names the lines that follow the advice (file and line), what is wrong with them, and what to do instead.
docs/advice.md lists all of it, with what files do not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from advisor.facts.site_settings import SiteSetting
from advisor.host.numbers import is_count
from advisor.rules import sources
from advisor.rules.queries import kernel_version
from advisor.rules.remedy import Decide, Remedy, RunShell, SetTunable, edit_file
from advisor.rules.rule import DeclaredWorkload, Facts, Finding, Rule, Severity, register

ORDER = 270

_BLK_MQ_ONLY = (5, 0)
_OLD_SCHEDULERS = {"noop": "none", "deadline": "mq-deadline", "cfq": "bfq"}
_LONG_QUEUE = 10_000
_THP_FILE = "/sys/kernel/mm/transparent_hugepage/enabled"
_OFFLOADS = frozenset(
    {
        *("tso", "gso", "tcp-segmentation-offload", "generic-segmentation-offload"),
        *("TCPSegmentationOffload", "TCP6SegmentationOffload", "GenericSegmentationOffload"),
    }
)


Lines = Callable[[Facts], Iterable[tuple[str, SiteSetting]]]
"""The lines of a host that follow the advice, each with a text of it; none where nobody followed it."""

Better = Callable[[Facts, SiteSetting], Remedy | None]
"""What to set in place of a line's value; None where nothing is to be set."""


class BadAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """A row of advice: the fields of `Rule`, ``instead``: what to do, ``lines``, which finds who follows it, and what
    is ``better`` than such a line.

    ``intent`` marks one that is right for some programs and wrong for others.
    """

    id: str
    title: str
    what: str
    why: str
    instead: str
    helps_when: str
    hurts_when: str
    sources: tuple[str, ...]
    lines: Lines
    better: Better = lambda *_: None
    severity: Severity = "advice"
    intent: bool = False
    contradictions: tuple[str, ...] = ()

    def register(self) -> None:
        """Adds the rule that fires where ``lines`` finds any."""

        def judge(facts: Facts, workload: DeclaredWorkload | None) -> Finding | None:
            found = dict(self.lines(facts))
            if not found:
                return None
            return made.found(
                why=self.why,
                evidence={"detail": tuple(found)},
                remedy=(
                    Decide(self.instead),
                    *dict.fromkeys(one for line in found.values() if (one := _open_line(line))),
                    *(new for line in found.values() if (new := self.better(facts, line))),
                ),
                intent=self.intent,
            )

        made = register(
            Rule(
                id=self.id,
                severity=self.severity,
                title=self.title,
                what=self.what,
                why=self.why,
                helps_when=self.helps_when,
                hurts_when=self.hurts_when,
                sources=self.sources,
                function=judge,
                module=__name__,
                contradictions=self.contradictions,
            )
        )


def _open_line(line: SiteSetting) -> RunShell | None:
    """A line may go on, or share itself with what is right."""
    is_text = line.path.startswith("/etc/") and not line.path.endswith(".service")
    return edit_file(line.path, line.line, f"change line {line.line} of {line.path}") if is_text else None


def _describe_setting(one: SiteSetting) -> str:
    said = f"{one.path}:{one.line}: {one.key}" + (f" = {one.value}" if one.value else "")
    return f"{said} for {one.scope}" if one.scope and one.scope != one.key else said


def _matching_settings(is_bad: Callable[[Facts, SiteSetting], bool]) -> Lines:
    def lines(facts: Facts) -> Iterator[tuple[str, SiteSetting]]:
        return ((_describe_setting(one), one) for one in facts.site_settings if is_bad(facts, one))

    return lines


def _is_ignored_count(facts: Facts, one: SiteSetting) -> bool:
    if one.key != "rr_min_io":
        return False
    from advisor.rules.multipath import is_request_based

    return is_request_based(facts) is not False


def _is_old_scheduler(facts: Facts, one: SiteSetting) -> bool:
    version = kernel_version(facts)
    is_new = version is not None and version >= _BLK_MQ_ONLY
    return is_new and one.key in ("queue/scheduler", "elevator") and one.value in _OLD_SCHEDULERS


def _is_long_queue(facts: Facts, one: SiteSetting) -> bool:
    is_number = is_count(one.value) and len(one.value) < 10
    return one.key in ("txqueuelen", "tx_queue_len") and is_number and int(one.value) >= _LONG_QUEUE


ROWS = (
    BadAdvice(
        id="advice.nobarrier",
        title="A file system is mounted without write barriers",
        what="The options nobarrier and barrier=0 in /etc/fstab.",
        why="ext4 then loses what a volatile disk cache holds at a power cut; XFS has not known the option since Linux "
        "4.19 and refuses to mount with it.",
        instead="delete the option; with a protected cache the barriers cost next to nothing",
        helps_when="Any disk or controller whose cache is not protected by a battery.",
        hurts_when="Every cache on the way is protected and an old kernel still pays for barriers. NetApp's roles for "
        "BeeGFS set it for metadata on such storage.",
        sources=(sources.KERNEL_XFS, sources.KERNEL_EXT4, sources.NETAPP_BEEGFS),
        severity="warning",
        lines=_matching_settings(lambda _, one: one.key == "nobarrier" or (one.key == "barrier" and one.value == "0")),
    ),
    BadAdvice(
        id="advice.write-through",
        title="A setting denies that a disk has a write cache",
        what='udev rules, tmpfiles.d and start-up scripts that write "write through" to queue/write_cache.',
        why="It does not change the disk: the kernel only stops sending flushes, and what the cache holds at a power "
        "cut is lost although it was synced.",
        instead="delete the line; the kernel asks the disk what it has",
        helps_when="Always, unless the cache is known to be protected.",
        hurts_when="The cache is protected and the disk says otherwise.",
        sources=(sources.BLOCK_SYSFS,),
        severity="warning",
        lines=_matching_settings(lambda _, one: one.key == "queue/write_cache" and one.value == "write through"),
    ),
    BadAdvice(
        id="advice.irqbalance-off",
        title="irqbalance is kept from running",
        what="Start-up scripts that stop irqbalance, and its unit masked, on a host with several CPUs.",
        why="Interrupts that nobody places then meet on the first CPUs.",
        instead="let it run, and exclude the interrupts or CPUs that are placed by hand (IRQBALANCE_BANNED_CPULIST)",
        better=lambda *_: RunShell(
            "systemctl unmask irqbalance.service && systemctl enable --now irqbalance.service", "let irqbalance run"
        ),
        helps_when="Links and disks without queues for every CPU.",
        hurts_when="Every interrupt is placed by hand or by the kernel itself: then it has nothing to do.",
        sources=(sources.ENA, sources.SCALING),
        lines=_matching_settings(
            lambda facts, one: one.key == "stops" and one.value == "irqbalance" and (facts.cpu.threads or 0) > 1
        ),
    ),
    BadAdvice(
        id="advice.queue-length",
        title="A transmit queue holds 10,000 packets or more",
        what="txqueuelen in start-up scripts and tx_queue_len in udev rules, of 10,000 and more.",
        why="What waits in such a queue is late when it leaves: heartbeats stand behind bulk data.",
        instead="delete the line: the default is 1000",
        helps_when="Latency matters on a link that bulk data shares.",
        hurts_when="The queueing discipline (fq) keeps flows apart, and one flow over a long path fills 1000.",
        sources=(sources.TUNING_NOTES, sources.SCALING),
        lines=_matching_settings(_is_long_queue),
    ),
    BadAdvice(
        id="advice.old-scheduler",
        title="A scheduler is set that this kernel does not have",
        what="noop, deadline and cfq in udev rules, tmpfiles.d, start-up scripts and on the kernel's command line, on "
        "Linux 5.0 or newer.",
        why="These kernels refuse the write with EINVAL, or ignore the parameter: the disk keeps its default, "
        "unnoticed.",
        instead="write none for noop, mq-deadline for deadline, bfq for cfq",
        helps_when="The scheduler was chosen on purpose.",
        hurts_when="The new scheduler then takes effect for the first time: measure.",
        sources=(sources.BLK_MQ, sources.BLOCK_SYSFS),
        lines=_matching_settings(_is_old_scheduler),
    ),
    BadAdvice(
        id="advice.no-merges",
        title="Merging of requests is switched off",
        what="udev rules, tmpfiles.d and start-up scripts that set queue/nomerges to 2.",
        why="Sequential requests that could be one stay many; it saves a little CPU on random I/O alone.",
        instead="delete the line, or 1, which still tries the cheap merge",
        helps_when="Anything sequential on the disk.",
        hurts_when="Nothing but random I/O on a device of millions of IOPS.",
        sources=(sources.BLOCK_SYSFS,),
        severity="info",
        lines=_matching_settings(lambda _, one: one.key == "queue/nomerges" and one.value == "2"),
    ),
    BadAdvice(
        id="advice.bfq-for-nvme",
        title="A udev rule gives NVMe drives the scheduler bfq",
        what="Rules and scripts that write bfq to queue/scheduler and name nvme.",
        why="bfq takes one lock for every request, about 1.9 microseconds, which holds a drive to 400,000 IOPS.",
        instead="write none in its place",
        helps_when="Fast drives with many small requests at once.",
        hurts_when="Shares of bandwidth per control group are in use, which bfq alone gives.",
        sources=(sources.BFQ,),
        lines=_matching_settings(
            lambda _, one: one.key == "queue/scheduler" and one.value == "bfq" and "nvme" in one.scope
        ),
    ),
    BadAdvice(
        id="advice.rr-min-io",
        title="multipath.conf sets rr_min_io, which is not used",
        what="rr_min_io in /etc/multipath.conf and its conf.d, on a kernel of 2.6.31 or newer. Before that it is what "
        "counts.",
        why="Request-based device-mapper, which every kernel since 2.6.31 uses, goes by rr_min_io_rq, whose default is "
        "1; rr_min_io is ignored.",
        instead="delete the line; where paths should change more seldom set rr_min_io_rq, or use path_selector "
        '"service-time 0"',
        helps_when="The number was meant to do something.",
        hurts_when="A bio-based map (queue_mode bio) does use it.",
        sources=(sources.MULTIPATH_CONF,),
        severity="info",
        lines=_matching_settings(_is_ignored_count),
    ),
    BadAdvice(
        id="advice.target-chooser",
        title="BeeGFS places files round robin",
        what="tuneTargetChooser = roundrobin in /etc/beegfs/beegfs-meta.conf.",
        why="BeeGFS has it for benchmarks: with many clients it lets them march over the targets in step. Dell's "
        "article used it for a benchmark.",
        instead="restart the metadata services for it to take effect",
        better=lambda _, line: SetTunable(f"file:{line.path}:tuneTargetChooser", "randomized"),
        helps_when="Several clients write at once, as in production.",
        hurts_when="A benchmark with as many streams as targets, which is what the figures were taken with.",
        sources=(sources.BEEGFS_META, sources.DELL_BEEGFS),
        lines=_matching_settings(lambda _, one: one.key == "tuneTargetChooser" and one.value == "roundrobin"),
    ),
    BadAdvice(
        id="advice.huge-pages-for-all",
        title="Transparent huge pages are set for every program",
        what="never or always on the kernel's command line, in tmpfiles.d or in a start-up script.",
        why="No one answer is right: BeeGFS says always, Dell switches it off, TuneD says never for Oracle and always "
        "for SQL Server.",
        instead="keep it where the vendor of the main program asks for it: advisor explain thp:enabled",
        better=lambda *_: SetTunable("thp:enabled", "madvise"),
        helps_when="Programs with different needs share the host.",
        hurts_when="The host runs one program, and its vendor asks for just this.",
        sources=(sources.BEEGFS_STORAGE, sources.DELL_BEEGFS, sources.TUNED_ORACLE),
        severity="info",
        intent=True,
        contradictions=("contradiction.transparent-huge-pages",),
        lines=_matching_settings(
            lambda _, one: one.key in ("transparent_hugepage", _THP_FILE) and one.value in ("never", "always")
        ),
    ),
    BadAdvice(
        id="advice.ifconfig-mtu",
        title="An MTU is set by ifconfig in a start-up script",
        what="ifconfig with mtu in rc.local, and in commands that udev rules run.",
        why="It runs once, after the network is up, and the link's manager knows nothing of it: the next reconnect "
        "resets it.",
        instead="let the link's own manager keep the MTU, and delete the line",
        better=lambda _, line: SetTunable(f"link:{line.scope}:mtu", line.value) if line.scope else None,
        helps_when="The link ever goes down and up again.",
        hurts_when="The script and the manager then both set it: delete the line when the manager does.",
        sources=(sources.IP_LINK, sources.WHITE_PAPER),
        lines=_matching_settings(lambda _, one: one.key == "ifconfig mtu"),
    ),
    BadAdvice(
        id="advice.offloads-off",
        title="Segmentation offloads are switched off",
        what="tso and gso off in start-up scripts, udev rules, ifcfg files and .link files.",
        why="The CPU then cuts every segment itself, which costs it several times as much at 10 Gbit/s and above.",
        instead="delete the line; measure both before it comes back",
        helps_when="The CPU is what bounds the link.",
        hurts_when="The driver's offload is known to be broken: then the line stays, with a remark.",
        sources=(sources.BEEGFS_NETWORK,),
        lines=_matching_settings(lambda _, one: one.key in _OFFLOADS),
    ),
)

for _row in ROWS:
    _row.register()
