"""The schemas, real documents and the profiles' TOML under validators that others wrote.

check-jsonschema reads patterns with an engine of ECMA-262's regular expressions; ajv is JavaScript itself, in its
strict mode; taplo is the validator that editors of TOML use.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from advisor.operations.library import list_schemas, read_schema
from advisor.report.schemas import short_name
from tests.profiles.test_file_schema import SHIPPED, VALID

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent
# The call that prints it by the document.
DOCUMENTS = {
    "scan": ("scan",),
    "status": ("status",),
    "verify": ("verify",),
    "limits": ("limits",),
    "recommendation": ("recommend",),
    "plan": ("plan", "socket-buffers-8m"),
    "profiles": ("profiles", "list"),
    "profile": ("profiles", "show", "jumbo-frames"),
    "explanation": ("explain", "sysctl:net.core.rmem_max"),
    "importable": ("profiles", "import", "--list"),
    "export": ("profiles", "export", "socket-buffers-8m", "--format", "ansible"),
    "error": ("plan", "no-such-profile"),
}
# ajv where Node.js finds it: npm install --prefix DIRECTORY ajv, and NODE_PATH=DIRECTORY/node_modules.
AJV = """
const Ajv2020 = require("ajv/dist/2020"), Ajv07 = require("ajv"), fs = require("fs");
for (const [schema, documents] of JSON.parse(fs.readFileSync(0))) {
  const text = JSON.parse(fs.readFileSync(schema));
  const Ajv = text.$schema.includes("draft-07") ? Ajv07 : Ajv2020;
  try {
    const valid = new Ajv({strict: true, allErrors: true}).compile(text);
    for (const one of documents)
      if (!valid(JSON.parse(fs.readFileSync(one)))) console.log(one, JSON.stringify(valid.errors));
  } catch (error) { console.log(schema, error.message); }
}
"""


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Real documents of this machine by the name of their schema."""
    place = tmp_path_factory.mktemp("documents")
    environment = {**os.environ, "ADVISOR_STATE_DIR": str(place / "state"), "PYTHONPATH": str(ROOT)}
    for name, words in DOCUMENTS.items():
        command = [sys.executable, "-m", "advisor", *words, "--json"]
        done = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=False)
        (place / name).write_bytes(done.stdout)
    return {name: place / name for name in DOCUMENTS}


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The file of each schema by the word of its document."""
    place = tmp_path_factory.mktemp("schemas")
    files = {name: place / f"{name}.json" for name in map(short_name, list_schemas())}
    for name, file in files.items():
        file.write_text(json.dumps(read_schema(name)))
    return files


def check(*words: str | Path) -> int:
    """The exit code of check-jsonschema, in this process: it takes long to start."""
    from check_jsonschema import main

    with pytest.raises(SystemExit) as ended:
        main(["--regex-variant", "nonunicode", *map(str, words)])
    return ended.value.code if isinstance(ended.value.code, int) else 1


def test_every_schema_is_one_of_its_dialect(schemas: dict[str, Path]) -> None:
    assert check("--check-metaschema", *schemas.values()) == 0


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_real_document_is_valid(name: str, documents: dict[str, Path], schemas: dict[str, Path]) -> None:
    assert check("--schemafile", schemas[name], documents[name]) == 0


def test_a_document_that_is_wrong_is_refused(
    documents: dict[str, Path], schemas: dict[str, Path], tmp_path: Path
) -> None:
    wrong = {**json.loads(documents["verify"].read_text()), "ok": "yes"}
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    assert check("--schemafile", schemas["verify"], tmp_path / "wrong.json") == 1


def has_ajv() -> bool:
    node = shutil.which("node")
    call = [node or "", "-e", "require('ajv/dist/2020')"]
    return bool(node) and subprocess.run(call, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_ajv(), reason="Node.js finds no ajv (npm install ajv, NODE_PATH)")
def test_ajv_compiles_every_schema_and_agrees(
    documents: dict[str, Path], schemas: dict[str, Path], tmp_path: Path
) -> None:
    profiles = []
    for path in SHIPPED:
        copy = tmp_path / f"{path.stem}.json"
        copy.write_text(json.dumps(tomllib.loads(path.read_text())))
        profiles.append(str(copy))
    asked = [
        (str(path), profiles if name == "profile-file" else [str(documents[name])] if name in documents else [])
        for name, path in schemas.items()
    ]
    done = subprocess.run(["node", "-e", AJV], input=json.dumps(asked), capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr == ""


def lint(schema: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    command = [str(TOOLS / "taplo"), "lint", "--no-auto-config", "--schema", schema.as_uri(), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_taplo_passes_every_profile_that_is_shipped(schemas: dict[str, Path]) -> None:
    done = lint(schemas["profile-file"], *SHIPPED)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('title = "t"\n', ""),
        ('title = "t"', 'titel = "t"'),
        ('name = "late"', 'name = "Late One"'),
        ('value = "1"', "value = 1"),
        ('value = "1"', 'value = "1"\nsense = "about"'),
        ('value = "1"', 'value = "1'),
    ],
)
def test_taplo_refuses_a_profile_that_is_wrong(old: str, new: str, schemas: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "late.toml"
    file.write_text(VALID)
    assert lint(schemas["profile-file"], file).returncode == 0
    file.write_text(VALID.replace(old, new, 1))
    assert lint(schemas["profile-file"], file).returncode == 1
