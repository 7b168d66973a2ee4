"""pytest-testinfra over the lab's guest: a judgement of the host that shares no code with what is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testinfra.backend.base import BaseBackend, CommandResult
from testinfra.host import Host

if TYPE_CHECKING:
    from .guest import Machine


class LabBackend(BaseBackend):  # type: ignore[misc]  # testinfra's types are not followed
    """Runs testinfra's commands in the guest, as root or as another user."""

    NAME = "lab"

    def __init__(self, machine: Machine, *, user: str = "root", timeout: float = 120) -> None:
        super().__init__("lab")
        self._machine = machine
        self._user = user
        self._timeout = timeout

    def run(self, command: str, *args: str, **kwargs: Any) -> CommandResult:
        """The result of a command; testinfra's keyword arguments concern its own transports. Raises LabError."""
        line = self.get_command(command, *args)
        result = self._machine.run(line, user=self._user, timeout=self._timeout)
        return self.result(result.rc, line.encode(), result.stdout_bytes, result.stderr_bytes)


def lab_host(machine: Machine, *, user: str = "root") -> Host:
    """The guest as a testinfra host: `.file(…)`, `.sysctl(…)`, `.service(…)`, `.run(…)` and the rest."""
    return Host(LabBackend(machine, user=user))
