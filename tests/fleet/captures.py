"""What the tests of the capture share: the script, and runs of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from advisor.errors import AdvisorError
from advisor.facts.host_facts import Facts, scan
from advisor.host import Host, live_host
from advisor.planner import plan_profiles
from advisor.profiles.profile import load, profile_paths
from advisor.snapshot.archive import open_archive
from advisor.snapshot.remote import manifest
from advisor.snapshot.remote.capture import capture_script, decode_capture


@cache
def script() -> str:
    return capture_script()


def run_script(
    shell: Sequence[str] = ("sh",),
    *,
    root: Path | None = None,
    environment: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
    text: str | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """A run of the script, as it comes over a connection: on standard input of a shell."""
    own = {"PATH": os.environ["PATH"], **(environment or {})}
    if root is not None:
        own["ADVISOR_CAPTURE_ROOT"] = str(root)
    return subprocess.run(
        [*prefix, *shell, "-s"],
        input=(text or script()).encode(),
        capture_output=True,
        env=own,
        cwd="/",
        timeout=120,
        check=False,
    )


def captured(shell: Sequence[str] = ("sh",), *, root: Path | None = None) -> bytes:
    """What a run prints that must succeed."""
    done = run_script(shell, root=root)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


# What moves while nobody does anything: counters, free memory, the time; a node's memory where virtio-mem plugs it.
MOVING = frozenset(
    {"counters", "fs.aio-nr", "available_bytes", "free_bytes", "memory_bytes", "sockets", "temperature_celsius"}
)


def lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: lasting(one) for key, one in value.items() if key not in MOVING}
    return [lasting(one) for one in value] if isinstance(value, list) else value


def facts_of(facts: Facts) -> Any:
    return lasting(json.loads(msgspec.json.encode(facts)))


def plans_of(host: Host, facts: Facts) -> dict[str, Any]:
    links = ",".join(link.name for link in facts.links if link.kind != "loopback")
    found: dict[str, Any] = {}
    for name in profile_paths():
        settings = {"links": links} if links and "links" in load(name).parameters else {}
        try:
            plan = plan_profiles(host, [name], settings, facts=facts)
            # The inode of a namespace is known on the machine itself alone.
            found[name] = msgspec.to_builtins(msgspec.structs.replace(plan, namespace=None))
        except AdvisorError as error:
            found[name] = error.message
    return found


def replayed(data: bytes) -> Host:
    return open_archive(decode_capture(data, "here").archive, "here")


def differences(there: Host) -> dict[str, Any]:
    """What the scan and the plans of a capture of this host say else than those of the host itself."""
    facts_here, facts_there = scan(live_host(), with_drives=True), scan(there)
    found: dict[str, Any] = {}
    for name, here in facts_of(facts_here).items():
        if here != (other := facts_of(facts_there)[name]):
            found[name] = [here, other]
    plans = plans_of(there, facts_there)
    for name, plan in plans_of(live_host(), facts_here).items():
        # What this process could not write, as in a namespace, is only known where it runs.
        unwritable = [one for one in plan["skipped"] if "cannot be set: " in one["reason"]] if "skipped" in plan else []
        if plan != plans[name] and not unwritable:
            found[f"plan {name}"] = [plan, plans[name]]
    return found


def main() -> None:
    """Inside a namespace: whether a capture of it is what it is."""
    there = replayed(captured())
    document = {"differences": differences(there), "links": [link.name for link in scan(there).links]}
    sys.stdout.write(json.dumps(document, default=repr))


if __name__ == "__main__":
    main()


def is_captured(path: str) -> bool:
    """Whether the capture takes a file of this path, where there is one."""
    path = re.sub(r"^/sys/devices/pci.*/([0-9a-f]{4}:[0-9a-f]{2}:[^/]+/[^/]+)$", r"/sys/bus/pci/devices/\1", path)
    directory, _, name = path.rpartition("/")
    listed = (*manifest.ATTRIBUTES, *manifest.CONFIGURATION, *manifest.wanted_sysctls())
    names = (one for place, names in listed if fnmatchcase(directory, place) for one in names)
    return any(fnmatchcase(name, part) for one in names for part in one.split("|"))
