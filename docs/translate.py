"""Writes advisor/locale: the template of all texts, each language's catalogue brought up to date, and compiled.

python docs/translate.py            writes what has changed
python docs/translate.py --check    writes nothing; exit code 1 if something is stale, untranslated or does not fit

A text is what stands in ``_("…")``, ``N_("…")`` or ``msg("…")``, both forms of ``ngettext("…", "…", n)`` and of
``count_msg("…", "…", n)``, and the noun in ``noun("…")``; in a module that imports ``_``, also the noun of
``counted(n, "…")`` and ``times(n, "…")``. So are the plain texts of an error, ``SomeError("…", hint="…")``, where its
class is of the tree of `advisor.errors`, and the reason in ``Missing(kind, "…")``. The file formats are those of GNU
gettext (its manual, "PO Files" and "MO Files").
"""

from __future__ import annotations

import ast
import re
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LOCALES = ROOT / "advisor" / "locale"
DOMAIN = "advisor"
MAGIC = 0x950412DE
PLURALS = {"de": "nplurals=2; plural=(n != 1);", "ja": "nplurals=1; plural=0;"}
_FIELD = re.compile(r"\{(\w*)(?:![rsa])?(?::[^{}]*)?\}")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


class Text(NamedTuple):
    """A text of the code; ``plural`` is empty where it has one form."""

    singular: str
    plural: str = ""


Catalogue = dict[Text, tuple[str, ...]]
"""Each text with its translation, of a plural one with as many as the language has forms."""


def extracted(root: Path = ROOT) -> dict[Text, list[str]]:
    """Every text of the package, with the modules that it stands in; in their order, which is that of the catalogue."""
    found: dict[Text, list[str]] = {}
    paths = sorted((root / "advisor").rglob("*.py"))
    nodes = {path: list(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in paths}
    errors = error_classes(nodes.values())
    for path, here in nodes.items():
        for text in _texts(here, errors):
            places = found.setdefault(text, [])
            name = str(path.relative_to(root))
            if name not in places:
                places.append(name)
    # A plural form stands for its singular, too: gettext looks both up by that.
    plural = {text.singular for text in found if text.plural}
    return {text: places for text, places in found.items() if text.plural or text.singular not in plural}


def error_classes(modules: Iterable[Iterable[ast.AST]]) -> frozenset[str]:
    """The names of AdvisorError and of every class below it, in the nodes of these modules."""
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for nodes in modules
        for node in nodes
        if isinstance(node, ast.ClassDef)
    }
    found = {"AdvisorError"}
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return frozenset(found)


def _texts(nodes: Sequence[ast.AST], errors: frozenset[str]) -> Iterator[Text]:
    imported = {
        alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == "advisor.i18n"
        for alias in node.names
    }
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        words = [arg.value if isinstance(arg, ast.Constant) else None for arg in call.args]
        texts = [word for word in words if isinstance(word, str) and word]
        if (name in ("_", "N_") and texts) or (name == "msg" and texts and has_words(texts[0])):
            yield Text(texts[0])
        elif name in errors:
            hints = [keyword.value for keyword in call.keywords if keyword.arg == "hint"]
            yield from (Text(text) for part in (*call.args[:1], *hints) for text in literals(part) if has_words(text))
        elif name == "Missing":
            yield from (Text(text) for part in call.args[1:2] for text in literals(part) if has_words(text))
        elif name in ("ngettext", "count_msg") and len(texts) >= 2:
            yield Text(texts[0], texts[1])
        elif (name == "noun" and texts) or (name in ("counted", "times") and texts and "_" in imported):
            yield _noun(*texts)


