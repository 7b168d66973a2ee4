"""What `advisor`, TuneD, Ansible and Lynis do with the same twelve sysctls on the same host: the README's table.

    python -m benchmarks.rivals [--socket SOCKET] [PART…]   measures on the lab host, all or the named programs; some 30
                                                            minutes; writes rivals.json and the README's table
    python -m benchmarks.rivals --table                     writes the table alone

TuneD and ansible-core are in the image of the lab host (tests/lab/build.sh); Lynis and the collection ansible.posix are
fetched by `apt-get download` on the machine that runs this and put into the guest, which is thrown away: nothing is
installed or started on the machine itself. saptune is not in Debian's archive, so nothing is claimed about it.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.lab.guest import Guest, Machine, Result
from tests.lab.hardware import STORAGE_HOST
from tests.lab.serve import ServedGuest

RECORD: Final = Path(__file__).with_suffix(".json")
README: Final = Path(__file__).parents[1] / "README.md"
MARKS: Final = ("<!-- rivals: written by benchmarks/rivals.py -->", "<!-- end of rivals -->")
MEASUREMENTS: Final = ("gain", "seconds")
ROUNDS: Final = 3
ALONE_SECONDS: Final = 30  # what restores by itself has this long for it
COMMAND_SECONDS: Final = 900  # Lynis starts thousands of processes, which emulation makes slow

# None is a default of Linux 6.1, and none is a value that this guest's kernel refuses.
WANTED: Final = {
    "vm.dirty_ratio": "35",
    "vm.dirty_background_ratio": "7",
    "vm.dirty_expire_centisecs": "2500",
    "vm.dirty_writeback_centisecs": "400",
    "vm.vfs_cache_pressure": "80",
    "vm.swappiness": "15",
    "net.core.somaxconn": "8192",
    "net.core.netdev_max_backlog": "5000",
    "net.core.rmem_max": "8388608",
    "net.core.wmem_max": "8388608",
    "net.ipv4.tcp_max_syn_backlog": "4096",
    "net.ipv4.tcp_keepalive_time": "600",
}
DRIFTED, DRIFT = "vm.swappiness", "77"
REFUSED: Final = {**WANTED, "vm.swappiness": "999"}  # the kernel takes 0 to 200
FAR: Final = "sh /src/tests/lab/guest/far-storage"
PROVE: Final = (
    *("advisor", "prove", "jumbo-frames", "--set", "links=near0", "--target", "/srv/far", "--allow-link-flap"),
    *("--workload", "iometer.maxtp-r100", "--reconnect", f"{FAR} reconnect", "--quick", "--json"),
)
# Starts a command, and kills the control group of what changes the values (the command's own, or a daemon's) as soon as
# a value in the middle has changed; prints how many had.
KILLER: Final = """
import json, os, subprocess, sys, time
asked = json.loads(sys.argv[1])
group, own = "/sys/fs/cgroup/" + asked["cgroup"], asked["own"]
if own:
    os.makedirs(group, exist_ok=True)
def enter():
    if own:
        open(group + "/cgroup.procs", "w").write("0")
def changed(path):
    return " ".join(open(path).read().split()) != asked["values"][path]
