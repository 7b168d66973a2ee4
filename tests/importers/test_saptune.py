"""saptune's notes. No Debian package has any: these are written after saptune-note(5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InvalidInputError, UsageError
from advisor.facts.writers.tuners import parse_saptune_note
from advisor.host import Host
from advisor.importers.saptune import import_saptune, installed_notes
from advisor.importers.to_profile import to_profile
from advisor.report.recommend import imported_text
from tests.cases import read_cases
from tests.importers.hosts import became, machine, values
from tests.importers.plans import plan_imported

OLD = '[version]\n# SAP-NOTE=1 CATEGORY=HANA VERSION=15 DATE=12.11.2020 NAME="A database"\n'
NEW = "[version]\nVERSION=3\nDATE=01.02.2026\nDESCRIPTION=A database\nREFERENCES=https://x.example/1 https://x.example/2\n"
PLACE = "/var/lib/saptune/working/notes/4711"


def host_with(text: str, **more: str) -> Host:
    return machine({PLACE: OLD + text, **{f"/{path.replace('__', '/')}": body for path, body in more.items()}})


def made(text: str, mode: str = "faithful") -> dict[str, str | None]:
    found = import_saptune("4711", host_with(text), "faithful" if mode == "faithful" else "intent")
    assert len(to_profile(found).tunables) == len(values(found))
    return values(found)


@pytest.mark.parametrize("header", [OLD, NEW])
def test_the_header_in_both_syntaxes(header: str) -> None:
    note = parse_saptune_note(header + "[sysctl]\nvm.swappiness=1\n")
    assert note.name == "A database"
    assert note.version in ("15", "3")
    assert note.date in ("12.11.2020", "01.02.2026")
    assert len(note.references) in (0, 2)


DATA = read_cases(__file__)


@pytest.mark.parametrize(
    ("text", "expected"),
    DATA["a_setting_becomes_a_tunable"],
)  # fmt: skip
def test_a_setting_becomes_a_tunable(text: str, expected: dict[str, str]) -> None:
    assert made(text) == expected


@pytest.mark.parametrize(
    "tags",
    [
        *("os=15-[6-7]", "os=15-[2,4]", "os=15-[6-]", "os=15-[-4]", "os=15-[-]", "os=16.[5-7]", "os=1-*"),
        *("kernel=^5\\.14", "kernel=-rt$"),
        *("os=12-*", "os=15-SP4", "arch=ppc64le", "vendor=IBM", "model=R640", "csp=aws", "virt=kvm"),
        *("pmu_name=skylake", "blkvendor=SEAGATE", "blkmodel=nosuch", "arch=x86_64:arch=x86_64", "bios_vendor=Nobody"),
    ],
)
def test_sections_for_other_hosts_are_ignored(tags: str) -> None:
    found = import_saptune("4711", host_with(f"[sysctl:{tags}]\nvm.swappiness=1\n"), "faithful")
    (one,) = became(found, "vm.swappiness")
    assert (one.outcome, one.section) == ("ignored", f"sysctl:{tags}")


DMI = "/sys/class/dmi/id"
ALIBABA = {f"{DMI}/sys_vendor": "Alibaba Cloud\n", f"{DMI}/product_name": "Alibaba Cloud ECS\n"}
GUEST = {"/proc/cpuinfo": "flags\t\t: fpu cx8 lm hypervisor\n", f"{DMI}/sys_vendor": "QEMU\n"}


@pytest.mark.parametrize(("tags", "files"), DATA["a_section_for_such_a_host"])
def test_a_section_for_such_a_host(tags: str, files: dict[str, str]) -> None:
    note = OLD + f"[sysctl:{tags}]\nvm.swappiness=1\n"
    without = ("/proc/sys/kernel/arch",) if "kernel=" in tags else ()
    found = import_saptune("4711", machine({PLACE: note, **files}, without=without), "faithful")
    (one,) = became(found, "vm.swappiness")
    assert (one.outcome, one.value) == ("tunable", "1"), one.why


@pytest.mark.parametrize(
    ("tags", "files"),
    [
        *(("virt=bare-metal", GUEST), ("virt=chroot", GUEST), ("csp=ovm", ALIBABA), ("csp=gcp", {})),
        *(("csp=aws", ALIBABA), ("arch=x86_64=1", {}), ("arch", {})),
        ("arch=aarch64", {"/proc/sys/kernel/arch": "aarch64\n"}),
    ],
)
def test_a_section_for_another_host(tags: str, files: dict[str, str]) -> None:
    note = OLD + f"[sysctl:{tags}]\nvm.swappiness=1\n"
    (one,) = became(import_saptune("4711", machine({PLACE: note, **files}), "faithful"), "vm.swappiness")
    assert one.outcome == "ignored"


def test_a_kernel_that_is_not_known_is_left_to_a_person() -> None:
    note = OLD + "[sysctl:kernel=^6]\nvm.swappiness=1\n"
    host = machine({PLACE: note}, without=("/proc/sys/kernel/osrelease", "/proc/version"))
    (one,) = became(import_saptune("4711", host, "faithful"), "vm.swappiness")
    assert (one.outcome, one.why) == ("manual", "whether kernel=^6 fits this host is unknown")


@pytest.mark.parametrize(("header", "why"), DATA["a_tag_that_is_no_regular_expression"])
def test_a_tag_that_is_no_regular_expression_is_left_to_a_person(header: str, why: str) -> None:
    found = import_saptune("4711", host_with(f"[{header}]\nNRREQ=5\n"), "faithful")
    (one,) = found.settings
    assert one.outcome == "manual"
    assert one.why.startswith(why)


def test_arm_has_two_names_for_one_thing() -> None:
    note = OLD + "[sysctl:arch=arm64]\nvm.swappiness=1\n[sysctl:arch=aarch64]\nvm.swappiness=2\n"
    host = machine({PLACE: note, "/proc/sys/kernel/arch": "aarch64\n"})
    assert values(import_saptune("4711", host, "faithful")) == {"sysctl:vm.swappiness": "1"}
    assert values(import_saptune("4711", host, "intent")) == {"sysctl:vm.swappiness": "2"}


@pytest.mark.parametrize(("text", "words"), DATA["what_is_left_to_a_person"])
def test_what_is_left_to_a_person(text: str, words: str) -> None:
    found = import_saptune("4711", host_with(text), "intent")
    (one,) = found.settings
    assert one.outcome == "manual"
    assert words in one.why


def test_a_reminder_is_told_paragraph_by_paragraph() -> None:
    text = "[reminder]\n# First line\n# and second.\n#\n\n# Another = one\nno comment\n[vm]\n# why\nTHP=never\n"
    found = import_saptune("4711", host_with(text), "faithful")
    assert [(one.line, one.outcome, one.quoted) for one in found.settings] == DATA["a_reminder_is_told_paragraph"]
    assert found.settings[-1].why == "why"
    assert "First line and second." in imported_text(found, width=100, color=False)


@pytest.mark.parametrize(("text", "quoted", "why"), DATA["a_line_that_saptune_passes_over"])
def test_a_line_that_saptune_passes_over(text: str, quoted: str, why: str) -> None:
    (one,) = import_saptune("4711", host_with(text), "intent").settings
    assert one.outcome == "ignored"
    assert one.quoted.strip() == quoted
    assert why in one.why


def test_of_two_words_saptune_would_take_the_last_for_the_name() -> None:
    (one,) = import_saptune("4711", host_with("[sysctl]\nthe vm.swappiness = 5\n"), "intent").settings
    assert (one.outcome, one.quoted) == ("manual", "the vm.swappiness = 5")
    assert "vm.swappiness for the name" in one.why


def test_a_line_is_quoted_with_its_own_operator() -> None:
    found = import_saptune("4711", host_with("[sysctl]\nvm.max_map_count > 4096\nvm.swappiness=5\n"), "faithful")
    assert [one.quoted for one in found.settings] == ["vm.max_map_count > 4096", "vm.swappiness = 5"]
    assert "  [sysctl] vm.max_map_count > 4096\n" in imported_text(found, width=100, color=False)


def test_every_line_outside_of_a_section_is_reported() -> None:
    """Also what stands below a header that cannot be read, which says for whom the lines are."""
    text = (
        "vm.early=1\n"
        + OLD
        + "[sysctl]\nvm.swappiness=5\n[sysctl\nvm.dirty_ratio=5\n[]\nvm.x=1\n[ sysctl ]\nvm.overcommit_memory=1\n"
        + "[:arch=x86_64]\nvm.y=1\n[vm] THP=never\nKSM=0\n[sys] # why\nkernel.mm.ksm.run=1\n"
    )
    found = import_saptune("4711", machine({PLACE: text}), "faithful")
    assert [(one.line, one.outcome, one.quoted) for one in found.settings] == DATA["every_line_outside_of_a_section"]
    why = {one.line: one.why for one in found.settings}
    assert why[1] == "it stands before the first section: saptune passes over it"
    assert why[6] == "a header without a closing bracket: neither it nor what is below it can be read"
    assert why[7] == "the header of its section, line 6, cannot be read"
    assert why[8] == "a header without a name: neither it nor what is below it can be read"
    assert why[14] == "text behind the header of a section cannot be read: write it on a line of its own"
    page = imported_text(found, width=100, color=False)
    assert "12 settings: 3 tunable, 2 ignored, 7 by hand." in page
    assert "  [sysctl\n" in page


def test_a_setting_in_the_section_version_is_reported() -> None:
    found = import_saptune("4711", machine({PLACE: NEW + "vm.swappiness=5\njunk\n[vm]\nTHP=never\n"}), "faithful")
    assert [(one.line, one.outcome, one.quoted) for one in found.settings] == [
        (6, "ignored", "vm.swappiness = 5"),
        (7, "ignored", "junk"),
        (9, "tunable", "THP = never"),
    ]
    assert found.settings[0].why == "saptune reads VERSION, DATE, DESCRIPTION and REFERENCES alone here"
    with pytest.raises(InvalidInputError, match="no section with a setting"):
        import_saptune("4711", machine({PLACE: NEW + "vm.swappiness=5\n"}), "faithful")


def test_an_override_says_nothing_of_lines_that_cannot_be_read() -> None:
    text = OLD + "[sysctl\nvm.swappiness=1\n"
    own = "[sysctl\nvm.swappiness=1\n[vm]\nTHP=never\n"
    host = machine({PLACE: text + "[vm]\nTHP=always\n", "/etc/saptune/override/4711": own})
    found = import_saptune("4711", host, "faithful")
    assert [one.file for one in became(found, "vm.swappiness")] == [PLACE, "/etc/saptune/override/4711"]
    assert {one.outcome for one in became(found, "vm.swappiness")} == {"manual"}
    with pytest.raises(InvalidInputError, match="4711: line 3: a header without a closing bracket"):
        import_saptune("4711", machine({PLACE: text}), "faithful")


def test_a_lone_word_of_the_command_line() -> None:
    assert made("[grub]\nnosmt\n") == {"cmdline:nosmt": "(set)"}


def test_operators_and_growing_limits() -> None:
    found = import_saptune("4711", host_with("[sysctl]\nvm.max_map_count >= 5\nvm.swappiness < 9\n"), "faithful")
    assert [one.sense for one in found.settings] == ["at-least", "at-most"]
    meant = import_saptune("4711", host_with("[sysctl]\nvm.max_map_count = 5\n"), "intent")
    assert meant.settings[0].sense == "at-least"


def test_an_override_takes_the_place_of_a_line_or_takes_it_out() -> None:
    own = "[sysctl]\nvm.swappiness=5\nkernel.numa_balancing=\n"
    text = OLD + "[sysctl]\nvm.swappiness=1\nkernel.numa_balancing=0\nvm.dirty_ratio=10\n"
    host = machine({PLACE: text, "/etc/saptune/override/4711": own})
    found = import_saptune("4711", host, "faithful")
    assert values(found) == {"sysctl:vm.swappiness": "5", "sysctl:vm.dirty_ratio": "10"}


def test_where_notes_lie() -> None:
    host = machine(
        {"/usr/share/saptune/notes/1": OLD, PLACE: OLD, "/etc/saptune/extra/own.conf": OLD, "/etc/saptune/extra/x": ""}
    )
    assert installed_notes(host) == {
        "1": "/usr/share/saptune/notes/1",
        "4711": PLACE,
        "own": "/etc/saptune/extra/own.conf",
    }
    with pytest.raises(UsageError, match="no saptune note"):
        import_saptune("nosuch", host, "faithful")


@pytest.mark.parametrize("data", [b"", b"\xff", b"no section = 1\n", b"[version]\n"])
def test_what_is_no_note_is_named(data: bytes) -> None:
    with pytest.raises(InvalidInputError, match="4711"):
        import_saptune("4711", machine({PLACE: data}), "faithful")


def test_a_note_plans() -> None:
    host = host_with("[vm]\nTHP=never\n[sysctl]\nkernel.numa_balancing=0\n[block:blkpat=nvme]\nREAD_AHEAD_KB=64\n")
    plan = plan_imported(import_saptune("4711", host, "faithful"), host)
    assert {change.tunable for change in plan.changes} >= {"thp:enabled", "sysctl:kernel.numa_balancing"}


@given(st.text(alphabet="[]:=# \n<>\"'abk.", max_size=80))
def test_any_text_is_read(text: str) -> None:
    for entry in parse_saptune_note(text).entries:
        assert entry.section is not None
        assert 1 <= entry.line <= text.count("\n") + 1
