"""How much shared memory an InterSystems IRIS instance asks for, by its cpf.

Sources: InterSystems Configuration Parameter File Reference: ``globals`` (a list of sizes in MB, their sum counts),
``routines`` (0: a tenth of the 8-KB global buffers, 80 to 1,020 MB), ``gmheap`` (0: 3 % of the global buffers, 307,200
to 2,097,000 KB). MB and KB are binary there.
"""

from __future__ import annotations

from advisor.facts.cpf_text import Cpf

MIB = 1 << 20
SPARE_PERCENT = 5
"""What is added for control structures that no parameter names; InterSystems' notes say about as much."""
_LARGE_PAGES_OFF = 32
_EIGHT_KB = 2
_BLOCK_SIZES = 6


def globals_bytes(cpf: Cpf) -> int | None:
    """The database cache; None where the file leaves it to IRIS, or gives no size."""
    return sum(cpf.globals_mb) * MIB or None


def shared_bytes(cpf: Cpf) -> int | None:
    """Database cache, routine cache and shared memory heap together; None where the database cache is unknown."""
    cache = globals_bytes(cpf)
    if cache is None:
        return None
    low, high = (307_200, 2_097_000)
    return cache + _routines_mb(cpf) * MIB + (cpf.gmheap_kb or min(max(cache * 3 // 100 // 1024, low), high)) * 1024


def pages_for(size_bytes: int, page_bytes: int) -> int:
    """How many huge pages hold that many bytes: 294,912 of 2 MiB for 589,824 MB."""
    return -(-size_bytes // page_bytes)


def wanted_pages(cpf: Cpf, page_bytes: int) -> int | None:
    """The huge pages to reserve for an instance, spare included; None where its shared memory is unknown."""
    size = shared_bytes(cpf)
    return None if size is None else pages_for(size + size * SPARE_PERCENT // 100, page_bytes)


def refuses_large_pages(cpf: Cpf) -> bool:
    """Whether memlock keeps IRIS from using huge pages."""
    return bool((cpf.memlock or 0) & _LARGE_PAGES_OFF)


def _routines_mb(cpf: Cpf) -> int:
    if len(cpf.routines_mb) == _BLOCK_SIZES:
        return sum(cpf.routines_mb)
    low, high = (80, 1020)
    asked = cpf.routines_mb[0] if cpf.routines_mb else 0
    if asked:
        return max(asked, low)
    eight = cpf.globals_mb[_EIGHT_KB] if len(cpf.globals_mb) > _EIGHT_KB else 0
    return min(max(eight // 10, low), high)