done = subprocess.Popen(asked["command"], preexec_fn=enter, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
end = time.monotonic() + 600
while not changed(asked["middle"]):
    if time.monotonic() > end or own and done.poll() is not None:
        sys.exit("ended before the middle value was changed")
open(group + "/cgroup.kill", "w").write("1")
print(sum(map(changed, asked["values"])))
done.kill()
done.wait()
"""


class Rival(NamedTuple):
    """How one program is asked for the same thing; empty where it has no such command."""

    name: str
    version: str
    package: str = ""
    apply: str = ""
    refused: str = ""
    dry_run: str = ""
    check: str = ""
    undo: str = ""
    script: str = ""
    """What undoes without the program."""
    daemon: str = ""


RIVALS: Final = (
    Rival(
        "advisor",
        "advisor --version | cut -d' ' -f2",
        apply="advisor apply --yes " + " ".join(f"sysctl:{key}={value}" for key, value in WANTED.items()),
        refused="advisor apply --yes " + " ".join(f"sysctl:{key}={value}" for key, value in REFUSED.items()),
        dry_run="advisor plan " + " ".join(f"sysctl:{key}={value}" for key, value in WANTED.items()),
        check="advisor verify",
        undo="advisor rollback",
        script="sh /var/lib/advisor/transactions/0001/rollback.sh",
    ),
    Rival(
        "TuneD",
        "dpkg-query -Wf '${Version}' tuned",
        "tuned",
        apply="tuned-adm profile rival",
        refused="tuned-adm profile refused",
        check="tuned-adm verify; rc=$?; cat /var/log/tuned/tuned.log; : >/var/log/tuned/tuned.log; exit $rc",
        undo="tuned-adm off",
        daemon="tuned",
    ),
    Rival(
        "Ansible",
        "dpkg-query -Wf '${Version}' ansible-core",
        "ansible-core",
        apply="ansible-playbook -i localhost, /root/rival.yml",
        refused="ansible-playbook -i localhost, /root/refused.yml",
        dry_run="ansible-playbook -i localhost, --check --diff /root/rival.yml",
        check="ansible-playbook -i localhost, --check --diff /root/rival.yml",
    ),
    Rival(
        "Lynis",
        "dpkg-query -Wf '${Version}' lynis",
        "lynis",
        check="cd / && lynis audit system --quick --no-colors --no-log --tests-from-group kernel_hardening; rc=$?; "
        "grep sysctl /var/log/lynis-report.dat; exit $rc",
    ),
)


def main() -> int:
    """Measures and writes record and table, or writes the table of the record that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = (*(one.name for one in RIVALS), *MEASUREMENTS)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts)}; default: all")
    parser.add_argument("--socket", type=Path, help="of a guest that is kept up (tests/lab/README.md)")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(parts):
        parser.error(f"{', '.join(sorted(unknown))}: expected is one of {', '.join(parts)}")
    if not asked.table:
        with _start_host(asked.socket) as guest:
            contest = Contest(guest)
            if asked.parts != ["gain"]:
                contest.install()
            for part in asked.parts or parts:
                found = contest.measure(part)
                record = json.loads(RECORD.read_text()) if RECORD.exists() else {"rivals": {}}
                (record if part in MEASUREMENTS else record["rivals"])[part] = found
                RECORD.write_text(json.dumps(contest.describe() | record, indent=1, ensure_ascii=False) + "\n")
    record = json.loads(RECORD.read_text())
    if missing := set(parts) - set(record) - set(record["rivals"]):
        parser.error(f"not measured yet: {', '.join(sorted(missing))}")
    README.write_text(insert_table(README.read_text(), record))
    return 0


@contextmanager
def _start_host(socket: Path | None) -> Iterator[Machine]:
    if socket is not None:
        yield ServedGuest(socket)
        return
    with Guest(STORAGE_HOST) as guest:
        yield guest


