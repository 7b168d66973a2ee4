"""Secrets, removed from what is passed on: archives with the answers of commands in them, and plans as they are shown.

Whatever the file is, what looks like a credential in what is kept of it is replaced by `without_credentials`; of files
that hold secrets among what a scan has to know, the rest of such a line goes as well.
"""

from __future__ import annotations

import re

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
    r"/(etc|var/spool/cron|usr/local|opt|root|srv|home|sbin|usr/sbin|usr/lib/NetworkManager|run/systemd/netif/leases"
    r"|var/lib/(kubelet|openvswitch|cloud|dhcp|dhclient|wicked|ocp-tuned))/.*"
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


_WORDS = (
    rb"(?:pass(?:word|wd|phrase|code)|psk|secret|token|bindpw|rootpw|sopass|community|cak|(?<![\w.-])pass2?"
    rb"|(?:api|access|auth|encryption|session|client|server|private|pre-?shared|shared|wep|wireless|fastopen)[_-]?key"
    rb"|(?:credentials?|userpwd)(?=[ \t]*[=:][ \t]*[^/\s]))"
)
_SUFFIX = rb"(?:[_-]?(?:raw|in|out|all|hash|text|value|base64|id|key|[0-9]{1,2}))*"
_KEY = rb"(?<![\w.-])[\w.-]{0,80}" + _WORDS + _SUFFIX + rb"[\"']?"
_VALUE = rb"(?:\"[^\"\n]*\"?|'[^'\n]*'?|[^\s\"']+)"
_CREDENTIALS = tuple(
    lazy_regex(one)
    for one in (
        # A line that begins with such a name holds nothing else; elsewhere a word does.
        rb"(?im)^([ \t#;-]*[\"']?(?:export[ \t]+)?"
        + _KEY
        + rb"[ \t]*[=:][ \t]*(?![|>][+-]?[0-9]?[ \t]*$|redacted))[^\s{][^\n]*",
        rb"(?i)(" + _KEY + rb"[ \t]*[=:][ \t]*)(?![|>\s]|redacted)" + _VALUE,
        rb"(?i)((?<![\w-])--?(?:password|passphrase|passwd|token|secret|psk)[ \t]+)" + _VALUE,
        rb"((?<![\w-])(?:sshpass[ \t]+-p[ \t]*|(?:curl|wget)\b[^\n]{0,200}?[ \t](?:-u|--user)[ \t=]+[^\s:]+:))\S+",
        rb"(systemd\.set(?:env|_credential(?:_binary)?)=[\w.-]{1,80}[=:])[^\s\"']+",
        rb"(?i)([a-z][a-z0-9+.-]{0,20}://[^\s/:@\"']{0,200}:)[^\s/@\"']+(?=@)",
        rb"(?i)(authorization[\"']?[ \t]*[:=][ \t]*[\"']?(?:bearer|basic|digest)[ \t]+)[^\s\"']+",
        rb"()\$(?:[1256y]|2[aby]|gy|7|argon2id?)\$[./\w$,=-]{8,}",
        rb"(grub\.pbkdf2\.)[\w.]+",
        rb"()\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_\w{20,}|xox[abp]-[\w-]{10,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+)",
    )
)
_PRIVATE_KEY = lazy_regex(rb"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[^-]*(?=-----END |\Z)")
_BLOCK = lazy_regex(
    rb"(?im)^(?P<indent>[ \t]*)(?P<head>(?:[\w\"'-][^\n]{0,80}?)??"
    + _WORDS
    + _SUFFIX
    + rb"[\"']?[ \t]*:[ \t]*[|>][+-]?[0-9]?[ \t]*\n)(?P<body>(?:(?P=indent)[ \t]+[^\n]*(?:\n|\Z)|[ \t]*\n)+)"
)
_SUSPECT = lazy_regex(
    rb"(?i)pass|psk|secret|token|pw|community|cak|key|credential|systemd\.set|://|authorization|\$[0-9a-z]{1,8}\$"
    rb"|pbkdf2|akia|gh[pousr]_|xox|eyj"
)
_OF_JOURNALS = lazy_regex(r"/.*/transactions/[0-9]+/journal")
# Values of the kernel's that are a key themselves.
_IS_SECRET = lazy_regex(r"/proc/sys/.*(secret|_key)")


def without_credentials(content: bytes) -> bytes:
    """Text with what looks like a credential in it replaced by a word, whatever it is of; its lines stay as many."""
    if _SUSPECT.search(content) is None:
        return content
    content = _BLOCK.sub(_without_block, content)
    content = _PRIVATE_KEY.sub(lambda found: found[1] + b"\n" + REDACTED + b"\n", content)
    for pattern in _CREDENTIALS:
        content = pattern.sub(rb"\g<1>" + REDACTED, content)
    return content


def _without_block(found: re.Match[bytes]) -> bytes:
    lines = found["body"].splitlines(keepends=True)
    hidden = (found["indent"] + b"  " + REDACTED + b"\n" if line.strip() else line for line in lines)
    return found["indent"] + found["head"] + b"".join(hidden)


def without_secrets(path: str, content: bytes) -> bytes:
    """The content of a file with each password and key in it replaced by a word.

    Of scripts, units and cron's tables nothing is left but the commands that a scan knows, of InterSystems' cpf nothing
    but its keys, of VCS' main.cf nothing but its resources.
    """
    if _OF_JOURNALS.fullmatch(path):
        # Checked line by line: `snapshot.remote.journals` removes what its plan holds.
        return content
    if _IS_SECRET.fullmatch(path):
        return REDACTED + b"\n" if content.strip() else content
    return without_credentials(_narrowed(path, content))


def _narrowed(path: str, content: bytes) -> bytes:
    """What is kept of a file, by its path."""
    if _OF_WRITERS.fullmatch(path):
        from advisor.facts.writers.programs import without_other_words

        words = without_other_words(path, content.decode("utf-8", "replace"))
        if words is not None:
            return words.encode()
    if path == "/etc/VRTSvcs/conf/config/main.cf":
        from advisor.facts.clusters.infoscale import only_resources

        return only_resources(content.decode("utf-8", "replace")).encode()
    if path.endswith(".cpf"):
        from advisor.facts.clusters.iris import only_known

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
    return without_credentials(_without_named(path, content) if holds_secrets else content)


def _without_named(path: str, content: bytes) -> bytes:
    pattern = _IN_LINE
    if path.endswith(".yaml"):
        pattern, content = _IN_YAML, _BLOCK.sub(_without_block, content)
    return pattern.sub(rb"\g<1>" + REDACTED, content)
