"""What the kernel makes of a value of a key: numbers are read to the base that their prefix says, words behind them are
not read, and some keys take a part of the numbers only (kernel/sysctl.c: proc_dointvec, proc_get_long)."""

from __future__ import annotations

import re
from collections.abc import Collection

from advisor.facts.settings import find_setting
from advisor.facts.settings.record import Value
from advisor.host.patterns import lazy_regex

# Lists of ports as net.ipv4.ip_local_reserved_ports has them (kernel: networking/ip-sysctl).

KEY = "net.ipv4.ip_local_reserved_ports"
# The kernel reads a number that begins with 0 to another base.
_NUMBER = "0|[1-9][0-9]{0,11}"
_PART = lazy_regex(rf"({_NUMBER})(?:-({_NUMBER}))?", re.ASCII)


def parse_ports(text: str) -> frozenset[int] | None:
    """The ports of ``8080,9148-9150``; None where the text is no such list."""
    spans: set[tuple[int, int]] = set()
    for part in filter(None, text.strip().split(",")):
        match = _PART.fullmatch(part.strip())
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if low > high:
            return None
        spans.add((low, min(high, 65535)))
    found: set[int] = set()
    above = 0
    # In order, so that what overlaps is counted once however often it is named.
    for low, high in sorted(spans):
        found.update(range(max(low, above), high + 1))
        above = max(above, high + 1)
    return frozenset(found)


def ports_text(ports: Collection[int]) -> str:
    """The list as the kernel prints it: in order, neighbours as one range."""
    spans: list[tuple[int, int]] = []
    for port in sorted(ports):
        if spans and spans[-1][1] == port - 1:
            spans[-1] = (spans[-1][0], port)
        else:
            spans.append((port, port))
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in spans)


