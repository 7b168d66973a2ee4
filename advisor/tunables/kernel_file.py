"""Values that are one file of the kernel each: read from it, written into it, effective at once."""

from __future__ import annotations

from advisor.host import Host, Missing, ReadFile, Step, WriteFile
from advisor.tunables.tunable import DirectValue


class KernelFile(DirectValue, frozen=True):
    """A kind gives the path, and the form that reduces the file to a value where its words alone do not do."""

    @property
    def path(self) -> str:
        raise NotImplementedError

    @property
    def value_form(self) -> str:
        """As `advisor.host.probes` lists them."""
        return "words"

    @property
    def probe(self) -> ReadFile:
        return ReadFile(self.path, self.value_form)

    def format_value(self, value: str) -> str:
        """What is written into the file for a value."""
        return value

    def make_steps(self, value: str) -> tuple[Step, ...]:
        return (WriteFile(self.path, self.format_value(value)),)

    def explain_unwritable(self, host: Host) -> str | None:
        """Why no value can be written: the file's mode; None where one can be, and where the mode is unknown."""
        real = host.real(self.path)
        owner = host.owner(real) if isinstance(real, str) else real
        return None if isinstance(owner, Missing) or owner[0] & 0o222 else "the kernel lets it be read alone"
