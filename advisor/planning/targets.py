"""Profile and facts → targets: conditions, selection of links, units and IRQs, and the values they should get. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from advisor.errors import UsageError
from advisor.facts.host_facts import Facts
from advisor.facts.system.services import Service
from advisor.planning.comparison import combine_values
from advisor.planning.devices import (
    NO_IRIS,
    class_ids,
    explain_none_chosen,
    huge_pages,
    is_for_new_devices,
    select_arrays,
    select_cpfs,
    select_disks,
    select_irqs,
)
from advisor.planning.link_settings import NO_SHARED_NETWORK, no_setting, select_link_settings, select_shared_links
from advisor.planning.mtu import links_by_role, reserved_ports, select_heartbeats, select_links
from advisor.planning.observations import rank_of
from advisor.planning.placement import NO_INSTANCES, select_instances, select_units
from advisor.planning.records import PlanTarget, Skipped
from advisor.planning.remote import NO_MAPS, NO_RECORDS, select_maps, select_records
from advisor.planning.selectors import Selected
from advisor.planning.storage_units import StorageUnit, placeable_units, select_found
from advisor.profiles.profile import KEEP, Computed, Condition, ForEach, Profile, Values, Wanted, parameter_values
from advisor.profiles.requested import is_value_word


class Request(msgspec.Struct, frozen=True):
    """A profile with the values of its parameters."""

    profile: Profile
    values: Values
    given: frozenset[str] = frozenset()
    """Parameters that a person gave with ``--set``; the others have the profile's own values."""
    found: tuple[StorageUnit, ...] = ()
    """The storage services of this host, where the profile binds services and none is named."""
    words: tuple[str, ...] = ()
    """What asks for the profile on a command line: its name, its file, or the values that it was made of."""

    @classmethod
    def from_settings(cls, profile: Profile, settings: Mapping[str, str], words: tuple[str, ...] = ()) -> Request:
        """Raises UsageError for a setting that the profile does not take."""
        return cls(profile, parameter_values(profile, settings), frozenset(settings), words=words)

    @property
    def is_of_values(self) -> bool:
        """Whether a person named each tunable, so that none may be left out unnoticed."""
        return any(map(is_value_word, self.words))

    @property
    def looks_for_units(self) -> bool:
        """Whether it is for services, and nobody named one."""
        places = any(one.for_each == "units" for one in self.profile.tunables)
        return places and "units" in self.values and not self.values["units"]

    def with_units(self, found: Sequence[StorageUnit], facts: Facts) -> Request:
        """The request for the storage services that were found here."""
        values = {**self.values, "units": placeable_units(found, facts)}
        return msgspec.structs.replace(self, values=values, found=tuple(found))


Outcome = tuple[tuple[PlanTarget, ...], tuple[Skipped, ...]]


def resolve_targets(request: Request, facts: Facts, services: Sequence[Service] = ()) -> Outcome:
    """What the profile wants on this host, and what of it cannot apply here with the reason."""
    failed = next((one for one in request.profile.conditions if not meets_condition(one, facts)), None)
    targets: list[PlanTarget] = []
    skipped: list[Skipped] = []
    if not request.profile.tunables:
        # A profile may say that nothing helps; a plan without a word would not say why.
        reason = explain_unmet(failed, facts) if failed else request.profile.summary.rstrip(".")
        skipped.append(Skipped("nothing", None, None, reason, "not-applicable", request.profile.name))
    for wanted in request.profile.tunables:
        why_not = explain_unmet(failed, facts) if failed else _why_not(request, wanted, facts)
        if why_not:
            is_open = _kept_by(request, wanted) or (wanted.needs and not request.values.get(wanted.needs))
            value = None if not isinstance(wanted.value, str) or is_open else wanted.value
            value = _fill_places(value, request.values, {}) if value and not wanted.for_each else None
            skipped.append(Skipped(wanted.tunable, None, value, why_not, "not-applicable", request.profile.name))
            continue
        for outcome in _expand_wanted(request, wanted, facts, services):
            (targets if isinstance(outcome, PlanTarget) else skipped).append(outcome)  # type: ignore[arg-type]
    return tuple(targets), tuple(skipped)


