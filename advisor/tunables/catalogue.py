"""The kinds of tunables, the tunable of an id, and what is known of its value by the kind.

Each module of this package that declares a ``KIND`` is one kind. An id loads the module of its own kind only.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from functools import cache
from importlib import import_module

from advisor.errors import UsageError
from advisor.facts.settings import find_setting
from advisor.host import Host
from advisor.host.patterns import lazy_regex
from advisor.tunables.kind import NOT_MEASURED, Kind, Namespace, Tunable, UnknownIdError

_WORD = lazy_regex(r"[a-z][a-z0-9_-]{0,30}", re.ASCII)
_found: dict[str, Kind] = {}


def find_kind(identity: str) -> Kind | None:
    """The kind of an id, which is what stands before its first colon; None where there is no such kind."""
    word, colon, _ = identity.partition(":")
    if not colon or word in _found or not _WORD.fullmatch(word):
        return _found.get(word) if colon else None
    module = f"advisor.tunables.{word.replace('-', '_')}"
    try:
        declared: Kind | None = getattr(import_module(module), "KIND", None)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        return None
    if declared is None or declared.name != word:
        return None
    return _found.setdefault(word, declared)


def namespace_of(identity: str) -> Namespace | None:
    """The kind of namespace of which each has its own value of this id; None for a value of the whole host."""
    kind, rest = find_kind(identity), identity.partition(":")[2]
    patterns = kind.namespaces if kind else ()
    return next((namespace for pattern, namespace in patterns if re.fullmatch(pattern, rest)), None)


def is_slow(identity: str) -> bool:
    """Whether the effect of a value builds up over minutes, as that of caches and of the placement of pages does."""
    setting = find_setting(identity.removeprefix("sysctl:"))
    if setting is not None:
        return setting.is_slow
    kind = find_kind(identity)
    return kind is not None and re.fullmatch(kind.slow, identity.partition(":")[2]) is not None


@cache
def all_kinds() -> tuple[Kind, ...]:
    """Every kind, in the order of documents. Raises ValueError for a ``KIND`` in a module of another name."""
    found = []
    for one in pkgutil.iter_modules(sys.modules[__package__].__path__):
        declared: Kind | None = getattr(import_module(f"advisor.tunables.{one.name}"), "KIND", None)
        if declared is not None and find_kind(f"{declared.name}:") is not declared:
            raise ValueError(
                f"advisor/tunables/{one.name}.py: kind {declared.name!r} expects the file name "
                f"{declared.name.replace('-', '_')}.py"
            )
        if declared is not None:
            found.append(declared)
    return tuple(sorted(found, key=lambda kind: (kind.order, kind.name)))


def parse_tunable(identity: str) -> Tunable:
    """The tunable with this id. Raises UsageError for an unknown kind, and for a form that its kind does not have."""
    kind = find_kind(identity)
    if kind is None:
        known = ", ".join(sorted(one.name for one in all_kinds()))
        raise UnknownIdError(identity, hint=f"an id begins with one of: {known}")
    return kind.parse(identity.partition(":")[2])


def hurts_when(tunable: str, value: str) -> str:
    """One sentence on when this value of a tunable does harm, be it of all that are not known."""
    return find_harm(tunable, value) or NOT_MEASURED


def find_harm(tunable: str, value: str) -> str | None:
    """When this value of a tunable does harm; None where that is not known."""
    setting, kind = find_setting(tunable.removeprefix("sysctl:")), find_kind(tunable)
    return (setting.harm_of(value) if setting else "") or (kind.harm if kind else "") or None


def owner_of(path: str, host: Host) -> str | None:
    """The id of another kind for this file; None where none has it."""
    forms = [form for kind in all_kinds() for form in kind.sysfs]
    real = host.real(path)
    for place in (path, real if isinstance(real, str) else path):
        for pattern, identity in forms:
            found = re.fullmatch(pattern, place)
            if found:
                try:
                    return parse_tunable(found.expand(identity)).id
                except UsageError:
                    break
    return None
