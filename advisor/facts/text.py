"""Names that are not UTF-8: the kernel lets links and files be called anything, JSON does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.host import Missing

if TYPE_CHECKING:
    from yaml import MappingNode, Node, ScalarNode


def printable(text: str) -> str:
    """Text with U+FFFD for each byte of a name that is not UTF-8."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()


# Files of sections and ``KEY=VALUE`` lines: systemd's (systemd.syntax(7)) and GLib's, which NetworkManager reads.


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


# A YAML document as a tree of nodes that know where in the text they stand; nothing is constructed from it.

# No network is described by more; what is larger would take minutes to read.
MAX_CHARACTERS = 1 << 20


def compose(text: str) -> Node | Missing | None:
    """The root of the only document in ``text``; None where it is empty. Missing says what is wrong with it."""
    import yaml

    if len(text) > MAX_CHARACTERS:
        return Missing("unreadable", "larger than any description of a network")
    try:
        root: Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        return Missing("unreadable", f"not YAML: {' '.join(str(error).split())[:120]}")
    except RecursionError:
        return Missing("unreadable", "nested too deeply")
    return root


def as_mapping(node: Node | None) -> MappingNode | None:
    from yaml import MappingNode

    return node if isinstance(node, MappingNode) else None


def as_scalar(node: Node | None) -> ScalarNode | None:
    from yaml import ScalarNode

    return node if isinstance(node, ScalarNode) else None


def pairs(node: Node | None) -> Iterator[tuple[str, Node]]:
    """Keys that are plain text, with their values, in the order of the file. None for what is no mapping."""
    mapping = as_mapping(node)
    for key, value in mapping.value if mapping else ():
        name = as_scalar(key)
        if name is not None:
            yield name.value, value


def items(node: Node | None) -> Iterator[Node]:
    """The members of a list, in its order. None for what is no list."""
    from yaml import SequenceNode

    yield from node.value if isinstance(node, SequenceNode) else ()


def child(node: Node, name: str) -> Node | None:
    """The last value of a key: netplan takes that of one that is given twice."""
    return next((value for key, value in reversed(list(pairs(node))) if key == name), None)


def descend(node: Node | None, path: tuple[str, ...]) -> Node | None:
    """The node at the end of a path of keys."""
    for name in path:
        node = None if node is None else child(node, name)
    return node