def _why_not(request: Request, wanted: Wanted, facts: Facts) -> str | None:
    """Why this line alone is left out: its own condition, or a parameter that says ``keep``."""
    if wanted.condition is not None and not meets_condition(wanted.condition, facts):
        return explain_unmet(wanted.condition, facts)
    if wanted.needs is not None and not request.values.get(wanted.needs):
        return f"has no sense without {wanted.needs}: name some with --set {wanted.needs}="
    parameter = _kept_by(request, wanted)
    return f"is left as it is: --set {parameter}= says what it should be" if parameter else None


def _kept_by(request: Request, wanted: Wanted) -> str | None:
    place = re.fullmatch(r"\{(\w+)\}", wanted.value) if isinstance(wanted.value, str) else None
    return place[1] if place and request.values.get(place[1]) == KEEP else None


def _expand_wanted(
    request: Request, wanted: Wanted, facts: Facts, services: Sequence[Service]
) -> Iterator[PlanTarget | Skipped]:
    if wanted.for_each is None and not _is_huge_pages(wanted) and not _is_ports(wanted):
        yield _make_target(request, wanted, Selected({}))
        return
    chosen = _select_places(request, wanted, facts, services)
    if any(one.refusal is None for one in chosen) and is_for_new_devices(wanted, request.values):
        yield from _for_new_devices(request, wanted)
    if not chosen and wanted.for_each:
        reason = _none_chosen(request, wanted, wanted.for_each, facts)
        yield Skipped(wanted.tunable, None, None, reason, "not-applicable", request.profile.name)
    for one in chosen:
        if one.refusal is None or _is_met(one, wanted):
            yield _make_target(request, wanted, one)
        else:
            identity = _fill_places(wanted.tunable, request.values, one.names)
            yield Skipped(identity, one.before, one.value, one.refusal, one.state, request.profile.name)


def _for_new_devices(request: Request, wanted: Wanted) -> Iterator[PlanTarget | Skipped]:
    """The same for devices of the class that appear later, where there is such a device now."""
    try:
        ids = class_ids(wanted)
    except ValueError as error:
        yield Skipped(wanted.tunable, None, None, f"new-devices {error}", "not-applicable", request.profile.name)
        return
    for identity in ids:
        yield _make_target(request, msgspec.structs.replace(wanted, tunable=identity), Selected({}))


_NONE_CHOSEN: Mapping[ForEach, str] = {
    "units": "no storage service was found here: name units with --set units=",
    "irqs": "no link or NVMe drive with interrupts is on a known node",
    "instances": NO_INSTANCES,
    "cpfs": NO_IRIS,
    "shared_links": NO_SHARED_NETWORK,
    "maps": NO_MAPS,
    "heartbeats": "LLT's packets fit the links that carry them, or none of its private links runs over UDP",
    "records": NO_RECORDS,
}


def _none_chosen(request: Request, wanted: Wanted, each: ForEach, facts: Facts) -> str:
    if each in ("disks", "arrays"):
        return explain_none_chosen(wanted, request.values, facts)
    if each == "units" and request.values.get("units"):
        return NO_INSTANCES
    if each == "links" and not wanted.tunable.endswith(":mtu"):
        return no_setting(wanted, facts)
    if each != "links":
        return _NONE_CHOSEN[each]
    names = ", ".join(link.name for link in facts.links if link.kind != "loopback") or "none but loopback"
    return (
        "no link has the role by itself (of LLT, of iSCSI sessions, or a port in use without a default route): "
        f"name those that are meant with --set links=; links here: {names}"
    )


def _is_met(one: Selected, wanted: Wanted) -> bool:
    """Whether a blocked change is not needed, as the value is already sufficient."""
    if one.state != "blocked" or one.before is None or one.value is None:
        return False
    return combine_values(one.before, one.value, wanted.sense) == one.before


