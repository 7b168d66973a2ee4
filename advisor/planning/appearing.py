"""What a line of a profile means for devices that appear later: the ids of the classes that its ``only`` names."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.facts.disks import KINDS
from advisor.profiles.profile import Only, Values, Wanted

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
