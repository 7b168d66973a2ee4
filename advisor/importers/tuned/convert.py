"""A loaded TuneD profile → what becomes of each of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor.facts.tuned.functions import AssertionFailedError
from advisor.facts.tuned.ini import IniOption
from advisor.facts.tuned.places import lacks_perf
from advisor.facts.tuned.profile import SCOPE, TunedProfile
from advisor.facts.tuned.reapplied import read_reapplied
from advisor.host import Host
from advisor.importers.disjoint import last_wins, make_disjoint
from advisor.importers.made import Found, SourceLine, flatten_found, without_rivals
from advisor.importers.records import ImportedSetting, Mode
from advisor.importers.tuned.context import Context, Given
from advisor.importers.tuned.instances import PluginInstance, make_instances
from advisor.importers.tuned.plugins import PLUGINS, STEERED
from advisor.importers.tuned.versions import TunedVersion, known_since, show_version


def convert_profile(
    profile: TunedProfile,
    host: Host,
    mode: Mode,
    *,
    files: Host,
    main: Mapping[str, str],
    version: TunedVersion | None = None,
) -> tuple[ImportedSetting, ...]:
    """Every line of the profile and of what it includes, in the order in which TuneD applies them.

    ``faithful``: what TuneD does with it on this host; ``intent``: what its author meant by it. ``version`` of TuneD
    decides what it knows; None is the newest.
    """
    context = Context(host, mode, main, profile.variables, read_reapplied(files, main), lacks_perf(files), version)
    lost_lines: list[ImportedSetting] = []
    for each in profile.lost:
        lost_lines += _repeated_lines(each.unit, each.key, each.option)
        sets_nothing = each.unit == "variables" or each.key in (*SCOPE, "priority")
        lost_lines.append(_source_line(each.unit, each.key, each.option).ignored(each.why, sets_nothing=sets_nothing))
    found = [*_head_settings(profile), *lost_lines]
    for instance in make_instances(profile, host, mode, main):
        # The lines that say what a section is for; scripts among them are never run.
        for key, option in instance.unit.settings.items():
            scope_line = _source_line(instance.unit.name, key, option)
            found += _repeated_lines(instance.unit.name, key, option)
            if key.startswith("script_"):
                found.append(
                    scope_line.manual("a script that TuneD runs as root for each device, which is never executed here")
                )
            else:
                found.append(scope_line.ignored("it says for whom or how the section is read", sets_nothing=True))
        for key, option in instance.unit.options.items():
            line = _source_line(instance.unit.name, key, option)
            found.extend(_repeated_lines(instance.unit.name, key, option))
            found += flatten_found([_convert_option(context, profile, instance, key, option, line)])
    # What is for all devices first: what is for some of them was meant to hold there.
    ordered = (
        sorted(found, key=lambda one: one.for_each is not None and one.only is not None) if mode == "intent" else found
    )
    return without_rivals(make_disjoint(last_wins(ordered), host))


def _source_line(section: str, key: str, option: IniOption) -> SourceLine:
    return SourceLine(section, key, option.value or "", option.path, option.line, option.comment)


def _head_settings(profile: TunedProfile) -> Iterator[ImportedSetting]:
    for key, option in profile.main_lines:
        yield from _repeated_lines("main", key, option)
        line = _source_line("main", key, option)
        unknown = profile.not_included.get(option) if key == "include" else None
        if unknown is not None:
            yield line.manual(f"{unknown}; import that profile by itself")
        else:
            yield line.ignored("it says what the profile is, or builds on", sets_nothing=True)
    for key, option in profile.variable_lines.items():
        yield from _repeated_lines("variables", key, option)
        yield _source_line("variables", key, option).ignored(
            "a variable, filled in where it is named", sets_nothing=True
        )


def _repeated_lines(section: str, key: str, option: IniOption) -> Iterator[ImportedSetting]:
    """What the same file says about it before."""
    for number, value in option.earlier:
        line = SourceLine(section, key, value, option.path, number)
        yield line.ignored(f"line {option.line} of the same file sets it again", sets_nothing=section in _NAMES)


_NAMES = ("main", "variables")


def _convert_option(
    context: Context, profile: TunedProfile, instance: PluginInstance, key: str, option: IniOption, line: SourceLine
) -> Found:
    if key == "priority":
        return line.ignored("it says when TuneD applies the section", sets_nothing=True)
    if profile.failed is not None and context.is_faithful:
        return line.ignored(f"TuneD refuses to load the profile on this host: {profile.failed}", "not-loaded")
    if instance.left_out is not None:
        return line.ignored(instance.left_out)
    if instance.unclear is not None:
        return line.manual(instance.unclear)
    kind = instance.unit.type
    if instance.inert is not None:
        what = {"disk": "disk", "net": "link"}.get(kind, "CPU")
        why = f"the section [{instance.inert}] comes first and takes every {what}, so that this one gets none"
        return line.ignored(why, "inert")
    since = known_since(kind, key)
    if context.version is not None and context.version < since and context.is_faithful:
        what = f"the option {key[:40]} of {kind}" if known_since(kind, "") < since else f"the plugin {kind}"
        why = f"TuneD {show_version(context.version)} does not know {what} yet, which is of {show_version(since)}"
        return line.ignored(why, "unknown")
    if kind in STEERED:
        return line.manual(STEERED[kind])
    if kind == "scheduler" and context.lacks_perf and context.is_faithful:
        why = "TuneD does not load its plugin scheduler on that host, as Python's module perf is missing"
        return line.ignored(why, "not-loaded")
    plugin = PLUGINS.get(kind)
    if plugin is None or not plugin.knows(key):
        what = f"the plugin {kind[:40]}" if plugin is None else f"the option {key[:40]} of {kind}"
        why = f"TuneD does not know {what}, says so in its log, and goes on"
        return line.ignored(why, "unknown") if context.is_faithful else line.manual(why, "unknown")
    text, problem = _expand_option(context, option, line)
    if problem is not None:
        return problem
    known = {name: getattr(context, name) for name in context.__struct_fields__}
    return plugin.convert(Given(**known, line=line, key=key, text=text, instance=instance))


def _expand_option(context: Context, option: IniOption, line: SourceLine) -> tuple[str, ImportedSetting | None]:
    value = option.value or ""
    try:
        expanded = context.variables.expand(value)
    except AssertionFailedError as error:
        return value, line.manual(f"an assertion in it does not hold: {error}", "not-loaded")
    if expanded.unresolved:
        return value, line.manual(f"its value is unknown here: {'; '.join(expanded.unresolved)[:300]}")
    missing = context.variables.missing(expanded.text)
    if missing:
        why = f"nothing defines the variable {missing[0][:40]}"
        if context.is_faithful:
            return value, line.ignored(f"{why}: TuneD writes the name itself, which is refused", "refused")
        return value, line.manual(why, "refused")
    return expanded.text, None
