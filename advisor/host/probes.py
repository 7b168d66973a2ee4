"""How a live value is read, as data: observed here, rendered as shell by ``advisor.shell.rollback_script``.

A probe names a file or a command, and a *form* that reduces what it gives to one canonical line:

``words``      all white space folded to single blanks (``4096\\t131072\\t6291456`` → ``4096 131072 6291456``)
``flow:NAME``  the value of NAME in what ``lltconfig -F query`` prints, whatever the spacing
``timer:NAME``  the same of ``lltconfig -T query``
``unit-numa``  NUMAPolicy, NUMAMask and CPUAffinity in what ``systemctl show`` prints; a systemd before 243 prints the
               last alone
``unit-setting:NAME``  one property there, and its soft limit
``selected``   the word in brackets (``[mq-deadline] none``), or the only word
``cpumask``    the CPUs of a mask as a kernel list (``0000000f`` → ``0-3``), or ``none``
``qdisc``      a link's root qdisc, as `link_text.qdisc` returns it
``md-speed``   ``1000 (local)`` → ``1000``, ``1000 (system)`` → ``system``
``conf:KEY``, ``cpf:SECTION/KEY``, ``multipath:SECTION/KEY``, ``directive:NAME``  what a configuration file gives a key
``llttab-mtu:TAG``  the MTU field of a link line of llttab
``addresses``, ``routes:4``, ``routes:6``  those of a link that last, in what ``ip`` prints (``ip_forms``)
``rss``        a link's RSS indirection table, as `rss_text.indirection` returns it
``number``     the only word, a whole number
``choice``     the word in brackets or parentheses where one is marked, else all words
``udev-class:PROPERTY``  the value that a udev rule gives, by `kernel_text`; that of a file that is not there, too
``module:NAME``, ``module-option:NAME:PARAMETER``, ``cmdline:WORD``, ``unit-state``  as `kernel_text` returns them
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from advisor.host import config_text, kernel_text
from advisor.host import kernel_text as link_text
from advisor.host.config_text import UNSET, parse_flow, shown_cpus, split_words
from advisor.host.device_identity import located
from advisor.host.ethtool import NOT_RECORDED, answer_key
from advisor.host.missing import Identity, Missing
from advisor.host.steps import ETHTOOL_OPTIONS, DriverGroup

if TYPE_CHECKING:
    from advisor.host.machine import Host


class ReadFile(msgspec.Struct, frozen=True, tag="file"):
    """A kernel attribute or a file; with an ``identity``, that of the device whatever its name is now."""

    path: str
    form: str = "words"
    identity: Identity | None = None


class ReadCommand(msgspec.Struct, frozen=True, tag="command"):
    """Standard output of a command that must return 0."""

    argv: tuple[str, ...]
    form: str = "words"


class ReadEthtool(msgspec.Struct, frozen=True, tag="ethtool"):
    """A value of a link's driver, by ethtool's or the kernel's name: a number, or ``on`` or ``off``."""

    link: str
    group: DriverGroup
    key: str

    @property
    def argv(self) -> tuple[str, ...]:
        return ("ethtool", ETHTOOL_OPTIONS[self.group], self.link)

    @property
    def form(self) -> str:
        """The function that finds the value in what ethtool prints (`link_text.printed`)."""
        return "ethtool"


class ReadIrqs(msgspec.Struct, frozen=True, tag="irqs"):
    """The interrupts of a link and where they may run, as `link_irqs` returns it."""

    link: str

    @property
    def form(self) -> str:
        return "irqs"


Probe = ReadFile | ReadCommand | ReadEthtool | ReadIrqs


def observe(host: Host, probe: Probe) -> str | Missing:
    """The live value in canonical form, or why there is none."""
    match probe:
        case ReadFile(path, form, identity):
            place = located(host, path, identity)
            text = place if isinstance(place, Missing) else host.read(place)
            if isinstance(text, Missing) and text.is_absent and form.startswith("udev-class:"):
                text = ""
        case ReadCommand(argv, form):
            done = host.run(argv)
            if isinstance(done, Missing):
                return done
            if not done.ok:
                return done.failure(argv[0])
            text = done.stdout
        case ReadEthtool():
            answer = host.ethtool(probe.link, probe.group)
            if isinstance(answer, Missing):
                return Missing("unreadable", answer.why) if answer == NOT_RECORDED else answer
            key = answer_key(probe.group, probe.key)
            value = answer.get(key)
            # A driver that has no such ring or channel says that there can be none.
            if value is None or answer.get(f"{key}_max") == 0:
                return Missing("absent", f"its driver has no {probe.key} among its {probe.group}")
            return str(value) if not isinstance(value, bool) else "on" if value else "off"
        case ReadIrqs(link):
            # Nothing that a scan asks for.
            from advisor.host.irqs import irqs_line, link_irqs

            return irqs_line(link_irqs(host, link))
    if isinstance(text, Missing):
        return text
    # The original bytes are lost, or no shell could hold them: the value could not be restored.
    if "\ufffd" in text or "\0" in text:
        return Missing("unreadable", "not UTF-8" if "\ufffd" in text else "holds NUL bytes")
    return reduce(text, form)


