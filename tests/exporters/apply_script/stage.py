"""A fake system, a plan for it as a script, and the script's verbs in a shell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from advisor.exporters.apply_script import transaction_script
from advisor.host import Host
from advisor.planning.records import Plan
from advisor.transaction.journal import Record, Store
from tests.transaction import system
from tests.trees import STANDARD_PATH, listing

SHELLS = [shell for shell in (["dash"], ["busybox", "sh"], ["bash", "--posix"]) if shutil.which(shell[0])]
OPEN = {"pending", "taken", "reverting", "deadline", "limit", "client", "watching", "boot", "outcome"}


class Answer(msgspec.Struct, frozen=True):
    """How a verb ended, and what it said. ``last`` is the JSON object in its last line."""

    code: int
    said: str
    errors: str
    last: dict[str, Any]

    @property
    def state(self) -> str:
        return str(self.last["state"])

    def states(self) -> dict[str, str]:
        return {one["what"]: one["state"] for one in self.last["items"]}


class Stage:
    """The script of a plan, and the tree that it works on."""

    def __init__(self, where: Path, make: Callable[[Path], Host] = system.build, plan: Plan | None = None) -> None:
        self.where = where
        self.host = make(where)
        self.plan = plan or system.plan_of(self.host)
        self.script = where / "apply.sh"
        text = transaction_script(self.plan, machine_id=self.plan.machine_id, hostname="host")
        self.script.write_bytes(text.encode("utf-8", "surrogateescape"))

    @property
    def root(self) -> Path:
        return self.where / "root"

    @property
    def store(self) -> Store:
        return system.store_of(self.where)

    @property
    def transaction(self) -> Path:
        return self.where / "state/transactions/0001"

    def record(self) -> Record:
        return self.store.read_records()[-1]

    def listing(self) -> dict[str, tuple[str, int, bytes]]:
        return listing(self.root)

    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.where / 'bin'}:{STANDARD_PATH}", "ADVISOR_STATE_DIR": str(self.where / "state")}

    def words(self, *verb: str, under: list[str] = SHELLS[0]) -> list[str]:
        return [*under, str(self.script), *verb, "--root", str(self.root), "--reload"]

    def start(self, *verb: str, under: list[str] = SHELLS[0], more: Mapping[str, str] | None = None) -> Any:
        return subprocess.Popen(
            self.words(*verb, under=under),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.environment(), **(more or {})},
            start_new_session=True,
            cwd="/",
        )

    def call(self, *verb: str, under: list[str] = SHELLS[0], more: Mapping[str, str] | None = None) -> Answer:
        """A verb; times out if something that it has left behind holds its output open."""
        process = self.start(*verb, under=under, more=more)
        said, errors = process.communicate(timeout=60)
        return answer_of(process.returncode, said, errors)

    def is_closed(self) -> bool:
        return not OPEN & set(os.listdir(self.transaction))


def answer_of(code: int, said: bytes, errors: bytes) -> Answer:
    lines = said.decode("ascii").splitlines()
    last = json.loads(lines[-1])
    assert (last["schema"], last["code"]) == ("advisor.transaction/1", code), said
    return Answer(code, said.decode(), errors.decode(), last)


def reported(record: Record) -> dict[str, object]:
    """What a record reports, without the moments."""
    moments = {"began", "ended", "confirmed", "id", "seconds_left"}
    return {name: getattr(record, name) for name in record.__struct_fields__ if name not in moments}
