"""What stands where a command takes profiles: names of the library, files, and values without a profile:
``sysctl:vm.swappiness=10``, ``>=`` for at least and ``<=`` for at most.

Several values are one profile, made for the occasion. Its name comes from the tunables alone, so that another value of
the same tunable goes into the same file of /etc/sysctl.d and replaces the earlier one.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from advisor.errors import UsageError
from advisor.facts.settings import KEYS, SETTINGS, find_setting
from advisor.facts.settings.sysctl import dotted_key, parse_sysctl_file
from advisor.host.patterns import lazy_regex
from advisor.profiles.profile import (
    MAX_PROFILE_BYTES,
    Profile,
    ProofDeclaration,
    Wanted,
    load,
    load_file,
    profile_paths,
)
from advisor.rules.rule import SIGNS
from advisor.tunables import Effect, Risk, all_kinds, find_kind, parse_tunable
from advisor.tunables.catalogue import find_harm
from advisor.tunables.kind import kind_words

ToggleClass = Literal["T0", "T1", "T2", "T3"]
OPERATORS = {sign: sense for sense, sign in SIGNS.items()}
MAX_NAME = 63
MAX_CLAIMS = 3
MAX_SUGGESTIONS = 3
_SENSES = {"at-least": "at least ", "at-most": "at most ", "within": "within "}
_WHERE_KEPT = lazy_regex(r",? (?:persisted|kept|held) |\. ")
"""Ends what a kind's own words say about the value; the plan says where it persists."""
_KIND = lazy_regex(r"[a-z][a-z0-9_-]{0,30}:", re.ASCII)
_ROOTS = ("abi", "crypto", "debug", "dev", "fs", "kernel", "net", "sunrpc", "user", "vm")
_SYSCTL = lazy_regex(
    rf"(?:/proc/sys/)?(?P<key>(?:{'|'.join(_ROOTS)})(?:[./][^./\s=<>:]+)+)(?=[=<>]|$)|/proc/sys/(?P<path>[^\s=<>:]+)"
)
"""A key by the directories of /proc/sys, dotted or with slashes (sysctl(8)), or by its path."""
_SPLIT = lazy_regex(r"(?s)(.*?)([<>=]+)(.*)")
_PLACE = lazy_regex(r"\{\w+\}")
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20}
_SIZE = lazy_regex(r"([0-9]{1,9})([KkMmGgTt])(?:i?[Bb])?", re.ASCII)
_BY_EFFECT: Mapping[Effect, ToggleClass] = {
    "new-sockets": "T1",
    "new-links": "T3",
    "remount": "T1",
    "service-restart": "T1",
    "reboot": "T3",
}


class WantedValue(msgspec.Struct, frozen=True):
    """A value of a tunable, and how it is wanted. ``why`` and what follows are empty where nobody gave a reason."""

    tunable: str
    operator: str
    value: str
    why: str = ""
    hurts_when: str = ""
    sources: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """As it stands on a command line."""
        return f"{self.tunable}{self.operator}{self.value}"


def with_kind(word: str) -> str:
    """Return ``sysctl:KEY`` for a word that begins with the key alone, dotted, with slashes or as a path; others
    unchanged."""
    found = None if word.endswith(".toml") else _SYSCTL.match(word)
    return f"sysctl:{dotted_key(found['key'] or found['path'])}{word[found.end() :]}" if found else word


def is_value_word(word: str) -> bool:
    """Whether a word that stands where a profile may stand is meant as a value: ``KIND:…``, or with an operator."""
    word = with_kind(word)
    return bool(_KIND.match(word)) or ("/" not in word and not set(word).isdisjoint("=<>"))