class Contest:
    """The same tasks for each program, on one guest; after each, the host has its own values again."""

    def __init__(self, guest: Machine) -> None:
        self.guest = guest
        self.original = self.read_values()
        if same := [key for key, value in WANTED.items() if self.original[key] == value]:
            raise SystemExit(f"these values are the host's already: {', '.join(same)}")

    def describe(self) -> dict[str, Any]:
        """What was measured on."""
        return {
            "system": self.run(". /etc/os-release; echo $PRETTY_NAME").stdout.strip(),
            "kernel": self.run("uname -r").stdout.strip(),
            "sysctls": len(WANTED),
            "not_run": {"saptune": "not in Debian's archive"},
        }

    def measure(self, part: str) -> dict[str, Any]:
        """What one part of the record shows."""
        if part == "gain":
            return {"advisor": self._take_gain()}
        if part == "seconds":
            return self._take_seconds()
        (rival,) = (one for one in RIVALS if one.name == part)
        return self._try_tasks(rival)

    def _try_tasks(self, rival: Rival) -> dict[str, Any]:
        """What each task showed for one program; None where it has no command for the task."""
        found: dict[str, Any] = {
            "date": time.strftime("%Y-%m-%d"),
            "version": self.run(rival.version).check().stdout.strip(),
        }
        self._start_daemon(rival)
        try:
            for title, task, has_command in (
                ("dry_run", self._try_dry_run, rival.dry_run),
                ("drift", self._try_drift, rival.check),
                ("refused", self._try_refused, rival.refused),
                ("undo", self._try_undo, rival.undo),
                ("killed", self._try_kill, rival.apply),
                ("removed", self._try_removal, rival.undo),
            ):
                start = time.monotonic()
                found[title] = task(rival) if has_command else None
                print(f"{rival.name} {title} {time.monotonic() - start:.0f} s: {found[title]}", file=sys.stderr)
                self._reset()
        finally:
            self._stop_daemon(rival)
        return found

    def _take_seconds(self) -> dict[str, Any]:
        """One call each, one after another: the emulated clock, and whatever else this computer does, allow no more."""
        seconds: dict[str, dict[str, float]] = {}
        for rival in RIVALS:
            steps = (("apply", rival.apply), ("check", rival.check), ("undo", rival.undo))
            if rival.apply:
                self._start_daemon(rival)
                taken = {step: self.run(command).check().seconds for step, command in steps if command}
                print(f"{rival.name} seconds: {taken}", file=sys.stderr)
                seconds[rival.name] = {step: round(value, 1) for step, value in taken.items()}
                self._reset()
                self._stop_daemon(rival)
        return seconds

    def _try_dry_run(self, rival: Rival) -> dict[str, Any]:
        done = self.run(rival.dry_run)
        text = done.stdout + done.stderr
        return {
            "exit_code": done.rc,
            "named": sum(key in text for key in WANTED),
            "with_old_and_new_value": sum(_shows(text, key, self.original[key], WANTED[key]) for key in WANTED),
            "changed": self.count_changed(),
        }

    def _try_drift(self, rival: Rival) -> dict[str, Any]:
        """One value is changed by somebody else: what the check says then and did not say before."""
        self.run(rival.apply or f"sysctl -qw {_words(WANTED)}").check()
        clean = self.run(rival.check)
        self.run(f"sysctl -qw {DRIFTED}={DRIFT}").check()
        drifted = self.run(rival.check)
        before = set(clean.stdout.splitlines())
        new = "\n".join(line for line in drifted.stdout.splitlines() if line not in before)
        return {
            "exit_code_before": clean.rc,
            "exit_code": drifted.rc,
            "named": DRIFTED in new,
            "with_expected_and_found_value": _shows(new, DRIFTED, DRIFT, WANTED[DRIFTED]),
        }

    def _try_refused(self, rival: Rival) -> dict[str, Any]:
        """One of the values is none that the kernel takes."""
        done = self.run(rival.refused)
        return {"exit_code": done.rc, "left": self.count_changed()}

    def _try_undo(self, rival: Rival) -> dict[str, Any]:
        self.run(rival.apply).check()
        changed = self.count_changed()
        done = self.run(rival.undo)
        return {"changed": changed, "exit_code": done.rc, "left": self.count_changed()}

    def _try_kill(self, rival: Rival) -> list[dict[str, Any]]:
        """SIGKILL for all processes of what changes the values, as soon as the middle one is changed."""
        paths = {f"/proc/sys/{key.replace('.', '/')}": value for key, value in self.original.items()}
        asked = {
            "cgroup": f"system.slice/{rival.daemon}.service" if rival.daemon else "rival",
            "own": not rival.daemon,
            "command": shlex.split(rival.apply),
            "values": paths,
            "middle": list(paths)[len(paths) // 2],
        }
        rounds = []
        for _ in range(ROUNDS):
            changed = int(self.run(shlex.join(["python3", "-c", KILLER, json.dumps(asked)])).check().stdout)
            end = time.monotonic() + ALONE_SECONDS
            while (left := self.count_changed()) and time.monotonic() < end:
                time.sleep(1)
            self._start_daemon(rival)
            if rival.undo and left:
                self.run(rival.undo)
            after = self.count_changed() if rival.undo else None
            rounds.append({"changed": changed, "left_alone": left, "left_after_undo": after})
            self._reset()
        return rounds

    def _try_removal(self, rival: Rival) -> dict[str, Any]:
        """The program goes; for advisor, which needs Python, nothing in Python can start any more."""
        self.run(rival.apply).check()
        if rival.script:
            hide, show = (f"{word} $(readlink -f /usr/bin/python3)" for word in ("mount --bind /bin/false", "umount"))
            done = self.run(f"{hide} && ! advisor --version && {rival.script}; rc=$?; {show}; exit $rc")
        else:
            done = self.run(f"dpkg --force-depends --remove {rival.package}")
        left = self.count_changed()
        if not rival.script:
            self.run(f"dpkg --install /root/{rival.package}.deb").check()
            self._start_daemon(rival)
        return {"exit_code": done.rc, "by": rival.script and "a shell script", "left": left}

    def _take_gain(self) -> dict[str, Any]:
        """A measurement of its own: sysctls do not change what the emulated wire carries, its MTU does."""
        self.run(f"{FAR} up memory && {FAR} delay 0 && sync && sleep 20").check()
        try:
            done = self.run(shlex.join(PROVE), timeout=3600)
        finally:
            self.run(f"{FAR} down")
        proof = json.loads(done.stdout or "{}")
        if "workloads" not in proof:
            raise SystemExit(f"advisor prove: {done.stdout}{done.stderr}")
        (claim,) = proof["workloads"]
        return {"verdict": proof["verdict"], **{name: claim[name] for name in ("pairs", "ratio", "ci95")}}

    def run(self, command: str, timeout: float = COMMAND_SECONDS) -> Result:
        """A shell line in the guest."""
        return self.guest.run(command, timeout=timeout)

    def read_values(self) -> dict[str, str]:
        """The live values of the twelve."""
        lines = self.run("sysctl " + " ".join(WANTED)).check().stdout.splitlines()
        return {key.strip(): " ".join(value.split()) for key, _, value in (line.partition("=") for line in lines)}

    def count_changed(self) -> int:
        """How many of the twelve do not have the value that the host had at first."""
        live = self.read_values()
        return sum(live[key] != value for key, value in self.original.items())

    def _reset(self) -> None:
        self.run(
            "systemctl -q is-active tuned && tuned-adm off; "
            "rm -rf /var/lib/advisor /etc/sysctl.d/*rival*.conf /etc/sysctl.d/*advisor*.conf"
        )
        self.run(f"sysctl -qw {_words(self.original)}").check()
        if self.count_changed():
            raise SystemExit("the host's own values cannot be restored")

    def _start_daemon(self, rival: Rival) -> None:
        if rival.daemon:
            self.run(f"systemctl reset-failed {rival.daemon}; systemctl start {rival.daemon}").check()

    def _stop_daemon(self, rival: Rival) -> None:
        if rival.daemon:
            self.run(f"systemctl stop {rival.daemon}").check()

    def install(self) -> None:
        """Their packages, and the twelve values in the form that each program takes."""
        for name, values in (("rival", WANTED), ("refused", REFUSED)):
            self.run(f"mkdir -p /etc/tuned/{name}").check()
            settings = "\n".join(f"{key} = {value}" for key, value in values.items())
            self.guest.put(f"/etc/tuned/{name}/tuned.conf", f"[main]\nsummary = {name}\n\n[sysctl]\n{settings}\n")
            self.guest.put(f"/root/{name}.yml", _write_playbook(values))
        self.run("echo manual >/etc/tuned/profile_mode; : >/etc/tuned/active_profile").check()
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            packages = ("ansible", *(one.package for one in RIVALS if one.package))
            subprocess.run(["apt-get", "-q", "download", *packages], cwd=directory, check=True, capture_output=True)
            (ansible,) = directory.glob("ansible_*.deb")
            self.guest.put("/root/posix.tar", _pack_collection(ansible, directory))
            for package in packages[1:]:
                (file,) = directory.glob(f"{package}_*.deb")
                self.guest.put(f"/root/{package}.deb", file.read_bytes())
                self.run(f"dpkg-query -W {package} || dpkg --force-depends --install /root/{package}.deb").check()
        self.run("systemctl stop tuned lynis.timer").check()
        place = "/usr/share/ansible/collections/ansible_collections/ansible"
        self.run(f"mkdir -p {place} && tar -xf /root/posix.tar -C {place}").check()
        # Its own list is of some fifty other sysctls: with the twelve alone it has the same work as the others.
        expected = "".join(
            f"config-data=sysctl;{key};{value};1;rival;sysctl -a;-;category:x;\n" for key, value in WANTED.items()
        )
        self.guest.put("/etc/lynis/default.prf", expected)


def insert_table(page: str, record: Mapping[str, Any]) -> str:
    """The page with the record's table between the marks; raises ValueError where it has none."""
    start, end = page.index(MARKS[0]) + len(MARKS[0]), page.index(MARKS[1])
    return f"{page[:start]}\n\n{write_table(record)}\n\n{page[end:]}"


def write_table(record: Mapping[str, Any]) -> str:
    """The record as a table in Markdown; a dash where a program has no command for the task."""
    all_of, names = record["sysctls"], list(record["rivals"])
    found: list[Mapping[str, Any]] = [record["rivals"][name] for name in names]
    heads = (f"{name} {re.split(r'[+~-]', one['version'])[0]}" for name, one in zip(names, found, strict=True))
    rows = [
        (f"{all_of} sysctls", *heads),
        ("---",) * (len(names) + 1),
        ("dry run: names, values", *(_tell_dry_run(one["dry_run"]) for one in found)),
        ("killed while applying: still changed", *(_tell_range(one["killed"], "left_alone") for one in found)),
        ("… after its undo", *(_tell_range(one["killed"], "left_after_undo") for one in found)),
        ("one value refused: others changed", *(_tell(one["refused"], "left") for one in found)),
        ("drift: exit code, shows", *(_tell_drift(one["drift"]) for one in found)),
        ("undo leaves changed", *(_tell(one["undo"], "left") for one in found)),
        ("… with the program gone", *(_tell(one["removed"], "left") for one in found)),
        ("gain shown", *(_tell_gain(record["gain"].get(name)) for name in names)),
        ("seconds: apply, check, undo", *(_tell_seconds(record["seconds"].get(name)) for name in names)),
    ]
    return "\n".join(f"|{'|'.join(row)}|" for row in rows)


def _tell(task: Mapping[str, Any] | None, name: str) -> str:
    return "–" if task is None or task[name] is None else str(task[name])


def _tell_dry_run(task: Mapping[str, Any] | None) -> str:
    return "–" if task is None else f"{task['named']}, {task['with_old_and_new_value']}"


def _tell_range(rounds: list[Mapping[str, Any]] | None, name: str) -> str:
    left = sorted({one[name] for one in rounds or () if one[name] is not None})
    return "–".join(map(str, dict.fromkeys((left[0], left[-1])))) if left else "–"


def _tell_drift(task: Mapping[str, Any]) -> str:
    shown = "both values" if task["with_expected_and_found_value"] else "the name" if task["named"] else "nothing"
    return f"{task['exit_code']}, {shown}"


def _tell_gain(proof: Mapping[str, Any] | None) -> str:
    if proof is None:
        return "–"
    ratio, low, high = (f"{(value - 1) * 100:+.0f} %" for value in (proof["ratio"], *proof["ci95"]))
    return f"{proof['verdict']}: {ratio} ({low} to {high})"


def _tell_seconds(steps: Mapping[str, float] | None) -> str:
    return ", ".join(f"{taken:.0f}" for taken in (steps or {}).values()) or "–"


def _pack_collection(package: Path, directory: Path) -> bytes:
    """ansible.posix out of Debian's package of all collections, as a tar file."""
    subprocess.run(["dpkg-deb", "--extract", package, directory / "all"], check=True)
    (found,) = (directory / "all").glob("usr/lib/python3/dist-packages/ansible_collections/ansible/posix")
    file = directory / "posix.tar"
    with tarfile.open(file, "w") as archive:
        archive.add(found, "posix")
    return file.read_bytes()


def _write_playbook(values: Mapping[str, str]) -> str:
    """What a role for sysctls does, with the module that Ansible documents for it. JSON is YAML."""
    task = {
        "ansible.posix.sysctl": {
            **{"name": "{{ item.key }}", "value": "{{ item.value }}", "sysctl_set": True, "reload": False},
            "sysctl_file": "/etc/sysctl.d/90-rival.conf",
        },
        "loop": [{"key": key, "value": value} for key, value in values.items()],
        "loop_control": {"label": "{{ item.key }}"},
    }
    return json.dumps([{"hosts": "all", "connection": "local", "gather_facts": False, "tasks": [task]}])


def _words(values: Mapping[str, str]) -> str:
    return " ".join(shlex.quote(f"{key}={value}") for key, value in values.items())


def _shows(text: str, key: str, *values: str) -> bool:
    """Whether the key stands in the text with the values on the same line or the two below it."""
    lines = text.splitlines()
    near = ["\n".join(lines[number : number + 3]) for number, line in enumerate(lines) if key in line]
    return any(all(re.search(rf"(?<!\d){re.escape(value)}(?!\d)", part) for value in values) for part in near)


if __name__ == "__main__":
    raise SystemExit(main())
