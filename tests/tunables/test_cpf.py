"""InterSystems' cpf as a tunable: what is set is what a scan then reads, and not a byte else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.clusters.iris import parse_cpf
from advisor.host import Host, MemoryFiles, NoCommands, observe
from advisor.tunables import FileEdit, apply_edit, parse_tunable
from tests.cases import cases

CASES = cases(__file__)

PATH = "/usr/irissys/iris.cpf"
KEYS = {"Asyncwij": "16", "wdparm": "16,32,512,128", "wduseasyncio": "1", "globals": "0,0,4096,0,0,0"}
LINES = st.sampled_from(
    [
        *("[config]", "[Startup]", "[Journal]", "Asyncwij=8", "wdparm=", " wduseasyncio = 0", "globals=0,0,1,0,0,0"),
        *("; Asyncwij=1", "# wdparm=1", "", "PasswordHash=dd0874dc", "CurrentDirectory=/jrn/", "Version=2023.2"),
    ]
)
TEXTS = st.tuples(st.lists(LINES, max_size=8), st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n"])).map(
    lambda parts: parts[2].join([*parts[0], "[config]", *parts[1]])
)


def host(text: str) -> Host:
    return Host(MemoryFiles({PATH: text.encode()}, {}, frozenset()), NoCommands(), is_root=True)


def edit(key: str, value: str) -> FileEdit:
    return FileEdit(PATH, "cpf", f"config/{key}", value)


@given(TEXTS, st.sampled_from(sorted(KEYS)))
def test_what_is_set_is_read_by_the_probe_and_by_a_scan(text: str, key: str) -> None:
    after = apply_edit(text.encode(), edit(key, KEYS[key])).decode()
    one = parse_tunable(f"file:{PATH}:config/{key}")
    assert observe(host(after), one.probe) == KEYS[key]
    read = parse_cpf(after)
    fields = {"Asyncwij": read.asyncwij, "wduseasyncio": read.wduseasyncio}
    lists = {"wdparm": read.wdparm, "globals": read.globals_mb}
    found = str(fields[key]) if key in fields else ",".join(map(str, lists[key]))
    assert found == KEYS[key]


@given(TEXTS, st.sampled_from(sorted(KEYS)))
def test_every_other_line_stays(text: str, key: str) -> None:
    def others(content: str) -> list[str]:
        kept, section = [], ""
        for line in content.splitlines():
            bare = line.strip()
            section = bare if bare.startswith("[") else section
            if not (section == "[config]" and bare.partition("=")[0].strip() == key and "=" in bare):
                kept.append(line)
        return [line for line in kept if line]

    after = apply_edit(text.encode(), edit(key, KEYS[key])).decode()
    assert others(after) == others(text)


@pytest.mark.parametrize(("text", "refusal"), CASES["a key in another spelling is not given twice"])
def test_a_key_in_another_spelling_is_not_given_twice(text: str, refusal: str | None) -> None:
    one = parse_tunable(f"file:{PATH}:config/Asyncwij")
    around = one.run_preflight(host(text), "8", "16")
    assert (around.refusal is None) == (refusal is None)
    assert refusal is None or refusal in (around.refusal or "")
    assert any("when it starts" in note for note in around.notes)
