"""Files that a user hands to limits and size: read with a bound, decoded, and refused with the file and the field."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from advisor.errors import InvalidInputError, PermissionDeniedError
from advisor.host.input_files import open_given

MAX_BYTES = 64 << 20
MAX_LINE_DOTS = 256
"""tomllib takes the square of a dotted key's length."""


class FieldError(Exception):
    """``field`` as a user finds it in the file."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def read_input(path: Path, *, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file. Raises InvalidInputError that names it, PermissionDeniedError."""
    try:
        with open_given(path) as file:
            data = file.read(max_bytes + 1)
    except PermissionError as error:
        raise PermissionDeniedError(f"{path}: {error.strerror}") from error
    except OSError as error:
        raise InvalidInputError(f"{path}: {error.strerror}") from error
    if len(data) > max_bytes:
        raise InvalidInputError(f"{path}: larger than {max_bytes >> 20} MiB")
    return data


@contextmanager
def decoding(where: str, kind: str, hint: str) -> Iterator[None]:
    """Whatever is wrong with the text of a file becomes an InvalidInputError that names file and field."""
    try:
        yield
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"{where}: {field_words(error)}", hint=hint) from error
    except FieldError as error:
        raise InvalidInputError(f"{where}: field {error.field}: {error.message}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{where}: not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise InvalidInputError(f"{where}: nested too deeply") from error
    except (tomllib.TOMLDecodeError, msgspec.DecodeError, ValueError) as error:
        raise InvalidInputError(f"{where}: not valid {kind}: {error}", hint=hint) from error


def toml_document(data: bytes) -> dict[str, Any]:
    """A TOML document. Raises ValueError, as tomllib does."""
    if any(line.count(b".") > MAX_LINE_DOTS for line in data.split(b"\n")):
        raise ValueError("a line is nested too deeply")
    return tomllib.loads(data.decode("utf-8-sig"))


def is_json(data: bytes, first: bytes = b"{") -> bool:
    """Whether the first character that is no blank opens a JSON document; TOML starts with a name or a table."""
    return data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(tuple(first[at : at + 1] for at in range(len(first))))


def field_words(error: msgspec.ValidationError) -> str:
    """The field and what is wrong with it."""
    message, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".")
    unknown = re.search(r"unknown field `([^`]*)`", message)
    if unknown:
        name = f"{field}.{unknown[1]}" if field else unknown[1]
        return f"field {name}: there is no such field"
    missing = re.search(r"missing required field `([^`]*)`", message)
    if missing:
        name = f"{field}.{missing[1]}" if field else missing[1]
        return f"field {name}: it is missing"
    return f"field {field}: {message}" if field else message
