"""TuneD's built-in functions, ``${f:NAME:ARGUMENT:…}``: those without side effects, worked out from a host's facts.

What they give follows TuneD's own (tuned/profiles/functions), odd corners included. ``exec`` is never carried out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from advisor.facts.processors.cpulist import MAX_ID as MAX_CPUS
from advisor.facts.processors.cpulist import format_list
from advisor.facts.processors.power import parse_flags
from advisor.facts.system.identity import read_identity
from advisor.facts.tuned.regex import UnsafePatternError, search_text
from advisor.facts.unknown import Unknowns
from advisor.host import Host, Missing
from advisor.host.numbers import count_noun, is_count, whole_number
from advisor.host.patterns import lazy_regex

# CPU lists in TuneD's own form: as the kernel's, and with masks (``0x…``), exceptions (``^3``, ``!3``) and quotes.

# Longer than any number of 64 bits: one bit for each CPU.
_MASK = lazy_regex(r"(?:0[xX])?[0-9a-fA-F]+")


def unpack_cpus(text: str) -> list[int]:
    """The CPUs, sorted; none at all where a part of the list is no number, as TuneD has it."""
    words: list[str] = []
    excepted: list[int] = []
    mask: str | None = None
    for word in text.strip("'\"").split(","):
        if mask is not None and word:
            mask += word
        elif mask is not None:
            words.append(mask)
            mask = None
        elif word[:2].lower() == "0x":
            mask = word
        elif word[:1] in ("^", "!"):
            span = _parse_span(word[1:])
            if span is None:
                return []
            excepted.extend(span)
        elif word:
            words.append(word)
    if mask:
        words.append(mask)
    found: set[int] = set()
    for word in words:
        span = unpack_mask(word) if word[:2].lower() == "0x" else _parse_span(word)
        if span is None:
            return []
        found.update(span)
    return sorted(found - set(excepted))


def _parse_span(word: str) -> Sequence[int] | None:
    """The numbers of ``3`` or ``3-5``; None for what is no such thing, or beyond what a kernel can number."""
    first, dash, rest = word.partition("-")
    low = whole_number(first.strip())
    high = whole_number(rest.partition("-")[0].strip()) if dash else low
    if low is None or high is None:
        return None
    return range(max(low, 0), high + 1) if high < MAX_CPUS else None


def unpack_mask(mask: str) -> list[int]:
    """The CPUs of a hexadecimal mask, whose groups commas may separate; none for what is no mask."""
    digits = mask.replace(",", "")[: MAX_CPUS // 4].strip()
    if not _MASK.fullmatch(digits):
        return []
    bits = int(digits, 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1] if bits > 0 else []


def pack_cpus(cpus: Sequence[int]) -> list[str]:
    """``0-2``, ``5``: the spans of a sorted list."""
    text = format_list(cpus)
    return text.split(",") if text else []


def invert_cpus(cpus: Iterable[int], online: Iterable[int]) -> list[int]:
    """The online CPUs that are not among these."""
    return sorted(set(online) - set(cpus))


def format_mask(cpus: Iterable[int]) -> str:
    """A mask in groups of 32 bits, all of them eight digits wide."""
    digits = f"{sum(1 << cpu for cpu in set(cpus)):x}"
    digits = digits.zfill(-(-len(digits) // 8) * 8)
    return ",".join(digits[at : at + 8] for at in range(0, len(digits), 8))


_CPUS = "/sys/devices/system/cpu"
MAX_CPUINFO = 256 * 1024


class UnknownError(Exception):
    """The result of a function is unknown here; the text says why. The call stays as it is written."""


class AssertionFailedError(Exception):
    """An assertion of the profile does not hold: TuneD loads nothing of it."""


Function = Callable[[Host, Sequence[str]], "str | None"]


def call_function(host: Host, name: str, arguments: Sequence[str]) -> str | None:
    """What a function gives; None where TuneD leaves the call standing as it is.

    Raises UnknownError for one that is unknown or must not run, AssertionFailedError for an assertion that fails.
    """
    if name == "exec":
        raise UnknownError("exec runs a command, and nothing of an imported file is ever executed")
    if name not in FUNCTIONS:
        raise UnknownError(f"the function {name} is not known here")
    function, most, least = FUNCTIONS[name]
    if (most and len(arguments) > most) or len(arguments) < least:
        raise UnknownError(f"the function {name} is given {count_noun(len(arguments), 'argument')}")
    try:
        return function(host, arguments)
    except UnsafePatternError as error:
        raise UnknownError(f"{name}: {error}") from error


def _read_text(host: Host, path: str) -> str:
    text = host.read(path)
    if isinstance(text, Missing):
        raise UnknownError(f"{path}: {text.why}")
    return text


def _online_cpus(host: Host) -> list[int]:
    return unpack_cpus(_read_text(host, f"{_CPUS}/online"))


def _join_cpus(cpus: Sequence[int]) -> str:
    return ",".join(map(str, cpus))


def _assertion(_: Host, arguments: Sequence[str]) -> None:
    if arguments[1] != arguments[2]:
        raise AssertionFailedError(f"{arguments[0]}: {arguments[1]!r} is not {arguments[2]!r}")


def _assertion_non_equal(_: Host, arguments: Sequence[str]) -> None:
    if arguments[1] == arguments[2]:
        raise AssertionFailedError(f"{arguments[0]}: {arguments[1]!r} is what it must not be")


def _isolated_cores(host: Host, arguments: Sequence[str]) -> str | None:
    """All but the first CPUs of each package."""
    reserve = 1
    if arguments:
        if not is_count(arguments[0]):
            return None
        reserve = int(arguments[0][:9])
    packages: dict[str, list[int]] = {}
    for name in host.names(_CPUS):
        number = name.removeprefix("cpu")
        package = host.read(f"{_CPUS}/{name}/topology/physical_package_id")
        if name.startswith("cpu") and is_count(number) and isinstance(package, str) and is_count(package):
            packages.setdefault(package, []).append(int(number[:9]))
    return _join_cpus(sorted(cpu for cpus in packages.values() for cpu in sorted(cpus)[reserve:]))


def _queue_count(host: Host, arguments: Sequence[str]) -> str:
    # nproc prints a line.
    return arguments[0] if is_count(arguments[0]) else f"{len(_online_cpus(host))}\n"


def _cpuinfo_check(host: Host, arguments: Sequence[str]) -> str:
    cpuinfo = _read_text(host, "/proc/cpuinfo")[:MAX_CPUINFO]
    for pattern, result in zip(arguments[::2], arguments[1::2], strict=False):
        if search_text(pattern, cpuinfo, lines=True):
            return result
    return arguments[-1] if len(arguments) % 2 else ""


def _lscpu_check(_: Host, arguments: Sequence[str]) -> str:
    raise UnknownError("what lscpu prints is not read here")


def _ternary(_: Host, arguments: Sequence[str]) -> str:
    return arguments[2] if search_text(arguments[1], arguments[0]) else arguments[3]


def _kb2s(_: Host, arguments: Sequence[str]) -> str | None:
    number = whole_number(arguments[0].strip().removeprefix("+"))
    return None if number is None else str(number * 2)


def _s2kb(_: Host, arguments: Sequence[str]) -> str | None:
    number = whole_number(arguments[0].strip().removeprefix("+"))
    return None if number is None else str(round(number / 2))


def _virt_check(host: Host, arguments: Sequence[str]) -> str:
    kind = read_identity(host, Unknowns()).virtualization
    if kind is None:
        raise UnknownError("whether this is a virtual machine is unknown")
    return arguments[1] if kind == "none" else arguments[0]


def _pstate(host: Host, _: Sequence[str]) -> str:
    """Newer TuneD: active on processors with hardware-controlled performance states."""
    if not parse_flags(_read_text(host, "/proc/cpuinfo")[:MAX_CPUINFO]):
        raise UnknownError("the processor's flags are unknown")
    raise UnknownError("which driver Intel recommends for this processor is not known here")


def _cpus_of_file(host: Host, arguments: Sequence[str], file: str) -> list[int]:
    there = set(unpack_cpus(_read_text(host, f"{_CPUS}/{file}")))
    return [cpu for cpu in unpack_cpus(",,".join(arguments)) if cpu in there]


FUNCTIONS: Mapping[str, tuple[Function, int, int]] = {
    # Name: what works it out, the most arguments (0 for any number) and the least.
    "assertion": (_assertion, 3, 3),
    "assertion_non_equal": (_assertion_non_equal, 3, 3),
    "calc_isolated_cores": (_isolated_cores, 1, 0),
    "check_net_queue_count": (_queue_count, 1, 1),
    "cpuinfo_check": (_cpuinfo_check, 0, 2),
    "lscpu_check": (_lscpu_check, 0, 2),
    "cpulist2devs": (lambda _, given: ",".join(f"cpu{cpu}" for cpu in unpack_cpus(",".join(given))), 0, 0),
    "cpulist2hex": (lambda _, given: format_mask(unpack_cpus(",,".join(given))), 0, 0),
    "cpulist2hex_invert": (
        lambda host, given: format_mask(invert_cpus(unpack_cpus(",,".join(given)), _online_cpus(host))),
        0,
        0,
    ),
    "cpulist_invert": (
        lambda host, given: _join_cpus(invert_cpus(unpack_cpus(",,".join(given)), _online_cpus(host))),
        0,
        0,
    ),
    "cpulist_online": (lambda host, given: _join_cpus(_only_online(host, given)), 0, 0),
    "cpulist_pack": (lambda _, given: ",".join(pack_cpus(unpack_cpus(",,".join(given)))), 0, 0),
    "cpulist_present": (lambda host, given: _join_cpus(_cpus_of_file(host, given, "present")), 0, 0),
    "cpulist_unpack": (lambda _, given: _join_cpus(unpack_cpus(",,".join(given))), 0, 0),
    "hex2cpulist": (lambda _, given: _join_cpus(unpack_mask(given[0])), 1, 1),
    "intel_recommended_pstate": (_pstate, 0, 0),
    "kb2s": (_kb2s, 1, 1),
    "s2kb": (_s2kb, 1, 1),
    "regex_search_ternary": (_ternary, 4, 4),
    "strip": (lambda _, given: "".join(given).strip(), 0, 1),
    "virt_check": (_virt_check, 2, 2),
}


def _only_online(host: Host, arguments: Sequence[str]) -> list[int]:
    online = set(_online_cpus(host))
    return [cpu for cpu in unpack_cpus(",".join(arguments)) if cpu in online]


MAX_LENGTH = 64 * 1024
"""Of an expanded text: a function's result may hold its argument many times over."""


