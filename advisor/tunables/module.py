"""Kind ``module:``: which kernel modules are loaded, and with which parameters."""

from __future__ import annotations

from advisor.tunables.kernel_modules import module_name
from advisor.tunables.kind import Capture, Kind
from advisor.tunables.module_load import KernelModule
from advisor.tunables.module_option import ModuleOption
from advisor.tunables.module_parameter import ModuleParameter
from advisor.tunables.tunable import Tunable


def parse_module(rest: str) -> Tunable:
    """The tunable of ``NAME``, ``NAME:PARAMETER`` or ``NAME:option.PARAMETER``; a hyphen of NAME is an underscore, as
    to modprobe(8). Raises UsageError for what names none."""
    name, colon, parameter = rest.partition(":")
    rest = f"{module_name(name)}{colon}{parameter}"
    if ":option." in rest:
        return ModuleOption.parse(rest)
    return ModuleParameter.parse(rest) if ":" in rest else KernelModule.parse(rest)


KIND = Kind(
    name="module",
    order=150,
    parse=parse_module,
    noun="module setting",
    examples=(
        ("module:nf_conntrack", "loaded"),
        ("module:nvme_core:io_timeout", "255"),
        ("module:nvme_core:option.multipath", "N"),
    ),
    capture=Capture(
        files=(("/proc", ("modules",)),),
        configuration=(("/etc/modprobe.d", ("*.conf",)), ("/etc/modules-load.d", ("*.conf",))),
        marked=(
            "/sys/module",
            "/etc/modules-load.d",
            "/usr/lib/modules-load.d",
            "/lib/modules-load.d",
            "/run/modules-load.d",
        ),
        system_commands=(("modprobe", "--showconfig"),),
        values={"module:advisor": "loaded"},
    ),
    written_by=frozenset({"tuned"}),
    sysfs=((r"/sys/module/([^/]+)/parameters/([^/]+)", r"module:\1:\2"),),
    harms=((r".*", "A module that is in use takes a new option with the next load only."),),
)
