"""Which disks and arrays a line of a profile is for, and why others are not."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.errors import UsageError
from advisor.facts.block.arrays import Array
from advisor.facts.block.disks import KINDS, Disk
from advisor.facts.clusters.iris import Iris, refuses_large_pages, wanted_pages
from advisor.facts.host_facts import Facts
from advisor.facts.processors.cpulist import format_list
from advisor.facts.processors.numa import near_cpus
from advisor.facts.processors.pci import Irq
from advisor.planning.selectors import Fit, Selected, combine_fits, matches_any, name_fit, select_named, word_fit
from advisor.profiles.profile import Only, Values, Wanted
from advisor.tunables.block import is_device_name
from advisor.tunables.file import FileKey


def select_disks(wanted: Wanted, values: Values, facts: Facts) -> tuple[Selected, ...]:
    """The disks of ``--set disks=``, else all, as far as ``only`` lets them pass. Raises UsageError for a name that is
    no disk of this host."""
    only = wanted.only or Only()
    chosen = select_named(facts.disks, lambda disk: (disk.name,), values.get("disks"), "disk")
    found = ((disk, _judge_disk(disk, only)) for disk in chosen)
    return tuple(_make_selected("disk", disk.name, unclear) for disk, unclear in found if unclear is not None)


def select_arrays(wanted: Wanted, values: Values, facts: Facts) -> tuple[Selected, ...]:
    """The arrays of ``--set arrays=``, by the kernel's name or their own, else all, as far as ``only`` lets them pass.

    Raises UsageError for a name that is no array of this host.
    """
    only = wanted.only or Only()
    chosen = select_named(_with_queues(facts), lambda array: (array.name, array.device), values.get("arrays"), "array")
    if wanted.tunable.startswith("md:"):
        chosen = tuple(array for array in chosen if array.manager == "md")
    found = ((array, _judge_array(array, only, facts)) for array in chosen)
    return tuple(
        _make_selected("array", array.device, unclear, "" if array.name == array.device else f"It is {array.name}.")
        for array, unclear in found
        if unclear is not None
    )


def _with_queues(facts: Facts) -> tuple[Array, ...]:
    """Arrays with a queue of their own: that of a controller's volume is a disk's, and VxVM's volumes have none that is
    documented."""
    return tuple(array for array in facts.arrays if array.manager not in ("controller", "vxvm"))


def explain_none_chosen(wanted: Wanted, values: Values, facts: Facts) -> str:
    """Why no disk or array is selected."""
    what = "disk" if wanted.for_each == "disks" else "array"
    here = [disk.name for disk in facts.disks] if what == "disk" else [array.name for array in _with_queues(facts)]
    if not here:
        return f"this host has no {what}s that a scan knows"
    asked = values.get(f"{what}s")
    among = f" among --set {what}s={','.join(asked)}" if isinstance(asked, tuple) and asked else ""
    wants = only_words(wanted.only) or ("md array" if wanted.tunable.startswith("md:") else "such")
    return f"no {what}{among} fits ({wants}); {what}s here: {', '.join(here)}"


def only_words(only: Only | None) -> str:
    """``nvme, not rotational``: what a line's ``only`` asks for; empty where it asks for nothing."""
    if only is None:
        return ""
    turning = {None: "", True: "rotational", False: "not rotational"}[only.rotational]
    sizes = [f"at least {only.min_bytes} bytes"] if only.min_bytes is not None else []
    sizes += [f"at most {only.max_bytes} bytes"] if only.max_bytes is not None else []
    sizes += [f"at least {only.min_mbps} Mbit/s"] if only.min_mbps is not None else []
    words = (only.names, only.kinds, only.levels, only.transports, only.models, only.drivers)
    lists = [" or ".join(some) for some in words if some]
    return ", ".join((*lists, *([turning] if turning else []), *sizes))


def _make_selected(place: str, name: str, unclear: str, why: str = "") -> Selected:
    if not is_device_name(name):
        return Selected({place: "DEVICE"}, refusal=f"{name[:80]!r} is no name that a setting could be given by")
    if unclear:
        return Selected({place: name}, refusal=f"whether it is meant is unknown: {unclear}", state="unknown")
    return Selected({place: name}, why=why)


def _judge_disk(disk: Disk, only: Only) -> str | None:
    """None for a disk that is not meant, the reason where that is unknown, else empty."""
    return combine_fits(
        name_fit((disk.name,), only),
        word_fit("kind", disk.kind, only.kinds),
        word_fit("transport", disk.detail.get("transport") or ("pcie" if disk.pci else None), only.transports),
        _fit_model(disk.model, only),
        _fit_size(disk.size_bytes, only),
        _fit_rotation(disk.rotational, only),
    )


