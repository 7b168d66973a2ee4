"""TuneD's own loader, variables, functions, operators and device rules against ours, on the same machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from advisor.facts.processors.cpulist import read_list
from advisor.facts.system.identity import read_identity
from advisor.facts.tuned.files import installed_profiles, parse_tuned_ini
from advisor.facts.tuned.functions import AssertionFailedError
from advisor.facts.tuned.profile import TunedProfile, Variables, load_tuned
from advisor.facts.unknown import Unknowns
from advisor.host import Host, live_host
from advisor.importers.tuned.devices import SENSES, can_compare, parse_assignment, parse_device_rules
from tests.cases import read_cases
from tests.importers.tuned_package import NAMES, ask, moved_profiles, stand_ins, tuned_files

Answer = dict[str, Any]


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return moved_profiles(tmp_path_factory.mktemp("profiles"))


@pytest.fixture(scope="module")
def theirs(directories: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Answer:
    host = live_host()
    is_virtual = read_identity(host, Unknowns()).virtualization != "none"
    online = read_list(host, "/sys/devices/system/cpu/online")
    assert isinstance(online, tuple)
    commands = stand_ins(tmp_path_factory.mktemp("bin"), virtual=is_virtual, cpus=len(online))
    answer = ask({"directories": list(directories), "profiles": NAMES}, commands=commands)
    profiles: Answer = answer["profiles"]
    return profiles


def test_debian_12_has_thirty_seven() -> None:
    assert tuple(installed_profiles(tuned_files())) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_loader_agrees(name: str, theirs: Answer, directories: tuple[str, str]) -> None:
    """Includes merged, variables and functions expanded: the same sections, settings and values, in the same order."""
    ours = load_tuned(name, live_host(), live_host(), directories=directories)
    their = theirs[name]
    if "error" in their:
        assert ours.failed is not None, their["error"]
        assert "Assertion" in their["error"]
        return
    assert ours.failed is None
    assert {key: option.value for key, option in ours.main.items()} == their["options"]
    assert [_unit(ours, unit) for unit in ours.units] == [_told(*unit) for unit in their["units"]]


def _unit(profile: TunedProfile, name: str) -> Answer:
    unit = profile.units[name]
    said = ("type", "enabled", "devices", "devices_udev_regex", "cpuinfo_regex", "uname_regex")
    return {
        "name": name,
        **{key: getattr(unit, key) for key in said},
        "options": [[key, option.value] for key, option in unit.options.items()],
        "expanded": [[key, _expanded(profile.variables, option.value or "")] for key, option in unit.options.items()],
    }


def _told(name: str, unit: Answer) -> Answer:
    return {"name": name, **unit}


def _expanded(variables: Variables, text: str) -> str:
    try:
        return variables.expand(text).text
    except AssertionFailedError:
        return "InvalidProfileException"


DATA = read_cases(__file__)

OPERANDS = DATA["OPERANDS"]


def assign_value(new: str, current: str | None) -> str | None:
    """What TuneD writes for ``new`` where ``current`` is there, by what the import makes of it; None for nothing."""
    operator, value = new[:1], new[1:]
    if parse_assignment(new).sense == "exactly" or not can_compare(new, current):
        return new
    if current is None:
        return value
    assert parse_assignment(new).sense == SENSES[operator]
    return value if (int(value) > int(current) if operator == ">" else int(value) < int(current)) else None


def test_operators_agree() -> None:
    pairs = [
        (f"{operator}{new}", current)
        for operator in ("", ">", "<", ">>", "> ", "=>", ">=")
        for new in OPERANDS
        for current in (*OPERANDS, None)
    ]
    answer = ask({"operators": pairs})["operators"]
    assert [assign_value(new, current) for new, current in pairs] == answer


WORDS = ("sd*", "sda", "!sda", "nvme?n1", "!nvme*", "[sn]*", "*", "!*", "!", "", "dm-*,", ",", "md[0-9]", "!  ", "\t")
DEVICES = ("sda", "sdb", "nvme0n1", "nvme1n1", "dm-0", "md0", "md127", "loop0", "!sda")


def test_device_rules_agree() -> None:
    chance = random.Random(1)
    rules = [" ".join(chance.choices(WORDS, k=count)) for count in range(1, 5) for _ in range(120)]
    rules += [", ".join(chance.choices(WORDS, k=3)) for _ in range(60)]
    answer = ask({"rules": [(rule, DEVICES) for rule in rules]})["rules"]
    assert [list(parse_device_rules(rule).match(DEVICES)) for rule in rules] == answer


LISTS = ("0", "0-1", "1,0", "0-3,8", "^0,0-3", "0-3,!2", "0x3", "0x00000001,00000003,,5", "", "x", "3-1", "'0-1'", "0-")
CALLS = (
    *(f"${{f:{name}:{cpus}}}" for name in ("cpulist_unpack", "cpulist_pack", "cpulist2hex") for cpus in LISTS),
    *(f"${{f:{name}:{cpus}}}" for name in ("cpulist_invert", "cpulist2hex_invert", "cpulist_online") for cpus in LISTS),
    *(f"${{f:cpulist2devs:{cpus}}}" for cpus in LISTS),
    *(f"${{f:cpulist_present:{cpus}}}" for cpus in LISTS),
    *(f"${{f:hex2cpulist:{mask}}}" for mask in ("3", "0xff", "ffffffff,00000001", "", "x")),
    *(f"${{f:{name}:{number}}}" for name in ("kb2s", "s2kb") for number in ("7", "8", "-3", "x", "")),
    *("${f:strip: a :b }", "${f:strip}", "${f:strip:${a}}", "${f:strip:\\:}", "${f:calc_isolated_cores:0}"),
    *("${f:calc_isolated_cores:1}", "${f:calc_isolated_cores}", "${f:calc_isolated_cores:x}", "${f:nosuch:1}"),
    *("${f:regex_search_ternary:abc:b+:yes:no}", "${f:regex_search_ternary:abc:^b:yes:no}"),
    *("${f:cpuinfo_check:processor:yes:no}", "${f:cpuinfo_check:nosuchword:yes}", "${f:cpuinfo_check:nosuch:1:2}"),
    *("${a}", "\\${a}", "\\\\${a}", "$${a}", "${b}", "${a", "a}", "}${a}", "${f:strip:${f:kb2s:4}}", "x${f:kb2s:4}y"),
    *("\\${f:kb2s:4}", "${f:strip:\\${a}}", "${f:exec:echo:hello}", "${f:strip:${f:exec:echo}}", "${c}${a}", "${é}"),
)
DEFINED = (("a", "1"), ("c", "${a}2"), ("d", "${c}${f:kb2s:${a}}"), ("no-name", "x"), ("e", "\\${a}"))


def test_variables_and_functions_agree() -> None:
    texts = [*CALLS, "${d}", "${e}", "${no-name}"]
    answer = ask({"expanded": [(DEFINED, text) for text in texts]})["expanded"]
    variables = Variables(live_host())
    for name, value in DEFINED:
        variables.add(name, value)
    found = {text: _expanded(variables, text) for text in texts}
    assert found == dict(zip(texts, answer, strict=True))


LINES = (
    *(
        "[a]",
        "[b]",
        "[a]",
        "[]]",
        "[DEFAULT]",
        "x=1",
        "x = 2",
        "y=",
        "y",
        "  z = 3",
        "\tmore",
        "    more",
        "; c",
        "# c",
    ),
    *("", " ", "v=a # b", "v=a#b", "v=#b", "# [c]", "k=>4096", "=1", "[c] # d", "[d", "x==2", "é=ü", "p=%(x)s", "x:1"),
)


def test_parsers_agree() -> None:
    """On texts made of lines, as files of a profile and as files of variables."""
    chance = random.Random(2)
    texts = ["\n".join(chance.choices(LINES, k=count % 9 + 1)) for count in range(1500)]
    asked = [(text, is_variables) for text in texts for is_variables in (False, True)]
    answer = ask({"inis": asked})["inis"]
    for (text, is_variables), their in zip(asked, answer, strict=True):
        assert _parsed(text, is_variables=is_variables) == _without_header(their), (text, is_variables)


def _parsed(text: str, *, is_variables: bool) -> object:
    from advisor.errors import InvalidInputError

    try:
        sections = parse_tuned_ini(text, "x", is_variables=is_variables)
    except InvalidInputError:
        return "refused"
    return [[name, [[key, one.value] for key, one in options.items()]] for name, options in sections.items()]


def _without_header(answer: object) -> object:
    if isinstance(answer, dict):
        return "refused"
    assert isinstance(answer, list)
    # The oracle's header of a file of variables stands for our none.
    return [["" if name == "headerless" else name, options] for name, options in answer]


def test_nothing_of_a_profile_runs(tmp_path: Path) -> None:
    """Neither its scripts nor its exec functions, whatever they say."""
    mark = tmp_path / "ran"
    place = tmp_path / "evil" / "tuned.conf"
    place.parent.mkdir()
    script = tmp_path / "evil" / "script.sh"
    script.write_text(f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    place.write_text(
        f"[variables]\nx=${{f:exec:touch:{mark}}}\n[sysctl]\nvm.swappiness=${{x}}\n"
        f"[script]\nscript=script.sh\n[disk]\nscript_pre={script}\ndevices=${{f:exec:touch:{mark}}}\n"
    )
    from advisor.importers.tuned.convert import import_tuned

    host: Host = live_host()
    found = import_tuned("evil", host, "faithful", path=str(place))
    assert not mark.exists()
    manual = {one.key for one in found.settings if one.outcome == "manual"}
    assert {"vm.swappiness", "script", "script_pre"} <= manual
