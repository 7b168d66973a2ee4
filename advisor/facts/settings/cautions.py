"""Values of kernel parameters that harm, and values that a kernel makes by itself from its machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from advisor.facts.settings.record import Judge, Machine, Value
from advisor.host.numbers import is_count

_TCP_SHARE_OF_MEMORY = 256
_INITIAL_SIZES = {"net.ipv4.tcp_rmem": 131_072, "net.ipv4.tcp_wmem": 16_384}
# The maxima that a kernel has by itself: their field, then the versions from which they are known, with bytes. Those of
# TCP shrink where memory is small (a 128th of it), so they count only where that is far away.
_OWN_MAXIMA = {
    "net.core.rmem_max": (0, (((6, 18), 4_194_304), ((3, 10), 212_992))),
    "net.ipv4.tcp_rmem": (2, (((6, 18), 33_554_432), ((3, 10), 6_291_456))),
    "net.ipv4.tcp_wmem": (2, (((3, 10), 4_194_304),)),
}


def judge_words(words: str) -> Judge:
    """Return what tells the values of a list: ``0``, ``!0`` for any other, ``>=75``, or a word."""

    def is_bad(value: Value, _: Machine) -> bool:
        return any(_fits(word, value) for word in words.split())

    return is_bad


def _fits(word: str, value: Value) -> bool:
    if word.startswith(">="):
        return value.first >= int(word[2:])
    if word.startswith("!"):
        return value.first != int(word[1:])
    return value.first == int(word) if is_count(word) else value.text == word


def own_maximum(key: str, machine: Machine) -> tuple[int, int]:
    """Return which field of a key is the maximum, and the bytes that this kernel has there by itself; 0 bytes where
    that is unknown."""
    field, known = _OWN_MAXIMA[key]
    own = next((size for since, size in known if machine.is_since(since)), 0)
    is_small = key.startswith("net.ipv4") and (machine.memory_bytes or 0) < own * _TCP_SHARE_OF_MEMORY
    return field, 0 if is_small else own


def _is_lowered(value: Value, machine: Machine) -> bool:
    field, own = own_maximum(value.key, machine)
    return len(value.numbers) > field and value.numbers[field] < own


def _raise_limit(value: Value, machine: Machine) -> str:
    field, own = own_maximum(value.key, machine)
    return raise_maximum(value.key, value.numbers, own) if field else str(max(value.first, own))


def raise_maximum(key: str, values: tuple[int, ...], maximum: int) -> str:
    """Return minimum, default and maximum of tcp_rmem or tcp_wmem with at least this maximum, each at least the one
    before it and none below ``values``; the kernel's own where those are no such three, or the default is below the
    minimum."""
    low, initial, most = values if len(values) == 3 else (4096, 0, 0)
    if initial < low:
        initial = max(low, _INITIAL_SIZES[key])
    return f"{low} {initial} {max(initial, most, maximum)}"


def _is_own_size(value: Value, machine: Machine) -> bool:
    """Whether the sizes of TCP are the kernel's own; the maximum is a 128th of the memory where that is less."""
    usual, share = (6_291_456, 33_554_432, 4_194_304), (machine.memory_bytes or 0) // 128
    if len(value.numbers) != 3 or value.numbers[:2] not in ((4096, 131_072), (4096, 87_380), (4096, 16_384)):
        return False
    return value.numbers[2] in usual or 0.75 * share <= value.numbers[2] <= 1.1 * share


def _is_own_share(value: Value, _: Machine) -> bool:
    """Whether limit / 4 × 3, limit, twice the first (tcp_init_mem, udp_init in net/ipv4)."""
    numbers = value.numbers
    return len(numbers) == 3 and numbers[0] == numbers[1] // 4 * 3 and numbers[2] == 2 * numbers[0]


def _is_fixed(value: Value, machine: Machine) -> bool:
    memory, numbers = machine.memory_bytes, value.numbers
    is_beyond = memory is not None and len(numbers) == 3 and numbers[2] * machine.page_bytes > memory // 2
    return len(numbers) == 3 and (is_beyond or len(set(numbers)) == 1)


_RESERVE_SHARE = 0.03
# For huge pages the kernel itself keeps up to a twentieth of the memory free, and no more than this in KiB: 22,528 for
# each of twelve zones (mm/khugepaged.c, set_recommended_min_free_kbytes).
_OWN_RESERVE = 0.05
_OWN_RESERVE_KB = 270_336


def _largest_reserve(machine: Machine) -> int:
    """The most that may be kept free, in KiB: 3 % of the memory, and what the kernel keeps by itself."""
    kib = (machine.memory_bytes or 0) // 1024
    return max(int(kib * _RESERVE_SHARE), min(int(kib * _OWN_RESERVE), _OWN_RESERVE_KB))


BAD: Mapping[str, Judge] = {
    "advice.tcp-mem-fixed": _is_fixed,
    "advice.tcp-sizes-equal": lambda value, _: len(value.numbers) == 3 and len(set(value.numbers)) == 1,
    "advice.without-effect": lambda value, machine: (
        value.first not in (4096, machine.page_bytes) if value.key.endswith("_min") else value.first == 1
    ),
    "advice.maxima-lowered": _is_lowered,
    "advice.tcp-tw-reuse": lambda value, machine: value.first == 1 or (value.first > 1 and machine.is_before((4, 19))),
    "network.initial-window-lowered": lambda value, machine: (
        len(value.numbers) == 3 and 0 < value.numbers[1] < 131_072 and machine.is_since((5, 0))
    ),
    "advice.min-free-large": lambda value, machine: (
        machine.memory_bytes is not None and value.first > _largest_reserve(machine)
    ),
    "advice.zone-reclaim": lambda value, machine: value.first != 0 and not machine.is_such("binds-services"),
}
"""What tells the values of a caution that do not stand in its section."""
BETTER: Mapping[str, Callable[[Value, Machine], str]] = {
    "advice.tcp-sizes-equal": lambda value, machine: raise_maximum(
        value.key, (), max(value.numbers[2], own_maximum(value.key, machine)[1])
    ),
    "advice.maxima-lowered": _raise_limit,
    "network.initial-window-lowered": lambda value, _: raise_maximum(
        value.key, (value.numbers[0], 131_072, value.numbers[2]), 131_072
    ),
    "advice.min-free-large": lambda _, machine: f"<={_largest_reserve(machine)}",
    "advice.tcp-tw-reuse": lambda _, machine: "2" if machine.is_since((4, 19)) else "0",
    "advice.old-lore": lambda value, _: "cubic" if value.text == "htcp" else "0",
}
"""Better values that depend on the host or on the value."""
DERIVES: Mapping[str, Judge] = {
    **dict.fromkeys(("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"), _is_own_size),
    **dict.fromkeys(("net.ipv4.tcp_mem", "net.ipv4.udp_mem"), _is_own_share),
    "net.ipv4.tcp_max_syn_backlog": lambda value, _: value.first >= 128 and value.first & (value.first - 1) == 0,
    "vm.min_free_kbytes": lambda value, machine: value.first <= _largest_reserve(machine),
    "kernel.pid_max": lambda value, machine: value.first in (32_768, 4_194_304, 1024 * (machine.cpus or 0)),
    "fs.file-max": lambda value, machine: 0.75 <= 10240 * value.first / (machine.memory_bytes or 1) <= 1.25,
}
"""Whether the kernel of such a machine has a value of the key by itself, without a file that sets it."""