def _judge_array(array: Array, only: Only, facts: Facts) -> str | None:
    by_name = {disk.name: disk.rotational for disk in facts.disks}
    below = {by_name.get(name) for name in array.disks} or {None}
    return combine_fits(
        name_fit((array.name, array.device), only),
        word_fit("kind", array.manager, only.kinds),
        word_fit("level", array.level, only.levels),
        _fit_size(array.size_bytes, only),
        _fit_rotation(True if True in below else None if None in below else False, only),
    )


def _fit_model(model: str | None, only: Only) -> Fit:
    if not only.models:
        return "its model", True
    return "its model", None if model is None else matches_any((model.strip(),), only.models)


def _fit_size(size: int | None, only: Only) -> Fit:
    low, high = only.min_bytes, only.max_bytes
    if low is None and high is None:
        return "its size", True
    return "its size", None if size is None else (low or 0) <= size and (high is None or size <= high)


def _fit_rotation(is_rotational: bool | None, only: Only) -> Fit:
    what = "whether it is rotational"
    return (
        what,
        True if only.rotational is None else None if is_rotational is None else is_rotational == only.rotational,
    )


# Which interrupts are moved to their own device's node, and which must be left.

IRQ_RANK = 50


def select_irqs(values: Values, facts: Facts) -> tuple[Selected, ...]:
    """IRQs of links and NVMe drives on a known node, each with the nearest CPUs that do the housekeeping.

    Those the kernel manages refuse every write (genirq managed affinity) and are already spread by it; they are
    reported, not failed.
    """
    places = [(link.numa_node, link.irqs) for link in facts.links]
    places += [(disk.numa_node, disk.irqs) for disk in facts.disks if disk.kind == "nvme"]
    nodes = {irq: node for node, irqs in places if node is not None for irq in irqs}
    known = {node.id for node in facts.numa.nodes}
    near = {
        node: format_list(near_cpus(facts.cpu.sets, facts.numa, node, interrupts=True))
        for node in known.intersection(nodes.values())
    }
    chosen: list[Selected] = []
    for irq in facts.irqs:
        node = nodes.get(irq.number)
        cpus = near.get(node, "") if node is not None else ""
        if node is None or not cpus:
            continue
        chosen.append(_select_irq(irq, node, cpus))
    return tuple(chosen)


def _select_irq(irq: Irq, node: int, cpus: str) -> Selected:
    common = {"irq": str(irq.number)}
    what = f"{', '.join(irq.actions) or 'a device'} on node {node}"
    if irq.managed:
        return Selected(
            common,
            cpus,
            refusal=f"{what}: its affinity is managed by the kernel, which spreads it over the queues' own CPUs",
            before=irq.affinity,
        )
    return Selected(common, cpus, why=f"It serves {what}.", rank=IRQ_RANK)


# InterSystems IRIS: which cpf ``for-each = "cpfs"`` selects, and how many huge pages hold its shared memory. Pure.

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


# What a line of a profile means for devices that appear later: the ids of the classes that its ``only`` names.

_NAMES: Mapping[str, str] = {kind: f"{beginning}*" for beginning, kind in KINDS}
_PLACES = {"disks": "block:{disk}:", "links": "link:{link}:"}
SENSES = ("exactly", "at-least")


def is_for_new_devices(wanted: Wanted, values: Values) -> bool:
    """Whether the line is for its whole class: it says so, and nobody has named single devices."""
    return wanted.new_devices and wanted.for_each is not None and not values.get(wanted.for_each)


def class_ids(wanted: Wanted) -> tuple[str, ...]:
    """Ids of ``udev:`` tunables for the line. Raises ValueError with the reason where a udev rule cannot say it."""
    from advisor.tunables.udev import block_class, link_class

    place, only = _PLACES.get(wanted.for_each or ""), wanted.only or Only()
    if place is None or not wanted.tunable.startswith(place):
        raise ValueError("is for block: values of disks and link: values of links")
    if not isinstance(wanted.value, str) or wanted.sense not in SENSES:
        raise ValueError("needs a value as text, and the sense exactly or at-least")
    attribute = wanted.tunable.removeprefix(place)
    if wanted.for_each == "links":
        if not only.drivers or only.names or only.kinds or only.min_mbps is not None:
            raise ValueError("needs only = { drivers = […] } and nothing else there: a rule knows a link by its driver")
        found = tuple(link_class(driver) for driver in only.drivers)
        words = "link"
    else:
        if (
            only.transports
            or only.min_bytes is not None
            or only.max_bytes is not None
            or bool(only.names) == bool(only.kinds)
        ):
            raise ValueError("needs only with either names or kinds, and of the rest only models and rotational")
        names = only.names or tuple(_NAMES.get(kind, "!") for kind in only.kinds)
        found = tuple(block_class(names, model, rotational=only.rotational) for model in only.models or (None,))
        words = "block"
    if None in found:
        raise ValueError("names devices by what a udev rule cannot carry")
    return tuple(f"udev:{words}:{one}:{attribute}" for one in found)
