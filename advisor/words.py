"""The language of pages and messages: English as it stands in the code, or a catalogue of GNU gettext in its place.

Only what a person reads is translated, and only where it is printed: `advisor.report` and `advisor.cli`. What is data
(JSON documents, plans and their fingerprints, journals, scripts, profiles, findings) is English always, so nothing
below those two rooms imports this. docs/languages.md says what is translated, and how to add a language.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.errors import UsageError

if TYPE_CHECKING:
    from gettext import GNUTranslations

LANGUAGES: Final = ("en", "de", "ja")
OPTION: Final = "--lang"
VARIABLE: Final = "ADVISOR_LANG"
LOCALES: Final = Path(__file__).parent / "locale"
# What reads these answers is a program, or compares them with what it knows.
_FOR_PROGRAMS: Final = ("--json", "--nagios", "--prometheus")

# One process prints for one reader; gettext itself knows no other way.
_catalogue: GNUTranslations | None = None


def _(text: str) -> str:
    """The text in the chosen language; the text itself where the catalogue has none, and in English."""
    # The entry of the empty text is the catalogue's header.
    return text if _catalogue is None or not text else _catalogue.gettext(text)


def N_(text: str) -> str:  # noqa: N802 - gettext's own name for it
    """Marks a text for the catalogue that is looked up later, where it is printed."""
    return text


def noun(singular: str) -> str:
    """Marks a noun for the catalogue that ``advisor.report.layout.counted`` looks up with its number."""
    return singular


def ngettext(singular: str, plural: str, count: int) -> str:
    """The form that the count takes in the chosen language."""
    if _catalogue is None:
        return singular if count == 1 else plural
    return _catalogue.ngettext(singular, plural, count)


def is_english() -> bool:
    """Whether texts stay as they are."""
    return _catalogue is None


def choose(language: str) -> None:
    """Print in this language from now on: ``de``, or a locale's name, ``de_DE.UTF-8``.

    Raises UsageError for one that there is no catalogue of.
    """
    global _catalogue
    name = _language_of(language)
    if name not in LANGUAGES:
        raise UsageError(f"{OPTION} {language}: no such language", hint=f"languages: {', '.join(LANGUAGES)}")
    _catalogue = None if name == "en" else _loaded(name)


def _loaded(name: str) -> GNUTranslations:
    from gettext import GNUTranslations

    path = LOCALES / name / "LC_MESSAGES" / "advisor.mo"
    try:
        with path.open("rb") as file:
            return GNUTranslations(file)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint=f"{OPTION} en needs no catalogue") from error


@contextlib.contextmanager
def spoken(language: str) -> Iterator[None]:
    """Print in this language inside the ``with``, and as before after it."""
    global _catalogue
    before = _catalogue
    choose(language)
    try:
        yield
    finally:
        _catalogue = before


def asked_language(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The value of ``--lang`` before the command, and the arguments without it.

    One without a value stays among the arguments, for the parser to refuse.
    """
    found, rest = None, list(arguments)
    at = 0
    while at < len(rest) and rest[at].startswith("-") and rest[at] != "--":
        if rest[at] == OPTION and at + 1 < len(rest):
            found = rest[at + 1]
            del rest[at : at + 2]
        elif rest[at].startswith(f"{OPTION}="):
            found = rest.pop(at).partition("=")[2]
        else:
            at += 1
    return found, rest


def language_for(arguments: Sequence[str], environment: Mapping[str, str], *, is_terminal: bool) -> str:
    """The language of this call: English for programs; ``--lang``, else ADVISOR_LANG; on a terminal the locale's.

    What goes into a pipe or a file stays English unless a language is asked for by name, so that no script that reads
    it breaks on a host whose locale is another. A locale that there is no catalogue of is English.
    """
    asked = asked_language(arguments)[0] or environment.get(VARIABLE)
    if asked and _language_of(asked) not in LANGUAGES:
        return asked
    if any(word.startswith(_FOR_PROGRAMS) for word in arguments):
        return "en"
    return asked or (_of_locale(environment) if is_terminal else "en")


def settle(arguments: Sequence[str], environment: Mapping[str, str], *, is_terminal: bool) -> None:
    """Choose the language of this call. Raises UsageError for one that was asked for by name and is not there."""
    try:
        choose(language_for(arguments, environment, is_terminal=is_terminal))
    except UsageError as error:
        named = asked_language(arguments)[0]
        if not named and environment.get(VARIABLE):
            error.message = error.message.replace(OPTION, VARIABLE, 1)
            raise
        if named:
            raise
        choose("en")


def _of_locale(environment: Mapping[str, str]) -> str:
    """The language that the locale names (locale(7)): the first of its variables that is set counts.

    Only where the locale is UTF-8, since another may not have the characters; and not on the console (TERM=linux) for
    a language whose characters its font does not have.
    """
    name = next((environment[key] for key in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(key)), "")
    language = _language_of(name)
    is_utf8 = name.lower().replace("-", "").endswith("utf8")
    has_no_font = language == "ja" and environment.get("TERM") == "linux"
    return language if language in LANGUAGES and is_utf8 and not has_no_font else "en"


def _language_of(name: str) -> str:
    """``de`` of ``de_DE.UTF-8``; English of the locales C and POSIX."""
    language = name.partition(".")[0].partition("@")[0].partition("_")[0].lower()
    return "en" if language in ("c", "posix") else language
