"""TuneD's profiles → imported profiles: the one door for ``advisor profiles import tuned:NAME``."""

from __future__ import annotations

import os.path
from collections.abc import Mapping

from advisor.facts.host_facts import Facts
from advisor.host import Host
from advisor.importers.planned import made_of, planned_values
from advisor.importers.records import Imported, ImportedSetting, Mode
from advisor.importers.to_profile import profile_name
from advisor.importers.tuned.convert import convert_profile
from advisor.importers.tuned.devices import devices_of
from advisor.importers.tuned.differences import find_differences
from advisor.importers.tuned.places import is_on, main_settings, package_version, profile_directories
from advisor.importers.tuned.plugin_sysctl import read_reapplied
from advisor.importers.tuned.profile import TunedProfile, load_tuned


def import_tuned(name: str, host: Host, mode: Mode, *, files: Host | None = None, path: str | None = None) -> Imported:
    """A TuneD profile as it comes over to ``host``.

    ``files`` is the machine whose /usr/lib/tuned and /etc/tuned are read, without it the same; ``path`` is the file of
    a profile that lies elsewhere, what it includes is also looked up in the same directory. Raises UsageError for a
    profile that is not there, InvalidInputError naming file and line for one that TuneD would not load.
    """
    source = host if files is None else files
    directories = profile_directories(source)
    if path is not None:
        directories = (*directories, os.path.dirname(os.path.dirname(path)) or "/")
    profile = load_tuned(name, source, host, directories=directories, path=path)
    return _import_profile(profile, host, mode, source)


def _import_profile(profile: TunedProfile, host: Host, mode: Mode, files: Host) -> Imported:
    main = main_settings(files)
    each: Mapping[Mode, tuple[ImportedSetting, ...]] = {
        one: convert_profile(profile, host, one, files=files, main=main) for one in ("faithful", "intent")
    }
    settings = each[mode]
    found = find_differences(profile, host, main, each["faithful"], each["intent"])
    return Imported(
        name=profile_name(f"tuned-{profile.name}"),
        origin=f"tuned:{profile.name}",
        mode=mode,
        title=f"TuneD's profile {profile.name}",
        about=_main_option(profile, "summary"),
        sources=_list_sources(profile, files),
        settings=settings,
        differences=found,
        links=_physical_links(settings, host),
        notes=_import_notes(profile, mode),
    )


def _main_option(profile: TunedProfile, key: str) -> str:
    option = profile.main.get(key)
    return (option.value or "") if option else ""


def _list_sources(profile: TunedProfile, files: Host) -> tuple[str, ...]:
    version = package_version(files, "tuned")
    return tuple(f"{path} (tuned {version})" if version else path for path in profile.files)


def _physical_links(settings: tuple[ImportedSetting, ...], host: Host) -> tuple[str, ...]:
    """The physical links of this host, where a line is for links: TuneD knows no others."""
    if not any(one.for_each == "links" for one in settings):
        return ()
    return devices_of(host, "net") or ()


def _import_notes(profile: TunedProfile, mode: Mode) -> tuple[str, ...]:
    notes = [
        "Which sections are for this host, and which idle states and CPUs it has, was judged when it was imported."
    ]
    if profile.failed is not None:
        notes.append(f"TuneD refuses to load it on that host: {profile.failed}.")
    return tuple(notes)


def read_again(files: Host) -> Mapping[str, str]:
    """``sysctl:`` tunable → value that TuneD sets after its own: that of the system's files
    (``reapply_sysctl``)."""
    return {f"sysctl:{key}": value for key, (value, _) in read_reapplied(files, main_settings(files)).items()}


def reads_sysctl_files(files: Host) -> bool:
    """Whether TuneD reads /etc/sysctl.d after its own values, so that what stands there wins."""
    return is_on(main_settings(files), "reapply_sysctl")


def made_by_tuned(name: str, values: Mapping[str, str], host: Host, facts: Facts) -> tuple[dict[str, str], set[str]]:
    """What TuneD makes of these values (by tunable) when it activates a profile on this host, its own reading of
    the system's sysctl files left out; and those of them that give way to such a file. Raises as `import_tuned`."""
    imported = import_tuned(name, host, "faithful")
    hidden = {
        f"sysctl:{one.key}"
        for one in imported.settings
        if one.departs == "overridden" and values.get(f"sysctl:{one.key}", one.raw) != one.raw.strip("=<>")
    }
    return dict(made_of(values, imported, host, facts)), hidden & values.keys()


def faithful_values(name: str, host: Host, *, files: Host | None = None) -> Mapping[str, str]:
    """Tunable → value that TuneD leaves on this host with a profile, as far as it is imported; those that the host has.

    What is there already as wanted is among them. Raises as `import_tuned`.
    """
    return planned_values(import_tuned(name, host, "faithful", files=files), host)
