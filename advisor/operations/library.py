"""The profiles of this host: those that are shipped and those of /etc/advisor/profiles."""

from __future__ import annotations

from pathlib import Path

import msgspec

from advisor.errors import AdvisorError
from advisor.host import Host, Missing, live_host, observe
from advisor.host.package_data import package_data
from advisor.importers.records import Said
from advisor.profiles.lint import lint_profile
from advisor.profiles.profile import Profile, load, profile_paths
from advisor.profiles.requested import load_one
from advisor.proof.relevance import laxer_than_needed
from advisor.tunables import parse_tunable
from advisor.tunables.preflight import ExpandsIds


class LintResult(msgspec.Struct, frozen=True):
    """A profile file without a fault; ``lax`` is a tunable whose measurement needs a stricter toggle than the file
    names, and that toggle."""

    profile: Profile
    lax: tuple[str, str] | None
    judged: tuple[tuple[str, Said], ...] = ()
    """What a scan of this host would say of a value, each with its ``TUNABLE=VALUE``; those of the library are weighed
    in its profiles."""


def list_profiles() -> tuple[tuple[Profile, ...], tuple[AdvisorError, ...]]:
    """Return every profile of the library, and the errors of those that cannot be read."""
    found, faults = [], []
    for name in profile_paths():
        try:
            found.append(load(name))
        except AdvisorError as error:
            faults.append(error)
    return tuple(found), tuple(faults)


def read_profile(name: str) -> Profile:
    """Return the profile of this name or file, with what it inherits. Raises UsageError, InvalidInputError."""
    return load_one([name]).profile


def explain_absence(tunable: str, host: Host | None = None) -> str | None:
    """Return why ``host``, by default this one, does not have a tunable; None where it has it, where that cannot be
    seen, and for an id that stands for several. Reads the host. Raises UsageError for an id that is none."""
    one = parse_tunable(tunable)
    here = host or live_host()
    live = None if isinstance(one, ExpandsIds) else observe(here, one.probe)
    if isinstance(live, Missing):
        live = one.explain_absence(here, live)
    return live.why if isinstance(live, Missing) and live.is_absent else None


def explain_last_word(tunable: str, path: str | None, host: Host) -> str | None:
    """Return what gives a tunable of ``host`` a value after advisor's file at ``path``, and where to change it; None
    where nothing does. Scans the host."""
    from advisor.facts.host_facts import scan
    from advisor.facts.writers import overriding_write

    write = overriding_write(scan(host), tunable, "", path) if path else None
    if write is None:
        return None
    return f"{write.place} sets {'it' if write.value is None else write.value} {write.acts}; {write.change}"


def lint_file(path: Path) -> LintResult:
    """Check a profile file. Raises InvalidInputError, which names file, line and field."""
    from advisor.facts.host_facts import scan
    from advisor.importers.planned import say_of

    profile = lint_profile(path)
    lax = laxer_than_needed(profile) if profile.proof is not None else None
    values = [
        (one.tunable, one.value) for one in profile.tunables if isinstance(one.value, str) and "{" not in one.value
    ]
    if path.resolve().parent == package_data("profiles").resolve() or not values:
        return LintResult(profile, lax)
    facts = scan(live_host())
    said = ((f"{name}={value}", one) for name, value in values for one in say_of(facts, name, value))
    return LintResult(profile, lax, tuple(said))
