"""What the values of a block device have in common: files of one directory below /sys/block/DEV, and a udev rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from advisor.host import Host, Missing
from advisor.tunables.block_identity import device_rule, is_device_name
from advisor.tunables.edits import FileEdit
from advisor.tunables.kernel_file import KernelFile
from advisor.tunables.tunable import Tunable, UnknownIdError


class BlockValue(KernelFile, frozen=True):
    """One attribute of a device; a kind gives its word in ids, an example of a device, its directory and its names."""

    device: str
    attribute: str

    kind: ClassVar[str]
    example: ClassVar[str]
    directory: ClassVar[str]
    attributes: ClassVar[tuple[str, ...]]
    holds_count = True
    id_form = "{self.kind}:{self.device}:{self.attribute}"

    @classmethod
    def parse(cls, rest: str) -> Self:
        device, _, attribute = rest.rpartition(":")
        if attribute not in cls.attributes or not is_device_name(device):
            example, names = f"{cls.kind}:{cls.example}:ATTRIBUTE", ", ".join(cls.attributes)
            hint = f"write {example}, one of {names}"
            raise UnknownIdError(rest, kind=cls.kind, hint=hint)
        return cls(device, attribute)

    @property
    def path(self) -> str:
        return f"/sys/block/{self.device}/{self.directory}/{self.attribute}"

    def make_edit(self, host: Host, value: str, *, profile: str) -> FileEdit | Missing:
        return device_rule(host, self.device, f"{self.directory}/{self.attribute}", value)


def example_files(one: Tunable) -> Mapping[str, bytes]:
    """Files of a host with a device of the number 8:0 that has the attribute."""
    return {f"/sys/block/{one.device}/dev": b"8:0", one.path: b""} if isinstance(one, BlockValue) else {}
