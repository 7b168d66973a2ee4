"""What stands where a command takes profiles: names of the library, files, and values without a profile."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from advisor.errors import UsageError
from advisor.facts.sysctl_files import parse_sysctl_file
from advisor.profiles.profile import MAX_PROFILE_BYTES, Profile, load, load_file, profile_paths
from advisor.profiles.single_values import is_value_word, parse_value, values_profile, with_kind


class RequestedProfile(msgspec.Struct, frozen=True):
    """A profile, and the words that ask for it again."""

    profile: Profile
    words: tuple[str, ...]


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
            hint="--arms none,P,Q compares several profiles",
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
