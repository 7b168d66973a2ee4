"""What there is of a kernel module on a host, by /proc/modules and what depmod(8) wrote."""

from __future__ import annotations

import re

from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

BUILT_IN = "is built into this kernel"
"""Why nothing is to be done to load a module."""

NAME = lazy_regex(r"[A-Za-z0-9_]{1,60}", re.ASCII)


def module_name(name: str) -> str:
    """A module's name as /proc/modules has it: its file may be named with hyphens."""
    return name.replace("-", "_")


def is_built_in(host: Host, name: str) -> bool:
    """Whether the kernel itself holds the module, or a part of it that has parameters is called so."""
    if host.is_dir(f"/sys/module/{name}") and (host.exists("/proc/modules") or not loads_modules(host)):
        return name not in read_loaded(host)
    index = host.read(f"{_module_directory(host)}/modules.builtin")
    return not isinstance(index, Missing) and any(_module_of(line) == name for line in index.split("\n"))


def read_dependencies(host: Host, name: str) -> tuple[str, ...] | None:
    """The modules that modprobe loads along with one, in the order in which they can be removed after it; None where
    modules.dep does not list the module, or cannot be read."""
    index = host.read(f"{_module_directory(host)}/modules.dep")
    for line in [] if isinstance(index, Missing) else index.split("\n"):
        own, colon, others = line.partition(":")
        if colon and _module_of(own) == name:
            return tuple(_module_of(one) for one in others.split())
    return None


def read_loaded(host: Host) -> frozenset[str]:
    """Names of the modules that are loaded."""
    text = host.read("/proc/modules")
    return frozenset(
        line.split()[0] for line in ("" if isinstance(text, Missing) else text).split("\n") if line.strip()
    )


def loads_modules(host: Host) -> bool:
    """Whether this kernel can load modules: one without CONFIG_MODULES has no /proc/modules, and depmod(8) has nothing
    to list for it. A capture that lacks the file does not say so."""
    if not host.is_live:
        return True
    modules = host.read("/proc/modules")
    return not isinstance(modules, Missing) or not modules.is_absent or has_index(host)


def has_index(host: Host) -> bool:
    """Whether the list of the kernel's modules is there."""
    return host.exists(f"{_module_directory(host)}/modules.dep")


def _module_directory(host: Host) -> str:
    release = host.read("/proc/sys/kernel/osrelease")
    return "/lib/modules/none" if isinstance(release, Missing) else f"/lib/modules/{release}"


def _module_of(path: str) -> str:
    return module_name(path.rpartition("/")[2].partition(".ko")[0])