# A number as the kernel's proc_get_long takes it: no plus sign, hexadecimal and octal by their prefix.
_WRITTEN_NUMBER = lazy_regex(r"-?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)
_MOST_DIGITS = 40
_INT = (-(1 << 31), (1 << 31) - 1)
_LONG = (-(1 << 63), (1 << 64) - 1)
_UNSIGNED = "kernel/sysctl.c: it has no sign, and a negative number is left out"
# Keys without a record whose words are no such numbers: text, lists and masks, hexadecimal in what is read back.
_TEXT = lazy_regex(
    r"kernel\.(hostname|domainname|core_pattern|modprobe|hotplug|poweroff_cmd|printk_devkmsg|ftrace_dump_on_oops)"
    r"|kernel\.(seccomp\..*|random\.(boot_id|uuid))|fs\.binfmt_misc\..*|sunrpc\..*_debug|net\.core\.(rps_default_mask|flow_limit_cpu_bitmap|netdev_rss_key)"
    r"|net\.ipv[46]\.(tcp_\w*congestion_control|tcp_available_ulp|tcp_fastopen_key)|net\.sctp\.cookie_hmac_alg"
    r"|net\.ipv6\.conf\..*\.stable_secret|net\.mptcp\.scheduler|net\.netfilter\.nf_log\..*|vm\.numa_zonelist_order"
    r"|.*(mask|bitmap)"
)


def value_of(key: str, text: str) -> Value:
    """Return the value with the integers that begin it; what follows them is no number and does not count."""
    found: list[int] = []
    for word in text.split():
        if not re.fullmatch(r"-?[0-9]{1,19}", word, re.ASCII):
            break
        found.append(int(word))
    return Value(key, " ".join(text.split()), tuple(found))


def refusal(key: str, value: str) -> str | None:
    """Why the kernel refuses a value for a known key; None where it accepts it or that is unknown.

    The kernel reads as many numbers as the key has and ignores what follows them after white space, so a comment
    there does no harm. Bounds of single keys are not checked, only what cannot be read as a number at all.
    """
    setting = find_setting(key)
    if setting is None:
        return None
    if setting.holds == "words":
        is_quoted = value.startswith(("'", '"'))
        return "the quotes become part of the value, which the kernel does not know" if is_quoted else None
    # No other white space separates numbers there.
    words = re.split("[ \t\n]+", value.strip(" \t\n"))[: len(setting.fields) or 1]
    if not words[0]:
        return "the value is empty"
    wrong = next((word for word in words if not _WRITTEN_NUMBER.fullmatch(word)), None)
    if wrong is not None:
        if "'" in wrong or '"' in wrong:
            return "the quotes become part of the value"
        return f"{wrong[:40]} is not a number"
    low, high = _LONG if setting.holds == "unsigned" else _INT
    too_large = next((word for word in words if not low <= _parse_value(word) <= high), None)
    return f"{too_large[:40]} is too large" if too_large else None


def kernel_number(word: str) -> int | None:
    """What the kernel reads of a word as a number (proc_get_long: ``0x`` is hexadecimal, a leading ``0`` octal); None
    where it refuses it."""
    return _parse_value(word) if _WRITTEN_NUMBER.fullmatch(word) and len(word) <= _MOST_DIGITS else None


def _parse_value(word: str) -> int:
    digits = word.removeprefix("-")
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits.startswith("0") else 10
    # Python refuses to convert thousands of digits; forty are too many for the kernel already.
    number = int(digits[:_MOST_DIGITS], base)
    return -number if word.startswith("-") else number


def explain_fields(key: str, value: str) -> str | None:
    """Why the numbers of a key are too few or do not rise, with what to write; None where they are neither.

    Advisor refuses them, not the kernel: it takes fewer of them and keeps the others, and takes most of these keys in
    any order: a buffer is then never larger than the least of them.
    """
    setting, numbers = find_setting(key), [kernel_number(word) for word in value.split()]
    names = setting.fields if setting else ()
    read = [number for number in numbers if number is not None]
    if not names or len(read) != len(numbers):
        return None
    shown = " ".join(name.upper() for name in names)
    if len(read) < len(names):
        rise = ", none below the one before it" if names[-1].islower() else ""
        return f"has {len(read)} of {len(names)} numbers: write {shown}{rise} (the kernel would keep the others)"
    falling = next((place for place in range(1, len(names)) if read[place] < read[place - 1]), None)
    if falling is None or not names[-1].islower():
        # What each number of semaphores is for has a name of its own, in capitals; they do not rise.
        return None
    return (
        f"has {names[falling]} {read[falling]} below {names[falling - 1]} {read[falling - 1]}: write {shown}, "
        "none below the one before it (the kernel would take it)"
    )


def is_text_key(key: str) -> bool:
    """Whether a key is known to hold words, a list or a mask, whatever it reads."""
    setting = find_setting(key)
    return _TEXT.fullmatch(key) is not None if setting is None else setting.holds == "words"


def to_canonical(key: str, value: str, *, numbers: int | None = None) -> str:
    """The value as the kernel shows it once it is set: ``050 # why`` is ``40``.

    ``numbers``: how many of them the key holds, where that is known of a host. What is not numbers, or not known to
    be, is returned unchanged, but for its blanks, of which one is left between two words.
    """
    folded = " ".join(value.split())
    if key == KEY and (ports := parse_ports(folded)) is not None:
        return ports_text(ports)
    if is_text_key(key):
        return folded
    setting = find_setting(key)
    words = re.split("[ \t\n]+", value.strip(" \t\n"))
    end = next((place for place, word in enumerate(words) if word.startswith("#")), len(words))
    most = numbers if setting is None else len(setting.fields) or 1
    read = [kernel_number(word) for word in words[:end][:most]]
    if not read or None in read:
        return folded
    return " ".join(map(str, read))


def out_of_bounds(key: str, value: str) -> str | None:
    """Why the kernel refuses numbers for a key, by its own documentation; None where it does not or is not known to."""
    setting = find_setting(key)
    read = [kernel_number(word) for word in value.split()]
    found = [number for number in read if number is not None]
    if setting is None or not read or len(found) < len(read):
        return None
    low = 0 if setting.low is None and setting.holds == "unsigned" else setting.low
    high, source = setting.high, setting.bounds_source or _UNSIGNED
    wrong = next((one for one in found if (low is not None and one < low) or (high is not None and one > high)), None)
    if wrong is not None:
        return f"{wrong} is not {f'from {low} on' if high is None else f'{low} to {high}'} ({source})"
    if setting.is_ordered and found != sorted(found):
        return f"{found[-1]} is less than {found[0]} ({source})"
    return None