def expand_functions(host: Host, text: str, unresolved: list[str]) -> str:
    """The text with every call replaced by what it gives, innermost first, as TuneD's parser of one pass does.

    A call that cannot be worked out stays as it is, and ``unresolved`` says why. Raises AssertionFailedError.
    """
    if not text:
        return text
    return re.sub(r"\\(\$\{f:.*\})", r"\1", _Expansion(host, text, unresolved).run())


class _Expansion:
    def __init__(self, host: Host, text: str, unresolved: list[str]) -> None:
        self._host = host
        self._text = text
        self._unresolved = unresolved
        self._at = 0

    def run(self) -> str:
        opened: list[tuple[bool, int]] = []
        is_escaped = False
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "}":
                if not opened:
                    # TuneD gives up here, with what it has replaced so far.
                    return self._text
                was_escaped, start = opened.pop()
                if not was_escaped:
                    self._expand_call(start)
            elif self._text.startswith("${", self._at):
                opened.append((is_escaped, self._at))
            is_escaped = self._text[self._at : self._at + 1] == "\\"
            self._at += 1
        return self._text

    def _expand_call(self, start: int) -> None:
        words = re.split(r"(?<!\\):", self._text[start : self._at])
        if words[0] != "${f":
            return
        words = [word.replace("\\:", ":") for word in words]
        if len(words) < 2 or not re.match(r"\w+$", words[1]):
            self._unresolved.append("a call of a function without a name")
            return
        try:
            found = call_function(self._host, words[1], words[2:])
        except UnknownError as error:
            self._unresolved.append(str(error))
            return
        if found is None:
            return
        if len(self._text) + len(found) > MAX_LENGTH:
            self._unresolved.append(f"what {words[1]} gives is longer than any setting")
            return
        end = self._at
        self._text = self._text[:start] + found + self._text[end + 1 :]
        self._at = max(end + len(found) - (end - start + 1), 0)
