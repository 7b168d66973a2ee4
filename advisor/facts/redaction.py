"""Secrets in configuration files, removed from what is passed on: archives, and plans as they are shown."""

from __future__ import annotations

from advisor.host.patterns import lazy_regex

REDACTED = b"redacted"

# Where network managers, iSCSI, BeeGFS and PostgreSQL (primary_conninfo) keep passwords and keys among what a plan
# has to know.
_HOLDING_SECRETS = lazy_regex(
    r"/(etc|run|lib|usr/lib)/(NetworkManager|netplan)/.*|/etc/(network|iscsi|beegfs)/.*"
    r"|/etc/sysconfig/network(-scripts)?/.*|/var/lib/iscsi/.*|/etc/postgresql/.*"
)
# What may be a script, a unit, a table of cron, or the configuration of a program that sets values.
_OF_WRITERS = lazy_regex(
    r"/(etc|var/spool/cron|usr/local|opt|root|srv|home|sbin|usr/sbin|run/systemd/netif/leases"
    r"|var/lib/(kubelet|openvswitch|cloud|dhcp|dhclient))/.*"
)
_CERTAIN = (
    rb"[\w.-]*(?:pass(?:word|wd|phrase)(?:-?all|_in)?|psk|secret|pin"
    rb"|(?:pre-?shared|private|wep|wireless)[_-]?key[\d_]*)"
)
_LIKELY = rb"key[\d_]*|private|shared"
_NAMED = (
    rb"(?i)((?<![\w.-])[\"']?(?:(?:" + _CERTAIN + rb")[\"']?[ \t]*[:= \t]|(?:" + _LIKELY + rb")[\"']?[ \t]*[:=])[ \t]*)"
)
_IN_LINE = lazy_regex(_NAMED + rb"[^\s][^\n]*")
_IN_YAML = lazy_regex(_NAMED + rb"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s,}{\"'][^\n,}]*)")


# A password of a share may hold anything but blanks, also commas: what follows one goes with it.
_OF_MOUNTS = lazy_regex(rb"(?i)((?<![\w.-])(?:pass(?:word|wd)?2?|secret|cred)=)[^\s]+")
_OF_KERNEL = lazy_regex(rb"(?i)((?<!\S)(?:[^\s=]*(?:pass|secret|token|key|cred)[^\s=]*=|(?:net)?root=iscsi:))[^\s]+")
# What is written below /sys is a setting, but for the passwords of iSCSI targets; files may be given any content.
_OF_TMPFILES = lazy_regex(rb"(?m)^(?![#\n])(?!w\S*[ \t]+/sys/(?!kernel/config/))((?:\S+[ \t]+){6})\S[^\n]*")


def without_secrets(path: str, content: bytes) -> bytes:
    """The content of a file with each password and key in it replaced by a word; other files as they are.

    Of scripts, units and cron's tables nothing is left but the commands that a scan knows, of InterSystems' cpf nothing
    but its keys, of VCS' main.cf nothing but its resources.
    """
    if _OF_WRITERS.fullmatch(path):
        from advisor.facts.writers.scripts import without_other_words

        words = without_other_words(path, content.decode("utf-8", "replace"))
        if words is not None:
            return words.encode()
    if path == "/etc/VRTSvcs/conf/config/main.cf":
        from advisor.facts.infoscale_text import only_resources

        return only_resources(content.decode("utf-8", "replace")).encode()
    if path.endswith(".cpf"):
        from advisor.facts.cpf_text import only_known

        return only_known(content.decode("utf-8", "replace")).encode()
    special = {"/etc/fstab": _OF_MOUNTS, "/proc/cmdline": _OF_KERNEL}.get(path)
    if path.startswith("/etc/tmpfiles.d/"):
        special = _OF_TMPFILES
    if special is not None:
        return special.sub(rb"\g<1>" + REDACTED, content)
    return _without_named(path, content) if _HOLDING_SECRETS.fullmatch(path) else content


def for_display(path: str, content: bytes) -> bytes:
    """A configuration file as a plan shows it: line by line as it is, but for the value of each password and key."""
    holds_secrets = path.endswith(".cpf") or _HOLDING_SECRETS.fullmatch(path)
    return _without_named(path, content) if holds_secrets else content


def _without_named(path: str, content: bytes) -> bytes:
    pattern = _IN_YAML if path.endswith(".yaml") else _IN_LINE
    return pattern.sub(rb"\g<1>" + REDACTED, content)
