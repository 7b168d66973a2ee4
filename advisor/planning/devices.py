"""Which disks and arrays a line of a profile is for, and why others are not."""

from __future__ import annotations

from advisor.facts.arrays import Array
from advisor.facts.disks import Disk
from advisor.facts.host_facts import Facts
from advisor.planning.selection import Selected
from advisor.planning.selectors import Fit, combine_fits, matches_any, name_fit, select_named, word_fit
from advisor.profiles.profile import Only, Values, Wanted
from advisor.tunables.block_identity import is_device_name


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
