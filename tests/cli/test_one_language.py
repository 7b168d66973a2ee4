"""Every command, called rightly and wrongly: what it prints in another language is in that language, or all English.

The catalogue puts brackets around each text (`tests/bracketed.py`), so a word outside of them is one that no catalogue
has seen, in any language.
"""

from __future__ import annotations

import io
import shlex
import sys
import tarfile
from pathlib import Path

import pytest

from advisor import i18n
from advisor.cli import main
from advisor.cli.tables.pages import PAGES
from tests.bracketed import foreign_phrases, install_bracketed

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "storage-host-root.tar.gz"

CALLS = """
scan HOST
scan HOST --all
scan HOST --brief
scan HOST --muted
scan HOST --picture
scan HOST --since ARCHIVE
scan HOST --svg TMP/host.svg
scan HOST --html TMP/host.html
scan HOST --svg TMP/missing/host.svg
scan HOST --interval 1
scan HOST --interval x
scan HOST --interval ''
scan HOST --interval 0
scan --interval nan
scan HOST --fail-on loud
scan HOST --fail-on info
scan HOST --workload bogus
scan HOST --workload read=70%,write=70%
scan HOST --workload oltp,block=x
scan HOST --volumes TMP/text.txt
scan HOST --volumes TMP/missing
scan HOST --snapshot ARCHIVE
scan HOST --since yesterday
scan HOST --since TMP/text.txt
scan --snapshot TMP/text.txt
scan --snapshot TMP/missing
scan --snapshot TMP/directory
scan --root TMP/missing
scan --root TMP/directory
scan --bogus
scan extra
scan --root
explain HOST 1
explain HOST 99
explain HOST vm-swappiness
explain HOST jumbo-frames
explain HOST sysctl:vm.swappiness
explain HOST sysctl:
explain HOST bogus
recommend HOST
recommend HOST --workload oltp
recommend HOST --workload bogus
recommend HOST --workload TMP/untitled.toml
recommend HOST --workload TMP/list.json
mute bogus --reason known
mute 99 --reason known
mute 1
mute 1 --reason known --root TMP/host/root
mute vm-swappiness --reason ''
mute vm-swappiness --reason known --until 2001-01-01
mute vm-swappiness --reason known --until soon
mute vm-swappiness --reason known --host other
unmute vm-swappiness --host other
unmute bogus
limits HOST
limits HOST --what-if raid=raid10
limits HOST --what-if raid=x
limits HOST --what-if x
limits HOST --what-if links=0
limits HOST --measured 1GB/s
limits HOST --measured fast
limits HOST --bench TMP/text.txt
limits HOST --bench TMP/missing
limits HOST --volumes TMP/broken.toml
limits HOST --instance-types TMP/text.txt
why --snapshot ARCHIVE
why --snapshot TMP/text.txt
why --seconds x
why --watch --json
why --seconds 0
observe --check TMP/text.txt --target TMP/directory
observe --check TMP/missing --target TMP/directory
observe --seconds x -o TMP/made.json
observe --seconds 0 -o TMP/made.json
observe --device none9 -o TMP/made.json
size
size --read 8GB/s --write 3GB/s --iops 200k
size --read fast
size --read 8GB/s --cloud mars
size --read 8GB/s --layout flat
size --read 8GB/s --limit x
size --from TMP/text.txt
size --from TMP/missing
snapshot HOST -o TMP/made.tar.gz
snapshot HOST -o TMP/missing/made.tar.gz
snapshot HOST -o TMP/directory
snapshot -o TMP/made2.tar.gz --script
plan HOST jumbo-frames
plan HOST socket-buffers-8m
plan HOST sysctl:vm.swappiness=10
plan HOST sysctl:vm.swappiness=
plan HOST sysctl:vm.swappiness=ten
plan HOST sysctl:vm.swappiness>=x
plan HOST sysctl:vm.bogus=1
plan HOST sysctl:vm.swappiness=10 sysctl:vm.swappiness=20
plan HOST sysctl:vm.swappiness=10 --set a=b
plan HOST block:sda:scheduler=none
plan HOST block:none9:scheduler=none
plan HOST block:sda:bogus=none
plan HOST link:none9:mtu=9000
plan HOST link:eth0:mtu=x
plan HOST link:eth0:ring-rx=x
plan HOST thp:enabled=x
plan HOST unit:none9.service:x=1
plan HOST module:none9:x=1
plan HOST module:cpuidle-haltpoll:x=1
plan HOST cmdline:x
plan HOST file:relative=x
plan HOST cpufreq:x=1
plan HOST md:md0:x=1
plan HOST llt:link:x=1
plan HOST irq:1:x=1
plan HOST bogus:x=1
plan HOST =0
plan HOST bogus
plan HOST jumbo-frames --set mtu=70000
plan HOST jumbo-frames --set mtu=x
plan HOST jumbo-frames --set mtu
plan HOST jumbo-frames --set mtu=9000 --set mtu=8000
plan HOST jumbo-frames --set speed=1
plan HOST jumbo-frames --set links=none8
plan HOST TMP/missing.toml
plan HOST TMP/broken.toml
plan HOST TMP/empty.toml
plan HOST TMP/text.txt
plan HOST TMP/directory
plan HOST jumbo-frames --instead-of 0009
plan
plan --snapshot TMP/text.txt jumbo-frames
plan HOST numa-pinning bogus
apply =0
apply
apply bogus
apply jumbo-frames --confirm-within x
apply jumbo-frames --confirm-within -1
apply jumbo-frames --peer x --yes
apply sysctl:vm.swappiness=
apply sysctl:vm.swappiness=10
apply sysctl:vm.swappiness=10 --dry-run
fix HOST
fix HOST 99
fix HOST 1
fix HOST bogus
fix HOST --all-safe
fix HOST --all-safe 1
fix HOST 1 --dry-run
confirm
confirm 0009
confirm x y
status
status --all
status x
verify
verify --nagios x
verify 0009
rollback
rollback 0009
rollback --all 0009
rollback --all
rollback-script
rollback-script bogus
rollback-script numa-pinning -o TMP/missing/x
rollback-script jumbo-frames --set mtu=x
apply-script HOST socket-buffers-8m -o TMP/apply.sh
apply-script HOST socket-buffers-8m -o TMP/missing/apply.sh
apply-script HOST bogus
apply-script
profiles
profiles list
profiles show jumbo-frames
profiles show bogus
profiles show
profiles lint TMP/broken.toml
profiles lint TMP/text.txt
profiles lint TMP/missing.toml
profiles lint TMP/empty.toml
profiles export HOST jumbo-frames --format sysctl
profiles export HOST jumbo-frames --format ansible -o TMP/exported
profiles export HOST jumbo-frames --format ansible -o TMP/text.txt
profiles export HOST socket-buffers-8m --format bogus
profiles export HOST socket-buffers-8m
profiles export HOST bogus --format sysctl
profiles import --list HOST
profiles import
profiles import TMP/missing
profiles import TMP/text.txt
profiles import tuned:bogus
profiles import tuned:TMP/tuned.conf
profiles import tuned:TMP/tuned.conf -o TMP/tuned.toml
profiles import tuned:TMP/tuned.conf -o TMP/missing/tuned.toml
profiles import tuned:TMP/tuned.conf --mode x
profiles import saptune:1
profiles import sysctl:TMP/missing
profiles import sysctl:TMP/text.txt
profiles import --from-host TMP/text.txt
profiles import --from-host ARCHIVE HOST
profiles import --from-host ARCHIVE -o TMP/same.toml HOST
profiles bogus
tune
tune --resume x
tune --resume 20250131-142500
tune --resume 20250131-142500 --seed 1
tune --command true
tune --command true --metric time --budget 30m
tune --command true --metric time --budget x --candidates iscsi
tune --command true --metric time --budget 30m --candidates bogus
tune --command true --metric time --budget 30m --candidates iscsi,iscsi
tune --command true --metric time --budget 30m --candidates sysctl:vm.swappiness
prove
prove bogus --target TMP
prove numa-pinning
prove numa-pinning --target TMP/missing
prove numa-pinning --target TMP --workload bogus
prove numa-pinning --target TMP --budget x
prove numa-pinning --target TMP --quick --deep
prove numa-pinning --target TMP --file-size x
prove numa-pinning --target TMP --volume x
prove numa-pinning --target TMP --place x
prove --arms none
prove --arms none,bogus --target TMP
prove --self-test --force --command false --metric time
prove --self-test --force --command 'echo z' --metric 'regex:(q+)'
prove --self-test --force --command 'echo 0' --metric 'regex:(0)'
prove --self-test --force --command 'echo h' --metric 'regex:(h)'
prove --self-test --force --command true --metric 'regex:(h)'
prove --self-test --force --command 'echo h' --metric 'regex:h|(q)'
prove --self-test --force --command 'echo h' --metric 'json:.a.b'
prove --self-test --force --command 'echo {' --metric 'json:.a'
prove --self-test --force --command 'cat TMP/figures.json' --metric 'json:.a.b'
prove --self-test --force --command 'cat TMP/figures.json' --metric 'json:.b'
prove --self-test --force --command 'cat TMP/figures.json' --metric 'json:.c'
prove --self-test --force --command 'cat TMP/figures.json' --metric 'command:true'
prove --self-test --force --command true --metric 'regex:('
prove --self-test --force --command true --metric 'json:a b'
prove --self-test --force --command true --metric 'command: '
prove --self-test --force --command nosuch9
prove --live
prove numa-pinning --live --target TMP
prove numa-pinning --live --metric regex:x
prove numa-pinning --live --metric host:x
prove numa-pinning --live --metric x
prove numa-pinning --live --command-timeout 100
prove numa-pinning --tau 3
prove numa-pinning --replay TMP/text.txt
prove --replay TMP/text.txt
prove --self-test --force --command true --command-timeout x
prove numa-pinning --target TMP --seconds x
prove numa-pinning --target TMP --workload TMP/untitled.toml
prove numa-pinning --target TMP --workload TMP/range.toml
prove --self-test numa-pinning --target TMP
prove --self-test --raw-device TMP/text.txt
prove --self-test --raw-device /dev/null
prove jumbo-frames --peer-ssh 'a b' --workload net.one-flow
bench
bench --target TMP/missing
bench --target TMP --workload bogus
bench --target TMP --threads 0
bench --target TMP --seconds x
bench --target TMP --seconds ''
bench --target TMP --save TMP/missing/x.json
bench --raw-device TMP/missing
compare
compare TMP/text.txt
compare TMP/text.txt TMP/text.txt
compare TMP/missing
compare TMP/directory
compare ARCHIVE
compare TMP/empty.toml
probe --mtu x
probe --mtu 1
probe --count 0
probe host.invalid.
fleet scan
fleet scan -i TMP/missing
fleet scan -i TMP/hosts.ini
fleet scan -i TMP/text.txt
fleet scan -i TMP/hosts.ini --fail-on x
fleet compare TMP/missing
fleet compare TMP/text.txt
fleet compare ARCHIVE ARCHIVE
fleet compare TMP/directory
fleet limits TMP/missing
fleet limits ARCHIVE
fleet limits TMP/directory
fleet why
fleet why TMP/missing
why --snapshot ARCHIVE --html TMP/missing/x.html
fleet why ARCHIVE
fleet why TMP/directory
fleet why ARCHIVE --seconds 5
fleet plan
fleet plan bogus -i TMP/hosts.ini
fleet plan jumbo-frames
fleet apply jumbo-frames -i TMP/missing
fleet apply
fleet prove
fleet prove --resume last
fleet prove --resume 9 --metric command:true
fleet prove jumbo-frames -i TMP/hosts.ini
fleet prove jumbo-frames -i TMP/hosts.ini --metric x
fleet prove jumbo-frames -i TMP/hosts.ini --metric regex:x
fleet prove jumbo-frames -i TMP/hosts.ini --metric command:true --block x
fleet prove jumbo-frames -i TMP/hosts.ini --metric command:true
fleet verify
fleet verify 9
fleet rollback
fleet rollback 9
fleet status
fleet status 9
fleet receive
fleet receive x
fleet receive h1 -o TMP/captures
fleet bogus
fleet capture-script
mcp extra
mcp HOST extra
approve
approve 0123456789ab
approve 0123456789ab --for tomorrow
bogus
--bogus scan
--lang
"""
# The report of what was imported is a page; where the profile is printed, it goes to standard error.
ENGLISH_REPORTS = ("profiles import tuned:TMP/tuned.conf", "profiles import --from-host ARCHIVE HOST")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A captured host, and files that are wrong in their own ways."""
    path = tmp_path_factory.mktemp("calls")
    with tarfile.open(ARCHIVE) as members:
        members.extractall(path / "host", filter="tar")
    (path / "text.txt").write_text("this is no archive\n")
    (path / "empty.toml").touch()
    (path / "broken.toml").write_text('name = "broken"\ntitle = \n')
    (path / "tuned.conf").write_text("[main]\nsummary=A test\n[sysctl]\nvm.swappiness=10\n")
    (path / "figures.json").write_text('{"a": {"x": 1}, "b": true, "c": 0}')
    (path / "list.json").write_text("[1, 2]")
    (path / "untitled.toml").write_text('name = "untitled"\n')
    (path / "range.toml").write_text(
        'title = "Range"\n[[sections]]\nname = "a"\npattern = "read"\nblock_bytes = 4096\ndepth = 0\n'
    )
    (path / "directory").mkdir()
    (path / "hosts.ini").write_text("[all]\n")
    install_bracketed(path / "locale")
    return path


@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_each_stream_is_in_one_language(
    call: str, place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(i18n, "LOCALES", place / "locale")
    for name in ("LC_ALL", "LC_MESSAGES", "LANG", "ADVISOR_LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ADVISOR_STATE_DIR", str(place / "state"))
    monkeypatch.setenv("ADVISOR_IGNORE_FILE", str(place / "ignore.toml"))
    monkeypatch.setenv("COLUMNS", "4000")
    filled = (
        call.replace("HOST", f"--root {place}/host/root").replace("ARCHIVE", str(ARCHIVE)).replace("TMP", str(place))
    )
    words = shlex.split(filled)
    monkeypatch.setattr(sys, "argv", ["advisor", "--lang", "de", *words])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit):
        main()
    i18n.choose("en")
    out, err = capfd.readouterr()
    if call not in ENGLISH_REPORTS:
        assert not foreign_phrases(err)
    assert "⟦" not in out or not foreign_phrases(out)


@pytest.mark.parametrize("command", [name for name in PAGES if name])
def test_each_command_is_called(command: str) -> None:
    calls = CALLS.splitlines()
    assert any(call.split()[: len(command.split())] == command.split() for call in calls)
