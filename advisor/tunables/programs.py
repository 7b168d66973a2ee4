"""Settings that name what root or the kernel runs, or that switch off what guards the host. A profile must be able to
set neither: a bad value of anything else can be restored, and these could take the host over before.

After the kernel's admin-guide (kernel-parameters, sysctl/kernel, sysctl/fs) and kernel-command-line(7) of systemd.
"""

from __future__ import annotations

from advisor.host.patterns import lazy_regex

RUNS = "the kernel runs what it names, as root"
_FIRMWARE = "it names where programs for devices lie"
_SHELL = "it starts other programs than the host's own"
_GUARDS = "it decides which of the kernel's protections are on"

_SYSCTLS = lazy_regex(
    r"kernel\.(core_pattern|modprobe|poweroff_cmd|hotplug|usermodehelper\..*)|fs\.binfmt_misc\..*"
    r"|fs\.ocfs2\.nm\.hb_ctl_path"
)
_MODULES = {
    "firmware_class.path": _FIRMWARE,
    "drbd.usermode_helper": RUNS,
    "nfs.cache_getent": RUNS,
    "nfsd.cltrack_prog": RUNS,
    "module.sig_enforce": _GUARDS,
}
_WORDS = (
    (lazy_regex(r"(rd)?init|root|nfsroot|initrd"), "the host is started with what it names, as root"),
    (
        lazy_regex(
            r"(rd\.)?systemd\.(run\w*|unit|wants|debug[_-]shell|mask|setenv|set_credential\w*|import_credentials)"
            r"|rd\.(break|shell|emergency)|break|1|s|S|single|rescue|emergency|kgdbwait|kgdboc"
        ),
        _SHELL,
    ),
    (
        lazy_regex(
            r"selinux|enforcing|checkreqprot|apparmor|tomoyo|security|lsm|lockdown|integrity_audit|ima_\w+|evm"
            r"|nosmep|nosmap|nokaslr|no_hash_pointers|hardened_usercopy|vsyscall"
        ),
        _GUARDS,
    ),
)


def refused_sysctl(key: str) -> str | None:
    """Why no profile sets a sysctl; None where one may."""
    return RUNS if _SYSCTLS.fullmatch(key) else None


def refused_parameter(module: str, parameter: str) -> str | None:
    """Why no profile sets a parameter of a module."""
    return _MODULES.get(f"{module.replace('-', '_')}.{parameter.replace('-', '_')}")


def refused_word(word: str) -> str | None:
    """Why no plan proposes a word of the kernel's command line, on which sysctls and parameters may be set, too."""
    if word.startswith("sysctl."):
        return refused_sysctl(word.removeprefix("sysctl."))
    module, dot, parameter = word.partition(".")
    known = refused_parameter(module, parameter) if dot else None
    return known or next((why for pattern, why in _WORDS if pattern.fullmatch(word)), None)