def _select_places(request: Request, wanted: Wanted, facts: Facts, services: Sequence[Service]) -> tuple[Selected, ...]:
    if _is_huge_pages(wanted):
        return (huge_pages(facts),)
    if _is_ports(wanted):
        return (reserved_ports(facts),)
    if wanted.for_each == "heartbeats":
        return select_heartbeats(request.values, facts)
    if wanted.for_each == "cpfs":
        return select_cpfs(request.values, facts)
    if wanted.for_each == "shared_links":
        return select_shared_links(wanted, request.values, facts)
    if wanted.for_each == "records":
        return select_records(wanted, facts)
    if wanted.for_each == "maps":
        return select_maps(wanted, request.values, facts)
    if wanted.for_each == "units":
        if request.found:
            return select_found(request.found, facts, policy=str(request.values.get("policy") or "bind"))
        return select_units(request.values, facts, services)
    if wanted.for_each == "irqs":
        return select_irqs(request.values, facts)
    if wanted.for_each == "disks":
        return select_disks(wanted, request.values, facts)
    if wanted.for_each == "arrays":
        return select_arrays(wanted, request.values, facts)
    if wanted.for_each == "instances":
        return select_instances(wanted, facts)
    if not wanted.tunable.endswith(":mtu"):
        by_role = links_by_role(request.values, facts)
        return select_link_settings(wanted, request.values, facts, by_role, is_given="links" in request.given)
    mtu = _fill_places(str(wanted.value), request.values, {})
    has_field = any(one.for_each == "heartbeats" for one in request.profile.tunables)
    return select_links({**request.values, "mtu": mtu}, facts, wanted.only, has_field=has_field)


def _is_ports(wanted: Wanted) -> bool:
    return isinstance(wanted.value, Computed) and wanted.value.llt == "ports"


def _is_huge_pages(wanted: Wanted) -> bool:
    return isinstance(wanted.value, Computed) and wanted.value.huge_pages is not None


def _make_target(request: Request, wanted: Wanted, one: Selected) -> PlanTarget:
    multiply, is_of_default, default = None, False, None
    if one.value is not None:
        value = one.value
    elif isinstance(wanted.value, str):
        value = _fill_places(wanted.value, request.values, one.names)
    else:
        factor = wanted.value.multiply
        multiply = int(_fill_places(factor, request.values, {})) if isinstance(factor, str) else factor
        is_of_default = wanted.value.of == "llt-default"
        default = request.values.get(wanted.value.given) if wanted.value.given else None
        value = f"{multiply} × {'the default' if is_of_default else 'the value before'}"
    identity = _fill_places(wanted.tunable, request.values, one.names)
    return PlanTarget(
        tunable=identity,
        value=value,
        sense=wanted.sense,
        why=f"{wanted.why} {one.why}".strip(),
        hurts_when=wanted.hurts_when,
        sources=wanted.sources,
        profile=request.profile.name,
        rank=one.rank or rank_of(identity),
        multiply=multiply,
        may_be_left_out=one.may_be_left_out,
        is_of_default=is_of_default,
        default=default if isinstance(default, int) else None,
    )


def _fill_places(template: str, values: Values, names: Mapping[str, str]) -> str:
    """``{name}`` places filled in one pass, so that a value that itself holds braces stays as it is."""

    def value_of(place: re.Match[str]) -> str:
        name = place[1]
        if name in names:
            return names[name]
        value = values.get(name)
        if value is None:
            raise UsageError(f"the profile needs a value: --set {name}=…")
        return str(value)

    return re.sub(r"\{(\w+)\}", value_of, template)


def meets_condition(condition: Condition, facts: Facts) -> bool:
    """Whether the facts meet a condition; a fact that is unknown meets none but ``is-not``."""
    value = _look_up_fact(facts, condition.fact)
    wanted = condition.value
    match condition.op:
        case "exists":
            return value is not None
        case "is":
            return value == wanted
        case "is-not":
            return value != wanted
        case "count-at-least":
            return isinstance(value, list | tuple | dict) and len(value) >= int(wanted or 0)
    if not isinstance(value, int | float) or not isinstance(wanted, int):
        return False
    return value >= wanted if condition.op == "at-least" else value <= wanted


def explain_unmet(condition: Condition, facts: Facts) -> str:
    """The reason of a condition that does not hold; where its fact could not be read, that."""
    unread = next((one for one in facts.unknown if one.fact == condition.fact), None)
    if unread is None or _look_up_fact(facts, condition.fact) is not None:
        from advisor.profiles.lint import form_of_fact

        if form_of_fact(condition.fact) is None:
            return f"a scan has no fact {condition.fact!r}: advisor profiles lint names its line"
        return condition.reason
    return f"{condition.fact} is unknown here ({unread.why}), and this needs it"


def _look_up_fact(facts: Facts, path: str) -> object:
    value: object = facts
    while path:
        if isinstance(value, Mapping) and path in value:
            # A key that holds dots itself, as those of sysctl do.
            return value[path]
        part, _, path = path.partition(".")
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, msgspec.Struct) and part in value.__struct_fields__:
            value = getattr(value, part)
        else:
            return None
    return value