def literals(node: ast.expr) -> Iterator[str]:
    """The texts that an argument may be: its own, or one of those between which ``if`` and ``or`` choose."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (*literals(node.body), *literals(node.orelse))
    elif isinstance(node, ast.BoolOp):
        yield from (text for value in node.values for text in literals(value))


def has_words(template: str) -> bool:
    """Whether there is more in it than fields and signs."""
    return any(char.isalpha() for text, *_ in Formatter().parse(template) for char in text)


def _noun(singular: str, plural: str = "") -> Text:
    return Text(f"{{count}} {singular}", f"{{count}} {plural or singular + 's'}")


# -- PO files ----------------------------------------------------------------------------------------------------------


def parse_po(content: str) -> Catalogue:
    """What a PO file translates, its header (the empty text) included. A fuzzy entry is an error here: ValueError."""
    found: Catalogue = {}
    for block in re.split(r"\n\s*\n", content):
        if re.search(r"^#,.*\bfuzzy\b", block, re.MULTILINE):
            raise ValueError(f"a fuzzy entry: {block}")
        parts: dict[str, str] = {}
        key = ""
        for line in block.splitlines():
            if not line.startswith("#") and (entry := re.fullmatch(r'(?:(msg\w+(?:\[\d\])?) )?"(.*)"', line.strip())):
                key = entry[1] or key
                parts[key] = parts.get(key, "") + _unquoted(entry[2])
        if "msgid" in parts:
            forms = tuple(text for name, text in sorted(parts.items()) if name.startswith("msgstr"))
            found[Text(parts["msgid"], parts.get("msgid_plural", ""))] = forms
    return found


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(char, char) for char in text) + '"'


def _unquoted(text: str) -> str:
    plain = {escaped: char for char, escaped in _ESCAPES.items()}
    return re.sub(r"\\.", lambda found: plain.get(found[0], found[0]), text)


def po_text(language: str, texts: Mapping[Text, list[str]], known: Catalogue) -> str:
    """The catalogue of a language (of none: the template) with the texts of today; a new one is empty."""
    forms = int(re.search(r"\d+", PLURALS.get(language, PLURALS["de"]))[0])  # type: ignore[index]
    header = {
        "Project-Id-Version": "advisor",
        "PO-Revision-Date": "",
        "Last-Translator": "",
        "Language-Team": "",
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": PLURALS.get(language, ""),
    }
    lines = "".join(f"{name}: {value}\n" for name, value in header.items() if value or not language)
    blocks = [["# docs/languages.md has the terms.", 'msgid ""', f"msgstr {_quoted(lines)}"]]
    for text, places in texts.items():
        block = [f"#: {' '.join(places)}"]
        if _FIELD.search(text.singular):
            block.append("#, python-brace-format")
        block.append(f"msgid {_quoted(text.singular)}")
        count = forms if text.plural else 1
        found = (*known.get(text, ()), *[""] * count)[:count]
        if text.plural:
            block.append(f"msgid_plural {_quoted(text.plural)}")
            block += [f"msgstr[{number}] {_quoted(form)}" for number, form in enumerate(found)]
        else:
            block.append(f"msgstr {_quoted(found[0])}")
        blocks.append(block)
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def faults(language: str, catalogue: Catalogue) -> Iterator[str]:
    """What is missing, and what does not fit its text: fields that differ, a blank more or less at an end."""
    for text, forms in catalogue.items():
        if not text.singular:
            continue
        for form in forms:
            wanted = {frozenset(_FIELD.findall(each)) for each in text if each}
            if not form:
                yield f"{language}: not translated: {text.singular}"
            elif frozenset(_FIELD.findall(form)) not in wanted:
                yield f"{language}: other fields than in: {text.singular}"
            elif language != "ja" and (form != form.strip()) != (text.singular != text.singular.strip()):
                yield f"{language}: blanks at an end differ: {text.singular}"


# -- MO files ----------------------------------------------------------------------------------------------------------


def mo_bytes(catalogue: Catalogue) -> bytes:
    """The compiled catalogue: a header of seven numbers, two tables of lengths and offsets, then the texts."""
    entries = sorted(
        ("\0".join(filter(None, text)).encode(), "\0".join(forms).encode())
        for text, forms in catalogue.items()
        if any(forms)
    )
    count, start = len(entries), 28
    offset = start + 16 * count
    tables: list[bytes] = []
    texts = b""
    for column in zip(*entries, strict=True):
        for text in column:
            tables.append(struct.pack("<II", len(text), offset + len(texts)))
            texts += text + b"\0"
    header = struct.pack("<7I", MAGIC, 0, count, start, start + 8 * count, 0, offset)
    return header + b"".join(tables) + texts


# -- all of it ---------------------------------------------------------------------------------------------------------


def wanted_files(texts: Mapping[Text, list[str]]) -> dict[Path, bytes]:
    """Every file below advisor/locale as it should be, from the texts and the translations that are there."""
    files = {LOCALES / f"{DOMAIN}.pot": po_text("", texts, {}).encode()}
    for language in PLURALS:
        place = LOCALES / language / "LC_MESSAGES" / f"{DOMAIN}.po"
        known = parse_po(place.read_text(encoding="utf-8")) if place.exists() else {}
        content = po_text(language, texts, known)
        files[place] = content.encode()
        files[place.with_suffix(".mo")] = mo_bytes(parse_po(content))
    return files


def main(arguments: Iterable[str]) -> int:
    given = list(arguments)
    if given not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    files = wanted_files(extracted())
    stale = [path for path, content in files.items() if not path.exists() or path.read_bytes() != content]
    for path in stale:
        print(path.relative_to(ROOT))
        if not given:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[path])
    catalogues = {path: content for path, content in files.items() if path.suffix == ".po"}
    found = [fault for path, po in catalogues.items() for fault in faults(path.parts[-3], parse_po(po.decode()))]
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found or (given and stale) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
