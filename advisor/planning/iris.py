"""InterSystems IRIS: which cpf ``for-each = "cpfs"`` selects, and how many huge pages hold its shared memory. Pure."""

from __future__ import annotations

from advisor.errors import UsageError
from advisor.facts.host_facts import Facts
from advisor.facts.iris import Iris
from advisor.facts.iris_memory import refuses_large_pages, wanted_pages
from advisor.planning.selection import Selected
from advisor.profiles.profile import Values
from advisor.tunables.file import FileKey

NO_IRIS = "no InterSystems IRIS instance is known on this host"


def select_cpfs(values: Values, facts: Facts) -> tuple[Selected, ...]:
    """The configuration files of ``--set cpfs=``, by path or by the instance's name, else of all instances.

    Raises UsageError for one that this host does not have.
    """
    asked = values.get("cpfs")
    wanted = asked if isinstance(asked, tuple) else ()
    for name in wanted:
        if not any(name in (one.name, one.cpf) for one in facts.iris):
            listed = ", ".join(one.cpf for one in facts.iris) or "none"
            raise UsageError(f"there is no IRIS instance {name!r} on this host", hint=f"cpfs: {listed}")
    chosen = (one for one in facts.iris if not wanted or one.name in wanted or one.cpf in wanted)
    return tuple(_select_cpf(one) for one in chosen)


def _select_cpf(one: Iris) -> Selected:
    if one.settings is None:
        return Selected({"cpf": "CPF"}, refusal=f"{one.cpf} could not be read", state="unknown")
    try:
        FileKey.parse(f"{one.cpf}:config/globals")
    except UsageError:
        return Selected({"cpf": "CPF"}, refusal=f"{one.cpf[:200]!r}: only a file named iris.cpf is changed")
    return Selected({"cpf": one.cpf}, why=f"It is that of {one.name}." if one.name else "")


def huge_pages(facts: Facts) -> Selected:
    """The pages that hold the shared memory of all instances and a spare, as vm.nr_hugepages counts them."""
    page = facts.memory.default_hugepage_bytes
    if not facts.iris:
        return Selected({}, refusal=NO_IRIS)
    if page is None:
        return Selected({}, refusal="the size of a huge page could not be read", state="unknown")
    if any(one.settings is None for one in facts.iris):
        return Selected({}, refusal="the cpf of an instance could not be read", state="unknown")
    asking = [one.settings for one in facts.iris if one.settings is not None and not refuses_large_pages(one.settings)]
    if not asking:
        return Selected({}, refusal="memlock makes every instance use no huge pages")
    pages = [wanted_pages(settings, page) for settings in asking]
    known = [count for count in pages if count is not None]
    if len(known) < len(pages):
        why = "globals of an instance is left to IRIS, so what it takes is not known: set it in the cpf first"
        return Selected({}, refusal=why)
    return Selected({}, value=str(sum(known)), why=f"Pages of {page >> 10:,} KiB.")
