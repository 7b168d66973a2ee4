"""The language of pages and messages: English as it stands in the code, or a catalogue of GNU gettext in its place.

Only what a person reads is translated, and only where it is printed: `advisor.report` and `advisor.cli`. What is data
(JSON documents, plans and their fingerprints, journals, scripts, profiles, findings) is English always. A message that
is made below those two rooms is made by `msg` from a template and fields, as an English text; `translate` finds the
template again where the message is printed. docs/languages.md says what is translated, and how to add a language.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from gettext import GNUTranslations

_P = ParamSpec("_P")
_T = TypeVar("_T")


class LanguageError(ValueError):
    """A language that there is no catalogue of; ``hint`` says what to do."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


LANGUAGES: Final = ("en", "de", "ja")
OPTION: Final = "--lang"
VARIABLE: Final = "ADVISOR_LANG"
LOCALES: Final = f"{os.path.dirname(__file__)}/locale"
# What reads these answers is a program, or compares them with what it knows.
_FOR_PROGRAMS: Final = ("--json", "--nagios", "--prometheus")

PROSE: Final = frozenset({"detail", "found", "note", "reason", "result", "why"})
"""Fields of a template that hold a message in their turn; any other holds a name, a value or a foreign text."""


class _Origin:
    """What a finished message was made of: a template with fields, ``parts`` that ``joined`` made one of, or the
    singular and plural ``forms`` of a template with their ``number``."""

    def __init__(
        self,
        template: str,
        fields: Mapping[str, object] | None = None,
        parts: tuple[str, ...] = (),
        forms: tuple[str, str] | None = None,
        number: int = 0,
    ) -> None:
        self.template = template
        self.fields = fields or {}
        self.parts = parts
        self.forms = forms
        self.number = number


# One process prints for one reader; gettext itself knows no other way.
_catalogue: GNUTranslations | None = None
# By the finished English text. The messages themselves are plain strings, as they also go into records, journals and
# JSON documents. Nothing is kept in English.
_origins: dict[str, _Origin] = {}
# How often a text had no translation, in this process.
_missed = 0


def _(text: str) -> str:
    """The text in the chosen language; the text itself where the catalogue has none, and in English."""
    # The entry of the empty text is the catalogue's header.
    return text if _catalogue is None or not text else _catalogue.gettext(text)


def N_(text: str) -> str:  # noqa: N802 - gettext's own name for it
    """Marks a text for the catalogue that is looked up later, where it is printed."""
    return text


SYSTEM_ERRORS: Final = frozenset(
    {
        *(N_("No such file or directory"), N_("Permission denied"), N_("Operation not permitted")),
        *(N_("Is a directory"), N_("Not a directory"), N_("Directory not empty"), N_("File exists")),
        *(N_("File name too long"), N_("File too large"), N_("Too many levels of symbolic links")),
        *(N_("No space left on device"), N_("Disk quota exceeded"), N_("Read-only file system")),
        *(N_("Input/output error"), N_("Device or resource busy"), N_("No such device"), N_("Broken pipe")),
        *(N_("No such device or address"), N_("Invalid argument"), N_("Operation not supported")),
        *(N_("Inappropriate ioctl for device"), N_("Exec format error"), N_("Text file busy")),
        *(N_("Too many open files"), N_("Too many open files in system"), N_("Cannot allocate memory")),
        *(N_("Resource temporarily unavailable"), N_("Argument list too long"), N_("Bad address")),
        *(N_("Connection refused"), N_("Connection timed out"), N_("Connection reset by peer")),
        *(N_("No route to host"), N_("Network is unreachable"), N_("Network is down"), N_("Message too long")),
        *(
            N_("Name or service not known"),
            N_("Temporary failure in name resolution"),
            N_("Numerical result out of range"),
        ),
    }
)
"""Errors of system calls that have a translation; any other text of the kernel stays as it is."""


def msg(template: str, /, **fields: object) -> str:
    """The English message of a template (as for ``str.format``), which `translate` can print in another language.

    A field that was made by this, or is named as in `PROSE`, is a message in its turn. A template without fields needs
    no call: its text is its template, marked by `N_`.
    """
    text = template.format(**fields)
    if _catalogue is not None:
        # An exception holds its traceback; its text is all that is printed of it.
        kept = {name: str(value) if isinstance(value, Exception) else value for name, value in fields.items()}
        _origins[text] = _Origin(template, kept)
    return text


def count_msg(singular: str, plural: str, count: int, /, **fields: object) -> str:
    """As `msg`, of a template with ``{count}`` that has a form for one and one for any other number."""
    template = singular if count == 1 else plural
    text = msg(template, count=count, **fields)
    if _catalogue is not None:
        origin = _origins[text]
        _origins[text] = _Origin(origin.template, origin.fields, origin.parts, (singular, plural), count)
    return text