def reduce(text: str, form: str) -> str | Missing:
    """One canonical line from what a file or command gave."""
    name, _, argument = form.partition(":")
    return FORMS[name](text, argument)


def _join_words(text: str, _: str) -> str:
    return " ".join(split_words(text))


def _named_number(text: str, name: str) -> str | Missing:
    value = parse_flow(text).get(name)
    return Missing("absent", f"{name} is not among the values that lltconfig prints") if value is None else str(value)


def _timer_value(text: str, name: str) -> str | Missing:
    # Some releases print the flow control values below the timers.
    return _named_number(re.split(r"(?im)^.*flow control.*$", text, maxsplit=1)[0], name)


def _selected_word(text: str, _: str) -> str | Missing:
    words = split_words(text)
    chosen = [word[1:-1] for word in words if re.fullmatch(r"\[.+\]", word)]
    if len(chosen) == 1:
        return chosen[0]
    return words[0] if len(words) == 1 and not chosen else Missing("unreadable", "marks no single word as chosen")


def _md_speed(text: str, _: str) -> str | Missing:
    found = re.fullmatch(r"([0-9]+) \((system|local)\)", " ".join(split_words(text)))
    if not found:
        return Missing("unreadable", f"not a speed and where it comes from: {text[:40]!r}")
    return "system" if found[2] == "system" else found[1]


# What systemd has for "no limit", and for a weight that is not set, where it prints the number.
_NO_LIMIT = "18446744073709551615"


def _parse_properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.split("\n") if "=" in line)


def _unit_setting(text: str, name: str) -> str | Missing:
    properties = _parse_properties(text)
    if properties.get("LoadState") != "loaded":
        return Missing("absent", "systemd knows no such unit")
    if name not in properties:
        return Missing("absent", f"this systemd has no property {name}")
    value, soft = (_format_setting(name, properties.get(one, properties[name])) for one in (name, f"{name}Soft"))
    if properties.get(f"{name}FromNUMA") == "yes":
        return "numa"
    if name == "CPUAffinity":
        return value if value == UNSET else shown_cpus(value)
    return value if value == soft else f"{soft}:{value}"


def _format_setting(name: str, value: str) -> str:
    words = split_words(value)
    if words == [_NO_LIMIT]:
        return UNSET if name.endswith("Weight") else "infinity"
    return UNSET if words in ([], ["[not", "set]"]) else ",".join(words)


def _unit_numa(text: str, _: str) -> str | Missing:
    properties = _parse_properties(text)
    if properties.get("LoadState") != "loaded":
        return Missing("absent", "systemd knows no such unit")
    from_node = properties.get("CPUAffinityFromNUMA") == "yes"
    cpus = "numa" if from_node else shown_cpus(properties.get("CPUAffinity", ""))
    if "NUMAPolicy" not in properties:
        return f"CPUAffinity={cpus}"
    policy = properties["NUMAPolicy"]
    policy = "default" if policy in ("", "n/a") else policy
    return f"NUMAPolicy={policy} NUMAMask={properties.get('NUMAMask', '').replace(' ', ',')} CPUAffinity={cpus}"


FORMS: Mapping[str, Callable[[str, str], str | Missing]] = {
    "words": _join_words,
    "flow": _named_number,
    "timer": _timer_value,
    "unit-numa": _unit_numa,
    "unit-setting": _unit_setting,
    "selected": _selected_word,
    "md-speed": _md_speed,
    "cpumask": link_text.cpulist,
    "qdisc": link_text.qdisc,
    "conf": config_text.key_value,
    "cpf": config_text.section_value,
    "multipath": config_text.multipath_value,
    "directive": config_text.directive,
    "llttab-mtu": config_text.link_mtu,
    "addresses": link_text.addresses,
    "routes": link_text.routes,
    "rss": link_text.indirection,
    "number": kernel_text.number,
    "choice": kernel_text.choice,
    "module": kernel_text.module,
    "module-option": kernel_text.module_option,
    "cmdline": kernel_text.cmdline,
    "unit-state": kernel_text.unit_state,
    "udev-class": kernel_text.udev_class,
}
"""The function of each form. ``templates/values.sh.j2`` and ``kernel_forms.sh.j2`` have one of the same name in sh, and
``tests/tunables/test_value_forms.py`` a text of each."""
