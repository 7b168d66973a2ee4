"""sysctl files and directories of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from advisor.errors import InvalidInputError
from advisor.host import live_host
from advisor.importers.records import LACKS_KEY, Mode
from advisor.importers.sysctl_text import import_sysctl
from advisor.importers.to_profile import to_profile, to_toml
from advisor.report.recommend import imported_text
from tests.cases import read_cases
from tests.importers.hosts import PROC, became, machine, values

FILE = "/etc/sysctl.d/10-own.conf"


def made(text: str | bytes, mode: Mode = "faithful") -> dict[str, str | None]:
    found = import_sysctl(FILE, machine({FILE: text}), mode)
    assert len(to_profile(found).tunables) == len(values(found))
    return values(found)


DATA = read_cases(__file__)


@pytest.mark.parametrize(("text", "expected"), DATA["lines"])
def test_lines(text: str, expected: dict[str, str]) -> None:
    assert made(text) == expected


@pytest.mark.parametrize("text", ["# nothing but this\n", "\n", ""])
def test_a_file_without_an_assignment_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="no KEY = VALUE in it"):
        made(text)


def test_quotes_are_not_meant() -> None:
    assert made('net.ipv4.tcp_rmem="4096 8192 9000"\n', "intent") == {"sysctl:net.ipv4.tcp_rmem": "4096 8192 9000"}


def test_a_directory_in_the_order_of_names() -> None:
    host = machine(
        {FILE: "vm.swappiness=1\n", "/etc/sysctl.d/99-z.conf": "vm.swappiness=9\n", "/etc/sysctl.d/x": "a=1\n"}
    )
    found = import_sysctl("/etc/sysctl.d", host, "faithful")
    assert values(found) == {"sysctl:vm.swappiness": "9"}
    assert became(found, "vm.swappiness")[0].why == "/etc/sysctl.d/99-z.conf line 1 sets it again"
    assert found.sources == (FILE, "/etc/sysctl.d/99-z.conf")


def test_a_pattern_stands_for_the_keys_of_this_host() -> None:
    keys: dict[str, str | bytes] = {f"{PROC}/net/ipv4/conf/{name}/rp_filter": "0\n" for name in ("eth0", "eth1", "all")}
    text = "net.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.all.rp_filter\nnet.ipv4.conf.eth1.rp_filter=1\n"
    found = import_sysctl(FILE, machine({**keys, FILE: text}), "faithful")
    assert values(found) == {"sysctl:net.ipv4.conf.eth0.rp_filter": "2", "sysctl:net.ipv4.conf.eth1.rp_filter": "1"}
    assert became(import_sysctl(FILE, machine({FILE: "a.*=1\n"}), "intent"), "a.*")[0].outcome == "ignored"


def test_the_authors_own_words_are_the_reason() -> None:
    found = import_sysctl(FILE, machine({FILE: "# Swap late. Or never.\nvm.swappiness=1\n"}), "intent")
    assert to_profile(found).tunables[0].why == "Swap late."


def test_lowering_is_told() -> None:
    host = machine({FILE: "net.ipv4.tcp_rmem=4096 87380 16777216\n"})
    assert [one.kind for one in import_sysctl(FILE, host, "faithful").differences] == ["lowers"]
    assert became(import_sysctl(FILE, host, "intent"), "net.ipv4.tcp_rmem")[0].sense == "at-least"


@pytest.mark.parametrize("data", [b"\xff=1\n", b"a" * 300_000])
def test_what_cannot_be_read_is_named(data: bytes) -> None:
    with pytest.raises(InvalidInputError, match=r"10-own\.conf"):
        made(data)


def test_a_comment_may_hold_any_bytes() -> None:
    text = b"# gr\xfc\xdfe\r\n; \xff\nvm.swappiness=1\n"
    found = import_sysctl(FILE, machine({FILE: text}), "faithful")
    assert values(found) == {"sysctl:vm.swappiness": "1"}
    assert "gr\ufffd\ufffde \ufffd" in to_toml(found)


@pytest.mark.parametrize("mode", ["faithful", "intent"])
def test_only_the_line_that_is_not_utf8_is_left_out(mode: Mode) -> None:
    text = b"vm.swappiness=1\nkernel.domainname=a\nkernel.domainname=\xe4\n\xe4\n\xe4.b=1\nvm.swappiness=2\n-\xe4\n"
    found = import_sysctl(FILE, machine({FILE: text}), mode)
    assert values(found) == {"sysctl:vm.swappiness": "2"}
    assert [(one.line, one.outcome, one.quoted) for one in found.settings] == DATA["only_the_line_that_is_not_utf8"]
    assert found.settings[1].why == f"{FILE} line 3 sets it again"
    assert found.settings[2].why == "not UTF-8: no profile can hold it"
    with pytest.raises(InvalidInputError, match=r"10-own\.conf: line 2: not UTF-8: no profile"):
        import_sysctl(FILE, machine({FILE: b"#\nab\xe4=1\n"}), mode)


def test_what_is_not_there() -> None:
    with pytest.raises(InvalidInputError, match="/nosuch: does not exist"):
        import_sysctl("/nosuch", machine(), "faithful")
    with pytest.raises(InvalidInputError, match="holds no"):
        import_sysctl(
            "/etc/tmpfiles.d", machine({"/etc/tmpfiles.d/x": ""}, without=("/etc/tmpfiles.d/x.conf",)), "intent"
        )


def test_every_line_that_is_no_assignment_is_told() -> None:
    text = "foo\nvm.swappiness 10\nvm.dirty_ratio = 5\n = 7\n\n# a comment\n"
    found = import_sysctl(FILE, machine({FILE: text}), "intent")
    assert values(found) == {"sysctl:vm.dirty_ratio": "5"}
    reported = {(one.line, one.written): one for one in found.settings if one.outcome == "ignored"}
    assert sorted(reported) == [(1, "foo"), (2, "vm.swappiness 10"), (4, "= 7")]
    assert {one.why for one in reported.values()} == {"no KEY = VALUE: sysctl(8) reports it and passes over it"}
    assert [one.line for one in found.settings] == [1, 2, 3, 4]
    page = imported_text(found, width=100, color=False)
    assert "4 settings: 1 tunable, 3 ignored, 0 by hand." in page
    assert "  vm.swappiness 10\n" in page
    assert "# vm.swappiness 10: ignored, no KEY = VALUE" in to_toml(found)


@pytest.mark.parametrize("text", ["hello\n", "# x\n\nroot:x:0:0:root:/root:/bin/bash\n", "\0\n===\n = \nvm\n"])
def test_a_file_without_any_assignment_is_none_of_sysctl(text: str) -> None:
    number = 3 if text.startswith("# x") else 2 if text.startswith("\0") else 1
    with pytest.raises(InvalidInputError, match=rf"10-own\.conf: line {number}: no KEY = VALUE"):
        made(text)


def test_a_directory_with_one_such_file_tells_its_lines() -> None:
    found = import_sysctl(
        "/etc/sysctl.d", machine({FILE: "hello\n", "/etc/sysctl.d/20.conf": "vm.swappiness=1\n"}), "intent"
    )
    assert became(found, "")[0].file == FILE
    assert values(found) == {"sysctl:vm.swappiness": "1"}


def test_what_is_no_regular_file_is_refused_or_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "10-pipe.conf")
    (tmp_path / "20.conf").write_text("vm.swappiness=1\n")
    (tmp_path / "30.conf").symlink_to("/dev/null")
    with pytest.raises(InvalidInputError, match=r"10-pipe\.conf: not a regular file"):
        import_sysctl(str(tmp_path / "10-pipe.conf"), live_host(), "intent")
    (tmp_path / "pipes").mkdir()
    os.mkfifo(tmp_path / "pipes" / "10-pipe.conf")
    with pytest.raises(InvalidInputError, match=r"10-pipe\.conf: not a regular file"):
        import_sysctl(str(tmp_path / "pipes"), live_host(), "intent")
    found = import_sysctl(str(tmp_path), live_host(), "intent")
    assert became(found, "") == [
        one for one in found.settings if one.file.endswith("10-pipe.conf") and one.why == "not a regular file"
    ]
    assert len(became(found, "")) == 1
    assert values(found) == {"sysctl:vm.swappiness": "1"}


def test_directories_and_links_to_nothing_are_ignored_by_name(tmp_path: Path) -> None:
    (tmp_path / "20.conf").write_text("vm.swappiness=1\n")
    (tmp_path / "30-x.conf").mkdir()
    (tmp_path / "40.conf").symlink_to("nosuch")
    (tmp_path / "50.conf").symlink_to("30-x.conf")
    found = import_sysctl(str(tmp_path), live_host(), "intent")
    assert values(found) == {"sysctl:vm.swappiness": "1"}
    assert [(Path(one.file).name, one.outcome, one.why) for one in became(found, "")] == [
        ("30-x.conf", "ignored", "not a regular file"),
        ("40.conf", "ignored", "a symbolic link to a file that does not exist"),
        ("50.conf", "ignored", "not a regular file"),
    ]
    with pytest.raises(InvalidInputError, match=r"40\.conf: does not exist"):
        import_sysctl(str(tmp_path / "40.conf"), live_host(), "intent")
    (tmp_path / "20.conf").unlink()
    with pytest.raises(InvalidInputError, match=r"30-x\.conf: not a regular file"):
        import_sysctl(str(tmp_path), live_host(), "intent")


def test_a_captured_directory_with_one_that_is_no_file() -> None:
    host = machine(
        {FILE: "vm.swappiness=1\n", "/etc/sysctl.d/30-x.conf/a": "\n"}, links={"/etc/sysctl.d/40.conf": "/nosuch"}
    )
    found = import_sysctl("/etc/sysctl.d", host, "intent")
    assert [one.file for one in became(found, "")] == ["/etc/sysctl.d/30-x.conf", "/etc/sysctl.d/40.conf"]


@pytest.mark.parametrize(("key", "written", "wanted", "note"), DATA["a_number_is_what_the_kernel_makes"])
def test_a_number_is_what_the_kernel_makes_of_it(key: str, written: str, wanted: str, note: str) -> None:
    host = machine({FILE: f"{key} = {written}\n", f"{PROC}/net/ipv4/tcp_fin_timeout": "60\n"})
    (one,) = import_sysctl(FILE, host, "intent").settings
    assert one.value == wanted
    said = one.note.removesuffix(LACKS_KEY).rstrip("; ")
    assert note in said if note else not said


def test_a_key_that_the_host_lacks_is_named() -> None:
    host = machine({FILE: "vm.swappiness = 10\nvm.nosuch = 1\n", f"{PROC}/vm/swappiness": "60\n"})
    noted = {one.key: one.note for one in import_sysctl(FILE, host, "intent").settings}
    assert noted == {"vm.swappiness": "", "vm.nosuch": LACKS_KEY}


def test_fewer_numbers_than_the_kernel_has_are_left_to_a_person() -> None:
    (one,) = import_sysctl(FILE, machine({FILE: "net.ipv4.tcp_rmem = 4096\n"}), "intent").settings
    assert one.outcome == "manual"
    assert "its 3 numbers" in one.why


@pytest.mark.parametrize(("line", "why"), DATA["what_the_kernel_is_sure_to_refuse"])
def test_what_the_kernel_is_sure_to_refuse_comes_not_over(line: str, why: str) -> None:
    for mode, outcome in (("faithful", "ignored"), ("intent", "manual")):
        found = import_sysctl(
            FILE, machine({FILE: f"{line}\nvm.dirty_ratio=5\n"}), "intent" if mode == "intent" else "faithful"
        )
        assert found.settings[0].outcome == outcome
        assert f"the kernel refuses the value: {why}" in found.settings[0].why


@pytest.mark.parametrize(("line", "quoted"), DATA["a_line_is_quoted_as_it_is_written"])
def test_a_line_is_quoted_as_it_is_written(line: str, quoted: str) -> None:
    (one,) = import_sysctl(FILE, machine({FILE: f"# c\n{line}\n"}), "intent").settings
    assert one.quoted == quoted