def parse_value(word: str) -> WantedValue:
    """The value that a word of a command line asks for. Raises UsageError."""
    word = with_kind(word)
    found = _SPLIT.fullmatch(word)
    if found is None:
        parse_tunable(word)
        raise _no_value(word)
    identity, operator, value = found.groups()
    if operator not in OPERATORS or not set(value).isdisjoint("<>"):
        raise UsageError(
            f"{word}: expected one operator: =, >= or <=",
            hint=f"{identity}=VALUE, '{identity}>=VALUE' or '{identity}<=VALUE'",
        )
    if not _KIND.match(identity):
        raise UsageError(f"{identity!r} is not a tunable", hint=_hint(identity, operator, value))
    try:
        one = parse_tunable(identity)
    except UsageError as error:
        close = nearest_ids(identity, known_ids(f"{identity}:".split(":")[1]))
        raise UsageError(error.message, hint=f"did you mean {', '.join(close)}?" if close else error.hint) from error
    if _PLACE.search(word):
        raise UsageError(f"{word}: a place in braces belongs into a profile file")
    wrong = one.check_value(" ".join(value.split()))
    if wrong:
        hint = _in_full(identity, value) if value.strip() else _no_value(identity).hint
        raise UsageError(f"{identity}: {value!r} {wrong}", hint=hint)
    if operator != "=" and not re.search("[0-9]", value):
        raise UsageError(f"{word}: {operator} needs a number, found {value!r}", hint=f"{identity}={value} sets it")
    return WantedValue(identity, operator, " ".join(value.split()))


def _no_value(identity: str) -> UsageError:
    return UsageError(
        f"{identity}: expected a value",
        hint=f"{identity}=VALUE sets it; '{identity}>=VALUE' and '{identity}<=VALUE' only raise or lower it",
    )


def _in_full(identity: str, value: str) -> str | None:
    """For a size with a unit, which the kernel does not take: the number, where it counts bytes or multiples of
    them."""
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        return None
    number = int(found[1]) << 10 * ("kmgt".index(found[2].lower()) + 1)
    record = find_setting(identity.removeprefix("sysctl:"))
    unit = record.unit if record else "bytes"
    size = _UNITS.get(unit.partition(" ")[0].partition("/")[0])
    if unit.startswith("pages"):
        return f"it takes a number without a unit, and counts {unit}: {number} bytes, divided by the size of a page"
    if size or value.strip()[-1] not in "bB":
        return f"it takes a number without a unit; {value} is {number // (size or 1)}"
    return "it takes a number without a unit, and counts no bytes"


def _hint(identity: str, operator: str, value: str) -> str:
    """For a tunable without its kind: the sysctl of that name, or the profile that takes such a parameter."""
    if identity.startswith("sysctl") and len(identity) > len("sysctl.") and identity[len("sysctl")] in ". ":
        return f"did you mean sysctl:{identity[7:]}{operator}{value}?"
    if "." in identity and not identity.startswith("."):
        close = nearest_ids(f"sysctl:{identity}", known_ids(""))
        names = ", ".join(f"{one}{operator}{value}" for one in close)
        return f"did you mean {names}?" if names else f"a kernel parameter begins with one of {', '.join(_ROOTS)}"
    return f"a parameter of a profile is given with --set {identity}={value}"


def known_ids(device: str) -> tuple[str, ...]:
    """Ids that profiles and the documentation name, each for this device, and sysctls that a scan reads."""
    named = (one.tunable for profile in map(load, profile_paths()) for one in profile.tunables)
    examples = (identity for kind in all_kinds() for identity, _ in kind.examples)
    settings = (re.sub(r":[^:]+:", lambda _: f":{device}:", one, count=1) for one in (*named, *examples))
    return (*(f"sysctl:{key}" for key in (*KEYS, *SETTINGS) if "*" not in key), *settings)


