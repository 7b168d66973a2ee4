"""Names that a host, a file or a profile can have, on their way to every output: none is obeyed by a terminal, and
none is run by a shell."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from advisor.errors import AdvisorError, NotRestoredError
from advisor.facts.block.dm import STATUS, TABLE
from advisor.facts.host_facts import scan
from advisor.host import Host, MemoryFiles, RecordedCommands
from advisor.operations.transactions import apply_profiles, script_for
from advisor.planner import plan_profiles
from advisor.planning.records import plan_document
from advisor.profiles.profile import parse_profile
from advisor.report.encode import encode_document, error_document
from advisor.report.fix import steps_text
from advisor.report.json import scan_document
from advisor.report.library import profile_list_text, profile_text
from advisor.report.plan import plan_text
from advisor.report.scan_page import scan_text
from advisor.report.transaction import applied_text, rollback_text, status_text, verify_text
from advisor.rules.judged import judge
from advisor.transaction.journal import Store
from advisor.transaction.status import host_status, rollback_transactions, verify_transactions
from tests.facts.storage import Tree
from tests.facts.test_dm import MULTIPATH_STATUS, MULTIPATH_TABLE, multipath, uuid
from tests.facts.test_md import HEALTHY, IN_SYNC
from tests.facts.test_mdstat import MDSTAT
from tests.planning.system import Link, host, system
from tests.profiles.build import document, toml, wanted
from tests.trees import listing, make_tree

# Short enough for the name of a link; no blanks there, as the kernel takes none.
NAMES: Mapping[str, str] = {
    "colour": "a\x1b[31mb",
    "title": "\x1b]0;t\x07",
    "c1": "a\x9b31mb",
    "delete": "a\x7fb",
    "backspace": "a\x08\x08b",
    "right-to-left": "a\u202eb",
    "isolate": "a\u2066b\u2069",
    "mark": "a\u200fb\ufeff",
    "tag": "a\U000e0041b",
    "not-utf-8": "caf\udce9",
    "substitution": "$(>ran)",
    "backticks": "`>ran`",
    "quote": "';>ran;'",
    "double": '";>ran;"',
    "operators": "a;>ran|b&",
    "variable": "${HOME}$IFS",
    "globs": "*?[a]{b,c}~",
    "dashes": "--force",
    "dash": "-n",
    "percent": "%s%n%d",
    "backslash": "a\\033[1mb\\",
    "template": "{{7*7}}{%x%}",
    "comment": "#a",
    "equals": "a=b",
    "script": "<b>&amp;",
    "wide": "日本語",
}
# What only files can hold.
TEXTS: Mapping[str, str] = {
    **NAMES,
    "markup": "[bold]b[/]",
    "newline": "a\nb: c\n>ran",
    "return": "a\rb\r\n>ran",
    "tab": "a\tb",
    "separator": "a\u2028b\u2029c",
    "blanks": " a  b ",
    "long": "x" * 5000,
}
SHELLS = [shell for shell in (["dash"], ["busybox", "sh"], ["bash", "--posix"]) if shutil.which(shell[0])]
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def harmless(text: str | bytes) -> None:
    """Nothing but printable characters and line ends."""
    shown = text if isinstance(text, str) else text.decode()
    odd = {char for char in shown if char != "\n" and not char.isprintable()}
    assert odd == set()


def harmless_page(plain: str, coloured: str) -> None:
    harmless(plain)
    # With the sequences of colour removed, no escape is left; those of the host are not among them, as it has none.
    assert _COLOURS.sub("", coloured).replace("\n", "").isprintable()


def texts_of(found: Host) -> None:
    """Every output of a scan."""
    facts = scan(found)
    findings = judge(facts)
    for width in (60,):
        harmless_page(
            scan_text(facts, findings, width=width, color=False), scan_text(facts, findings, width=width, color=True)
        )
    harmless(scan_document(facts, findings))
    json.loads(scan_document(facts, findings))


@pytest.mark.parametrize("name", NAMES)
def test_a_host_that_says_odd_things(name: str, tmp_path: Path) -> None:
    """The text wherever a scan reads words, next to a link of that name."""
    text = NAMES[name]
    words = {
        "/etc/os-release": f'PRETTY_NAME="{text}"\nID={text}\n',
        "/etc/llttab": f"set-node {text}\nset-cluster 1\nlink {text} {text} - ether - -\nset-flow highwater:10\n",
        "/etc/sysctl.d/10-x.conf": f"net.core.rmem_max = {text}\n{text} = 1\n",
        "/proc/sys/kernel/hostname": text + "\n",
        "/proc/cmdline": text,
        "/proc/cpuinfo": f"processor\t: 0\nmodel name\t: {text}\n",
        "/sys/class/dmi/id/sys_vendor": text,
        "/sys/class/dmi/id/product_name": text,
        "/sys/kernel/mm/transparent_hugepage/enabled": f"always [{text}] never",
        "/etc/tuned/active_profile": text,
        "/proc/net/vlan/config": f"VLAN Dev name | VLAN ID\nx\n{text} | 5 | {text}\n",
        "/proc/mdstat": f"Personalities : [{text}]\nmd0 : active raid1 {text}[0]\n      10 blocks {text}\n",
        "/proc/self/mountinfo": f"30 1 8:1 / /{text} rw - ext4 /dev/{text} rw,{text}\n",
    }
    bond = Link("bond0", "bond", on=(text,), data={"mode": text})
    system(tmp_path, (Link("eth0", address="10.0.2.15", node=0), Link(text, address="192.0.2.1", node=1), bond))
    make_tree(tmp_path / "root", {path: word.encode("utf-8", "surrogateescape") for path, word in words.items()})
    texts_of(host(tmp_path))


@pytest.mark.parametrize(
    "shells", [SHELLS[:1], pytest.param(SHELLS[1:], marks=pytest.mark.thorough)], ids=["first", "others"]
)
def test_a_host_of_odd_links_from_scan_to_rollback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shells: list[list[str]]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path / "state"))
    # A comma parts names, and what is not UTF-8 has become U+FFFD, which is the name of nothing here.
    odd = [text for text in NAMES.values() if "," not in text and "\udce9" not in text]
    links = [Link(text, address=f"192.0.2.{number}", node=1) for number, text in enumerate(odd, 1)]
    found = system(tmp_path, (Link("lo", mtu=65536, max_mtu=0), Link("eth0", address="10.0.2.15", node=0), *links))
    store, chosen = Store(), {"links": ",".join(odd)}

    plan = plan_profiles(found, ("jumbo-frames",), chosen, store=store)
    assert {change.tunable for change in plan.changes} == {f"link:{text}:mtu" for text in odd}
    harmless_page(plan_text(plan, width=80, color=False), plan_text(plan, width=80, color=True))
    harmless(encode_document(plan_document(plan)))
    harmless(steps_text(plan))
    assert plan.files
    assert all(re.fullmatch(r"(/[\w@:-][\w.@:-]*)+", file.path, re.ASCII) for file in plan.files)
    before = listing(tmp_path / "root")

    said: list[str] = []
    done = apply_profiles(found, ("jumbo-frames",), chosen, store=store, progress=said.append)
    assert done.record is not None
    harmless(applied_text(done.record, done.plan, width=80, color=False))
    harmless(status_text(host_status(found, store), width=80, color=False))
    script = script_for(found, None, {}, store)
    files = [tmp_path / "root/sys/class/net" / text / "mtu" for text in odd]
    for file in files[::2]:
        file.write_text("1234\n")
    harmless(verify_text(verify_transactions(found, None, store), width=80, color=False))
    for shell in shells:
        for file in files:
            file.write_text("9000\n")
        run(script, tmp_path, shell)
        assert {file.read_text() for file in files} == {"1500\n"}
        assert listing(tmp_path / "root") == before
    back = rollback_transactions(found, None, everything=False, force=False, store=store)
    harmless(rollback_text(back, width=80, color=False))
    assert listing(tmp_path / "root") == before
    assert not list(tmp_path.rglob("ran"))


def run(script: str, where: Path, shell: list[str]) -> bytes:
    """The script in the tree, and a look that it ran nothing else; what it said."""
    path = where / "rollback.sh"
    path.write_bytes(script.encode("utf-8", "surrogateescape"))
    words = [*shell, str(path), "--root", str(where / "root"), "--force"]
    environment = {"PATH": f"{where / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"}
    done = subprocess.run(words, capture_output=True, cwd=where, env=environment, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert not list(where.rglob("ran"))
    return done.stdout + done.stderr


def test_what_the_script_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(tmp_path / "state"))
    text = NAMES["colour"]
    found = system(tmp_path, (Link("eth0", address="10.0.2.15", node=0), Link(text, address="192.0.2.1", node=1)))
    script = script_for(found, "jumbo-frames", {"links": text})
    (tmp_path / "root/sys/class/net" / text / "mtu").write_text("9000\n")
    harmless(run(script, tmp_path, SHELLS[0]))


def host_with_everything() -> Tree:
    """Return a host with each kind of storage that names come from."""
    tree = multipath()
    for index in range(3):
        tree.nvme(index, index % 2, partitions=(f"nvme{index}n1p1",), number=f"259:{index}")
    tree.md("md0", HEALTHY, IN_SYNC)
    tree.dm(2, "vg0-data", uuid(1), ("md0",))
    tree.mount("253:2", "/srv", "ext4", "rw,stripe=8")
    tree.files["/proc/mdstat"] = MDSTAT
    tree.files["/run/udev/data/b259:1"] = "E:ID_FS_TYPE=xfs\n"
    tree.answer(TABLE, MULTIPATH_TABLE + "vg0-data: 0 8192 striped 2 128 9:0 0 9:0 8\n")
    tree.answer(STATUS, MULTIPATH_STATUS.format("A", "F"))
    return tree


FILES = sorted(path for path in host_with_everything().files if path.startswith(("/sys/devices", "/proc", "/run")))


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_storage(name: str) -> None:
    for chosen in (
        FILES,
        FILES[::2],
        FILES[1::2],
        [path for path in FILES if path.endswith(("model", "name", "uuid"))],
    ):
        texts_of(storage_with(dict.fromkeys(chosen, TEXTS[name])))


def storage_with(changed: Mapping[str, str]) -> Host:
    tree = host_with_everything()
    contents = {path: text.encode() for path, text in tree.files.items()}
    contents |= {path: text.encode("utf-8", "surrogateescape") for path, text in changed.items()}
    files = MemoryFiles(contents, tree.links, frozenset(tree.directories))
    return Host(files, RecordedCommands(tree.answers), is_root=True)


@pytest.mark.parametrize("name", TEXTS)
def test_a_profile_of_odd_words(name: str) -> None:
    text = TEXTS[name].encode("utf-8", "replace").decode()
    line = wanted(why=text, hurts_when=text, sources=[text])
    about = {"w": {"type": "word", "about": text, "default": text, "choices": [text, "x"]}}
    body = document("mine", line, title=text, summary=text, notes=text, parameters=about, sources=[text])
    profile = parse_profile(toml(body), "x")
    for width in (40, 100):
        harmless_page(profile_text(profile, width=width, color=False), profile_text(profile, width=width, color=True))
    harmless(profile_list_text([profile], width=80, color=False))
    harmless(encode_document({"profile": msgspec.to_builtins(profile)}))


@pytest.mark.parametrize("name", TEXTS)
def test_an_error_of_odd_words(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    from advisor.cli.output import print_error, say

    text = TEXTS[name]
    for error in (AdvisorError(text, hint=text), NotRestoredError(text, items=((text, text),))):
        harmless(error_document(error))
        print_error(error, as_json=False)
        say(text)
    said = capfd.readouterr().err
    harmless(said)
    if "\n" in text:
        assert [line[:8] for line in said.split("\n") if line.startswith("advisor:")] == ["advisor:"] * 2


@pytest.mark.parametrize("names", [("colour", "c1", "newline"), ("not-utf-8",)])
def test_a_call_of_odd_words(names: tuple[str, ...], tmp_path: Path) -> None:
    odd = "".join(TEXTS[name] for name in names)
    text = odd.encode("utf-8", "surrogateescape")
    calls = (
        [b"plan", text],
        [b"plan", b"jumbo-frames", b"--set", text + b"=1"],
        [b"plan", b"jumbo-frames", b"--set", b"links=" + text],
        [b"explain", b"x:" + text],
        [b"scan", b"--snapshot", b"x" + text],
        [b"profiles", b"lint", b"x" + text],
        [b"x" + text],
    )
    for call in calls:
        words = [sys.executable.encode(), b"-P", b"-m", b"advisor", *call]
        done = subprocess.run(words, capture_output=True, cwd=tmp_path, check=False, timeout=60)
        assert done.returncode in (0, 2, 3)
        harmless(done.stdout)
        harmless(done.stderr)
        assert b"Traceback" not in done.stderr
        assert b"fault in advisor" not in done.stderr
