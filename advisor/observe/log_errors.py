"""Requests that failed, and damage to file systems, by the kernel's log: kind ``log-error``.

Source: block/blk-core.c and blk-mq.c (blk_errors: ``I/O error, dev sda, sector 8 op 0x0:(READ)``; before 4.20 after
``print_req_error:``, ``blk_update_request:`` or ``end_request:``); fs/buffer.c (``Buffer I/O error on dev``);
drivers/nvme/host/pci.c (``nvme nvme0: I/O 12 QID 3 timeout, aborting``, ``controller is down; will reset``);
fs/ext4/super.c, fs/xfs/xfs_message.c and xfs_fsops.c, fs/btrfs/messages.c; Documentation/ABI/testing/dev-kmsg.
"""

from __future__ import annotations

from collections.abc import Callable

from advisor.host import Host, Missing
from advisor.host.kernel_log import read_kernel_log
from advisor.host.patterns import lazy_regex
from advisor.observe.sample import Reading

_RECORD = lazy_regex(r"([0-7]),([0-9]{1,20}),[0-9]{1,20},[^;\n]{0,40};([^\n]{1,400})")
_REQUEST = lazy_regex(
    r"(?:I/O|critical medium|timeout|protection|device offline|critical space allocation) error, dev ([\w!.-]{1,60}),"
)
_BUFFER = lazy_regex(r"Buffer I/O error on dev(?:ice)? ([\w!.-]{1,60}),")
_CONTROLLER = lazy_regex(r"nvme (nvme[0-9]{1,5}): (?:I/O [^\n]{0,80}\btimeout,|controller is down; will reset)")
_FILE_SYSTEM = lazy_regex(
    r"(?:EXT[234]-fs error \(device ([\w!.-]{1,60})\)"
    r"|XFS \(([\w!.-]{1,60})\): (?:[^\n]{0,80}?(?:Corruption|shut(?:ting)? ?down)|log I/O error)"
    r"|BTRFS (?:error|critical) \(device ([\w!.-]{1,60}))"
)
_REMOVABLE = lazy_regex(r"fd[0-9]+|sr[0-9]+|ram[0-9]+")
"""Drives without a medium fail whenever somebody looks for one."""
MOST_ERRORS = 64


def parse_log_errors(text: str) -> dict[str, dict[str, str]]:
    """The last errors of a log by the sequence number of their record: ``device``, ``kind`` (``request`` or
    ``filesystem``) and ``text``."""
    found: dict[str, dict[str, str]] = {}
    for line in text.split("\n"):
        if not any(word in line for word in ("rror", "orruption", "shut", "timeout,", "will reset")):
            continue
        record = _RECORD.match(line)
        if record is None:
            continue
        _, number, says = record.groups()
        request = _REQUEST.search(says) or _BUFFER.search(says) or _CONTROLLER.match(says)
        damage = None if request else _FILE_SYSTEM.search(says)
        device = next((name for name in (request or damage).groups() if name), "") if request or damage else ""  # type: ignore[union-attr]
        if device and not _REMOVABLE.fullmatch(device):
            kind = "request" if request else "filesystem"
            found[number] = {"device": device, "kind": kind, "text": says[:200]}
    return dict(list(found.items())[-MOST_ERRORS:])


def read_log_errors(host: Host, reading: Reading, read_log: Callable[[], str | Missing] = read_kernel_log) -> None:
    """Of the running host alone, and where its log may be read."""
    if not host.is_live:
        return
    text = read_log()
    if isinstance(text, Missing):
        # Without root that is part of what `observe_span` says about it.
        if host.is_root:
            reading.note_missing("log-error", text)
        return
    reading.ask("log-error")
    for number, words in parse_log_errors(text).items():
        reading.add("log-error", number, words=words)