def nearest_ids(identity: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known ids that are most like this one; an id of a mistyped kind is compared by its kind."""
    kinds = [kind.name for kind in all_kinds()]
    word, _, rest = identity.partition(":")
    if find_kind(identity) is None:
        return tuple(f"{kind}:{rest}" for kind in difflib.get_close_matches(word, kinds, n=1))
    alike = [one for one in dict.fromkeys(known) if one.startswith(f"{word}:") and one != identity]
    return tuple(difflib.get_close_matches(identity, alike, n=MAX_SUGGESTIONS, cutoff=0.8))


def values_profile(values: Sequence[WantedValue]) -> Profile:
    """The values as one profile, each with its reasons. Raises UsageError where one tunable is wanted twice."""
    doubled = next((one.tunable for place, one in enumerate(values) if one.tunable in _ids(values[:place])), None)
    if doubled is not None:
        raise UsageError(f"{doubled}: given twice")
    library = tuple(map(load, profile_paths()))
    lines = [_wanted(one, library) for one in values]
    words = ", ".join(one.word for one in values)
    # How a gain of the values is shown: by the claims of the profiles that set them, else by the usual workload.
    declared = [profile.proof for profile in _setting(values, library) if profile.proof is not None]
    claims = tuple(dict.fromkeys(claim for one in declared for claim in one.claims))[:MAX_CLAIMS]
    ones = [parse_tunable(one.tunable) for one in values]
    toggle = max(toggle_needed(one.takes_effect, one.risk) for one in ones)
    return Profile(
        name=profile_name([one.tunable for one in values]),
        title=words if len(values) == 1 else f"{len(values)} values",
        summary=f"Sets {words}.",
        helps_when="Whoever asked for it knows.",
        hurts_when=" ".join(dict.fromkeys(one.hurts_when for one in lines)),
        sources=tuple(dict.fromkeys(source for one in lines for source in one.sources)),
        tunables=tuple(lines),
        guards=tuple(dict.fromkeys(guard for profile in _setting(values, library) for guard in profile.guards)),
        proof=ProofDeclaration(
            toggle=toggle,
            claims=claims or ("infoscale.4k-rand-rw50",),
            where=declared[0].where if declared else "Where the values act; --workload names what to measure.",
            reconnect="connections"
            if toggle == "T1" and any(one.takes_effect == "new-sockets" for one in ones)
            else "mount"
            if toggle == "T1" and any(one.takes_effect == "remount" for one in ones)
            else None,
        ),
    )


def _ids(values: Iterable[WantedValue]) -> tuple[str, ...]:
    return tuple(one.tunable for one in values)


def profile_name(tunables: Sequence[str]) -> str:
    """``set-vm-swappiness``; of several, their number and what distinguishes them."""
    digest = hashlib.sha256("\n".join(sorted(tunables)).encode()).hexdigest()[:8]
    if len(tunables) > 1:
        return f"set-{len(tunables)}-values-{digest}"
    words = re.sub(r"[^a-z0-9]+", "-", tunables[0].removeprefix("sysctl:").lower()).strip("-")
    name = f"set-{words}"
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 9]}-{digest}"


def is_line_about(wanted: Wanted, identity: str) -> bool:
    """Whether a profile's line, its places filled somehow, is about this tunable."""
    parts = re.split(r"(\{\w+\})", wanted.tunable)
    pattern = "".join(".+" if part.startswith("{") else re.escape(part) for part in parts)
    return bool(re.fullmatch(pattern, identity))


def _setting(values: Iterable[WantedValue], library: Iterable[Profile]) -> tuple[Profile, ...]:
    """The profiles of the library that set one of the tunables."""
    ids = _ids(values)
    return tuple(
        profile for profile in library if any(is_line_about(line, one) for line in profile.tunables for one in ids)
    )


def _wanted(one: WantedValue, library: Iterable[Profile]) -> Wanted:
    """A line of the profile. What the library says about the same tunable is quoted with its profile and value, since a
    reason for one value is none for another; a caution is of this very value, or of the tunable whoever sets it."""
    lines = [(profile, line) for profile in library for line in profile.tunables if is_line_about(line, one.tunable)]
    setting = [(profile, line) for profile, line in lines if line.sense != "keep"]
    same = next((line for profile, line in setting if _default_value(profile, line) == one.value), None)
    first = setting[0] if setting else None
    why, hurts, sources = one.why, one.hurts_when, one.sources
    record = find_setting(one.tunable.removeprefix("sysctl:"))
    if not why:
        # What it is comes first: the reason of a profile is one for its own hosts.
        what = _WHERE_KEPT.split(kind_words(parse_tunable(one.tunable)))[0].rstrip(".") + "."
        parts = (record.meaning if record else what, "Asked for by its id.", "" if first is None else _quoted(*first))
        why = " ".join(filter(None, parts))
    if not hurts:
        # A sysctl's caution is of its own record: that of a product's profile is not the value's own.
        is_own = one.tunable.startswith("sysctl:") or same is None
        known = find_harm(one.tunable, one.value) if is_own or same is None else same.hurts_when
        hurts = known or ("Not known of this value." if lines else "Not known: no profile sets it.")
    if not sources:
        sources = (*(record.citations if record else ()), *(first[1].sources if first else ()))
    return Wanted(one.tunable, one.value, why, hurts, sources or ("the command line",), sense=OPERATORS[one.operator])


def _quoted(profile: Profile, line: Wanted) -> str:
    value = _default_value(profile, line) or ""
    sense = _SENSES.get(line.sense, "") if isinstance(line.sense, str) else ""
    wants = f"{profile.name} wants {sense}{value}" if value and "{" not in value else profile.name
    return f"{wants}: {line.why}"


def _default_value(profile: Profile, line: Wanted) -> str | None:
    """What a line sets without ``--set``; None where the host decides."""
    if not isinstance(line.value, str):
        return None
    value = line.value
    for name, parameter in profile.parameters.items():
        value = value.replace(f"{{{name}}}", str(parameter.default))
    return value


def toggle_needed(effect: Effect, risk: Risk) -> ToggleClass:
    """How a change may be toggled in a proof: T2 where a link may be interrupted, T1 for new sockets, mounts or a
    restart, T3 for a reboot and for links that have yet to come up."""
    needed = _BY_EFFECT.get(effect, "T0")
    return "T2" if risk == "link" and needed != "T3" else needed


class RequestedProfile(msgspec.Struct, frozen=True):
    """A profile, and the words that ask for it again."""

    profile: Profile
    words: tuple[str, ...]

    @property
    def own_words(self) -> tuple[str, ...]:
        """The words, where they are not the profile's name alone."""
        return self.words if self.words != (self.profile.name,) else ()


def is_file_word(word: str) -> bool:
    """Whether a word names a profile file: it has a slash or ends in .toml."""
    return not is_value_word(word) and ("/" in word or word.endswith(".toml"))


def is_sysctl_file(word: str) -> bool:
    """Return whether a word names a file of this machine with lines for sysctl(8), such as an article's."""
    try:
        if word.endswith(".toml") or not stat.S_ISREG(os.stat(word).st_mode):
            return False
        text = Path(word).read_bytes()[:MAX_PROFILE_BYTES].decode("utf-8", "replace")
    except (OSError, ValueError):
        return False
    keys = (line.key for line in parse_sysctl_file(text, word))
    return "[[tunables]]" not in text and any(with_kind(key) != key for key in keys)


def load_one(words: Sequence[str], *, only_trusted: bool = False) -> RequestedProfile:
    """The one profile that the words ask for: a name, a file, or any number of values. Raises what `load_requested`
    raises."""
    found = load_requested(words, only_trusted=only_trusted)
    if len(found) != 1:
        raise UsageError(
            f"expected one profile, or values alone; found {', '.join(words)}",
            hint="advisor prove-arms P Q compares several profiles",
        )
    return found[0]


def load_requested(
    words: Sequence[str | RequestedProfile], *, only_trusted: bool = False
) -> tuple[RequestedProfile, ...]:
    """The profiles that the words ask for, in their order; all values are one profile, at the place of the first.

    With ``only_trusted`` a file outside of the library must be one that only its owner, root or this user, can write
    to. Raises UsageError, InvalidInputError, RefusedError.
    """
    values = [parse_value(one) for one in words if isinstance(one, str) and is_value_word(one)]
    found = []
    for place, word in enumerate(words):
        if word in words[:place]:
            continue
        if isinstance(word, RequestedProfile):
            found.append(word)
        elif is_value_word(word):
            if values:
                # In whatever order they are given they are the same plan, with the same fingerprint.
                wanted = values_profile(sorted(values, key=lambda one: one.tunable))
                found.append(RequestedProfile(wanted, tuple(one.word for one in values)))
                values = []
        elif is_sysctl_file(word) and word not in profile_paths():
            raise UsageError(f"{word}: this is a sysctl file", hint=f"advisor judge {shlex.quote(word)}")
        elif is_file_word(word):
            profile = load_file(Path(word), only_trusted=only_trusted)
            found.append(RequestedProfile(profile, (os.path.abspath(word),)))
        else:
            found.append(RequestedProfile(load(word, only_trusted=only_trusted), (word,)))
    names = [one.profile.name for one in found]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise UsageError(f"profile {doubled} is asked for twice, by name and by file")
    return tuple(found)
