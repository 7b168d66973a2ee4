"""Tuning daemons that set their own values whenever they start: TuneD and saptune.

Of TuneD's values those of sysctl, sysfs and vm are read here. With ``reapply_sysctl`` it reads the files of
/run/sysctl.d and /etc/sysctl.d again after its own values, so that these win.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.errors import AdvisorError
from advisor.facts.owners import active_tuned, applied_notes
from advisor.facts.writers.commands import written_file
from advisor.facts.writers.record import Place
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

NOTE_PLACES = ("/var/lib/saptune/working/notes", "/usr/share/saptune/notes", "/etc/saptune/extra")
OVERRIDES = "/etc/saptune/override"
_OPERATOR = lazy_regex(r"[<>=|&].*")


def read_tuned(host: Host) -> Iterator[Place]:
    """Yield what TuneD sets with the last word: the files that it reads again or, where it reads none, its profile."""
    main, names = _settings_of_tuned(host)
    if names:
        from advisor.facts.tuned.reapplied import read_reapplied

        for key, (value, path, line) in read_reapplied(host, main).items():
            yield Place(f"sysctl:{key}", value, path, line, f"TuneD (profile {names})")
    yield from _profile_values(host, gives_way=False)


def read_tuned_before_files(host: Host) -> Iterator[Place]:
    """Yield what TuneD's profile sets and gives way to the administrator's files."""
    yield from _profile_values(host, gives_way=True)


def _settings_of_tuned(host: Host) -> tuple[dict[str, str], str | None]:
    names = active_tuned(host)
    if names is None:
        return {}, None
    from advisor.facts.tuned.places import main_settings

    return dict(main_settings(host)), names


def _profile_values(host: Host, *, gives_way: bool) -> Iterator[Place]:
    main, names = _settings_of_tuned(host)
    if names is None:
        return
    # Loaded only where TuneD runs.
    from advisor.facts.tuned.places import is_on
    from advisor.facts.tuned.profile import load_tuned
    from advisor.facts.tuned.reapplied import dotted_key

    is_reapplied = is_on(main, "reapply_sysctl")
    try:
        profile = load_tuned(names, host, host)
    except AdvisorError:
        # A plan says so: what it sets cannot be known.
        return
    for unit in profile.units.values():
        for key, option in unit.options.items() if unit.enabled else ():
            value = profile.variables.expand(option.value or "")
            said = None if value.unresolved or _OPERATOR.fullmatch(value.text) else value.text.strip("\"'")
            pairs: Iterator[tuple[str, str]] = iter(())
            if unit.type == "sysctl" and gives_way is is_reapplied:
                pairs = iter([(f"sysctl:{dotted_key(key)}", said or "")])
            elif unit.type == "sysfs" and not gives_way:
                pairs = written_file(key, said or "")
            elif unit.type == "vm" and key in ("transparent_hugepages", "transparent_hugepage") and not gives_way:
                pairs = iter([("thp:enabled", said or "")])
            for tunable, _ in pairs:
                yield Place(tunable, said, option.path, option.line, f"TuneD (profile {names})")


def read_saptune(host: Host) -> Iterator[Place]:
    """Yield the kernel parameters of the notes that saptune has applied; of those with conditions no value."""
    for note in applied_notes(host):
        from advisor.facts.saptune_text import parse_saptune_note

        found: dict[str, Place] = {}
        for path in (_note_file(host, note), f"{OVERRIDES}/{note}"):
            text = host.read(path) if path else Missing("absent", "no such note")
            for one in () if isinstance(text, Missing) else parse_saptune_note(text).entries:
                if one.section == "sysctl" and one.is_setting and re.fullmatch(r"[\w./-]+", one.key):
                    value = one.value if one.operator == "=" and not one.tags else None
                    found[one.key] = Place(f"sysctl:{one.key}", value, path, one.line, f"saptune ({note})")
                    if not one.value.strip():
                        # An override without a value leaves the key alone.
                        del found[one.key]
        yield from found.values()


def _note_file(host: Host, note: str) -> str | None:
    paths = [path for place in NOTE_PLACES for path in (f"{place}/{note}", f"{place}/{note}.conf")]
    return next((path for path in paths if host.exists(path)), None)
