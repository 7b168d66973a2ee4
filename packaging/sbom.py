"""Writes which libraries a bundle has with it, as CycloneDX 1.6 in JSON, into the bundle's own metadata.

python packaging/sbom.py DIRECTORY            a directory in which host-advisor and its libraries are installed
python packaging/sbom.py WHEEL WHEELS         the wheel of host-advisor, and a directory with those of its libraries

The file is host_advisor-VERSION.dist-info/sboms/host-advisor.cdx.json, a place of PEP 770. `advisor --version` looks
for it.
Everything in it is read from the METADATA of what is there (Core metadata specifications, packaging.python.org). What
a compiled library has linked into itself is in no metadata: the list says that it is incomplete.
"""

from __future__ import annotations

import base64
import email.parser
import hashlib
import json
import os
import re
import sys
import time
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from email.message import Message
from pathlib import Path
from typing import Any, NamedTuple

OWN = "host-advisor"
PLACE = "sboms/host-advisor.cdx.json"
_LONGEST_LICENCE = 100
"""Older metadata have the whole text of a licence in the field that should name it."""


class Library(NamedTuple):
    """A distribution: its METADATA, and the wheels that it came in, where they are known, with their SHA-256."""

    metadata: Message
    wheels: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """As the index of packages writes it (PEP 503)."""
        return re.sub(r"[-_.]+", "-", str(self.metadata["Name"])).lower()

    @property
    def version(self) -> str:
        return str(self.metadata["Version"])

    @property
    def reference(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"

    def needs(self) -> list[str]:
        """Names of what it requires, other than for its extras."""
        found = [one for one in self.metadata.get_all("Requires-Dist", []) if "extra ==" not in one]
        return [re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", one, maxsplit=1)[0]).lower() for one in found]

    def licences(self) -> list[dict[str, Any]]:
        expression, named = self.metadata["License-Expression"], (self.metadata["License"] or "").strip()
        if expression:
            return [{"expression": str(expression)}]
        if named and len(named) <= _LONGEST_LICENCE and "\n" not in named:
            return [{"license": {"name": named}}]
        words = [one.split(" :: ") for one in self.metadata.get_all("Classifier", [])]
        return [{"license": {"name": one[-1]}} for one in words if one[0] == "License"]


def main(arguments: list[str]) -> int:
    if len(arguments) == 1 and Path(arguments[0]).is_dir():
        _write_into_directory(Path(arguments[0]))
    elif len(arguments) == 2:
        _write_into_wheel(Path(arguments[0]), Path(arguments[1]))
    else:
        sys.stderr.write(__doc__ or "")
        return 2
    return 0


def describe(libraries: Iterable[Library], kind: str) -> str:
    """The document. The same libraries give the same bytes, if SOURCE_DATE_EPOCH is set."""
    ordered = sorted(libraries, key=lambda one: (one.name, one.version))
    own = next(one for one in ordered if one.name == OWN)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    present: dict[str, list[str]] = {}
    for one in ordered:
        present.setdefault(one.name, []).append(one.reference)
    needs = {one.reference: sorted({ref for name in one.needs() for ref in present.get(name, ())}) for one in ordered}
    content = {
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)),
            "lifecycles": [{"phase": "build"}],
            "component": {**_component(own), "type": "application"},
            "properties": [{"name": "advisor:bundle", "value": kind}],
        },
        "components": [_component(one) for one in ordered if one is not own],
        "dependencies": [{"ref": ref, "dependsOn": found} if found else {"ref": ref} for ref, found in needs.items()],
        "compositions": [{"aggregate": "incomplete", "assemblies": [one.reference for one in ordered]}],
    }
    # The number is the content's own: it does not change from build to build.
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    head = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
    }
    return json.dumps({**head, **content}, indent=1, ensure_ascii=False) + "\n"


def _component(one: Library) -> dict[str, Any]:
    files = [
        {"type": "file", "name": name, "hashes": [{"alg": "SHA-256", "content": digest}]} for name, digest in one.wheels
    ]
    return {
        "type": "library",
        "bom-ref": one.reference,
        "name": str(one.metadata["Name"]),
        "version": one.version,
        "purl": one.reference,
        **({"description": str(one.metadata["Summary"])} if one.metadata["Summary"] else {}),
        **({"licenses": found} if (found := one.licences()) else {}),
        **({"components": files} if files else {}),
    }


def _read_metadata(text: bytes) -> Message:
    return email.parser.Parser().parsestr(text.decode())


def _write_into_directory(directory: Path) -> None:
    found = [Library(_read_metadata(path.read_bytes())) for path in directory.glob("*.dist-info/METADATA")]
    text = describe(found, "installed libraries")
    (place,) = directory.glob("host_advisor-*.dist-info")
    (place / PLACE).parent.mkdir(exist_ok=True)
    (place / PLACE).write_text(text)
    (place / "RECORD").open("a").write(f"{place.name}/{_record(PLACE, text.encode())}\n")


def _read_wheels(paths: Iterable[Path]) -> Iterator[Library]:
    """One for each version of a library, with all its wheels."""
    found: dict[str, Library] = {}
    for path in sorted(paths):
        with zipfile.ZipFile(path) as archive:
            (name,) = (one for one in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", one))
            one = Library(_read_metadata(archive.read(name)))
        wheel = (path.name, hashlib.sha256(path.read_bytes()).hexdigest())
        known = found.get(one.reference, one)
        found[one.reference] = known._replace(wheels=(*known.wheels, wheel))
    yield from found.values()


def _write_into_wheel(wheel: Path, others: Path) -> None:
    libraries = list(_read_wheels({wheel, *others.glob("*.whl")}))
    # The hash of the wheel that the list is written into is not in the list.
    text = describe([one._replace(wheels=()) if one.name == OWN else one for one in libraries], "wheels")
    changed = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(one for one in old.infolist() if one.filename.endswith(".dist-info/RECORD"))
        place = record.filename.rpartition("/")[0]
        for one in old.infolist():
            if one is not record:
                new.writestr(one, old.read(one))
        entry = zipfile.ZipInfo(f"{place}/{PLACE}", record.date_time)
        entry.external_attr = record.external_attr
        new.writestr(entry, text, zipfile.ZIP_DEFLATED)
        new.writestr(record, old.read(record).decode() + f"{place}/{_record(PLACE, text.encode())}\n")
    changed.replace(wheel)


def _record(path: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return f"{path},sha256={digest},{len(content)}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