def joined(separator: str, messages: Iterable[str]) -> str:
    """Several messages as one, each translated for itself; the separator is ``", "`` or ``"; "``."""
    parts = tuple(messages)
    text = separator.join(parts)
    if _catalogue is not None and len(parts) > 1:
        _origins[text] = _Origin(separator, parts=parts)
    return text


def translate(message: str) -> str:
    """The message in the chosen language.

    As a whole or not at all: a message of which a part has no translation stays English, and so does then all of the
    `translated_page` that it is on. Fields of a message of another process (a journal's, another host's) are not known.
    """
    global _missed
    if _catalogue is None:
        return message
    found = _translated(message)
    if found is None:
        _missed += 1
    return message if found is None else found


def translated_page(render: Callable[_P, str]) -> Callable[_P, str]:
    """Decorates what makes a page: all of it is in the chosen language, or all of it is English.

    It is English where a text or a message on it has no translation.
    """

    @functools.wraps(render)
    def whole(*arguments: _P.args, **named: _P.kwargs) -> str:
        if _catalogue is None:
            return render(*arguments, **named)
        before = _missed
        text = render(*arguments, **named)
        if _missed == before:
            return text
        # Where this is a part of another page, that one finds the count raised, and is English as well.
        with spoken("en"):
            return render(*arguments, **named)

    return whole


def english_page(render: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorates what makes a page, or a part of one, that is not offered in other languages."""

    @functools.wraps(render)
    def whole(*arguments: _P.args, **named: _P.kwargs) -> _T:
        if _catalogue is None:
            return render(*arguments, **named)
        with spoken("en"):
            return render(*arguments, **named)

    return whole


def _translated(message: str) -> str | None:
    origin = _origins.get(message)
    if origin is None:
        if error := _system_error(message):
            return _of_catalogue(error)
        return message if not has_words(message) or _is_foreign(message) else _of_catalogue(message)
    if origin.parts:
        parts = [_translated(part) for part in origin.parts]
        return None if None in parts else _(origin.template).join(part for part in parts if part is not None)
    template = _template_of(origin)
    fields = dict(origin.fields)
    for name, value in origin.fields.items():
        if isinstance(value, str) and (name in PROSE or value in _origins or _system_error(value)):
            part = _translated(value)
            if part is None:
                return None
            fields[name] = part
    return None if template is None else template.format(**fields)


def _template_of(origin: _Origin) -> str | None:
    if not has_words(origin.template):
        return origin.template
    if origin.forms is None:
        return _of_catalogue(origin.template)
    before = _missed
    found = ngettext(*origin.forms, origin.number)
    return found if _missed == before else None


def _of_catalogue(text: str) -> str | None:
    """Its translation, which may be the same text (a command); None where there is none."""
    before = _missed
    found = _(text)
    return found if _missed == before else None


def has_words(template: str) -> bool:
    """Whether a template has letters outside its fields."""
    import re

    return any(map(str.isalpha, re.sub(r"\{[^{}]*\}", "", template)))


def _system_error(text: str) -> str:
    """The entry of `SYSTEM_ERRORS` that a text is, the first letter in lower case inside a sentence; else empty."""
    return next((one for one in (text, text[:1].upper() + text[1:]) if one in SYSTEM_ERRORS), "")


def _is_foreign(message: str) -> bool:
    """Whether it is another text of the kernel or empty: quoted in every language."""
    return not message or message in {os.strerror(number) for number in errno.errorcode}


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

    Raises LanguageError for one that there is no catalogue of.
    """
    global _catalogue
    name = _language_of(language)
    if name not in LANGUAGES:
        names = ", ".join(LANGUAGES)
        raise LanguageError(
            msg("{option} {language}: no such language", option=OPTION, language=language),
            hint=msg("languages: {names}", names=names),
        )
    _catalogue = None if name == "en" else _loaded(name)


def _loaded(name: str) -> GNUTranslations:
    from gettext import GNUTranslations, NullTranslations

    class Counting(NullTranslations):
        """Asked for what the catalogue does not have."""

        def gettext(self, message: str) -> str:
            global _missed
            _missed += 1
            return message

        def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
            return self.gettext(msgid1 if n == 1 else msgid2)

    path = f"{LOCALES}/{name}/LC_MESSAGES/advisor.mo"
    try:
        with open(path, "rb") as file:
            catalogue = GNUTranslations(file)
    except OSError as error:
        raise LanguageError(
            msg("{path}: {error}", path=path, error=error.strerror),
            hint=msg("{option} en needs no catalogue", option=OPTION),
        ) from error
    catalogue.add_fallback(Counting())
    return catalogue


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
    """Choose the language of this call. Raises LanguageError for one that was asked for by name and is not there."""
    try:
        choose(language_for(arguments, environment, is_terminal=is_terminal))
    except LanguageError as error:
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
