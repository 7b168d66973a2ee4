"""Files of sections and ``KEY=VALUE`` lines: systemd's (systemd.syntax(7)) and GLib's, which NetworkManager reads."""

from __future__ import annotations

from collections.abc import Iterator


def parse_settings(text: str, *, continued: bool) -> Iterator[tuple[str, str, str]]:
    """Section, key and value of each setting in the order of the file; the section is empty before the first.

    ``continued``: a line that ends in a backslash goes on in the next one, as systemd has it and GLib does not.
    """
    section = ""
    for line in (text.replace("\\\n", " ") if continued else text).split("\n"):
        bare = line.strip()
        key, equals, value = bare.partition("=")
        if bare.startswith("[") and bare.endswith("]"):
            section = bare[1:-1]
        elif equals and not bare.startswith(("#", ";")):
            yield section, key.rstrip(), value.lstrip()


def read_settings(text: str, *, continued: bool) -> dict[tuple[str, str], str]:
    """The value of each section and key that counts where it is given more than once."""
    return {(section, key): value for section, key, value in parse_settings(text, continued=continued)}


def last_value(text: str, section: str, key: str, *, continued: bool) -> str | None:
    """The value that counts where a key is given more than once; None where it is not given at all."""
    return read_settings(text, continued=continued).get((section, key))
