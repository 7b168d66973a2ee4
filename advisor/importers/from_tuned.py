"""TuneD's profiles → imported profiles: the one door for ``advisor profiles import tuned:NAME``."""

from __future__ import annotations

import os.path
from collections.abc import Mapping

from advisor.facts.host_facts import Facts
from advisor.facts.tuned.places import is_on, main_settings, profile_directories
from advisor.facts.tuned.profile import load_tuned
from advisor.facts.tuned.reapplied import read_reapplied
from advisor.host import Host
from advisor.importers.planned import made_of
from advisor.importers.records import Imported, Mode
from advisor.importers.to_profile import profile_name
from advisor.importers.tuned.convert import convert_profile
from advisor.importers.tuned.devices import devices_of
from advisor.importers.tuned.differences import find_differences
from advisor.importers.tuned.versions import NEWEST, TunedVersion, installed_version, known_version, show_version


def import_tuned(
    name: str,
    host: Host,
    mode: Mode,
    *,
    files: Host | None = None,
    path: str | None = None,
    version: TunedVersion | None = None,
) -> Imported:
    """A TuneD profile as it comes over to ``host``.

    ``files`` is the machine whose /usr/lib/tuned and /etc/tuned are read, without it the same; ``path`` is the file of
    a profile that lies elsewhere, what it includes is also looked up in the same directory. ``version`` of TuneD that
    is judged by, without it the one that is installed there, or the newest known. Raises UsageError for a
    profile that is not there, InvalidInputError naming file and line for one that TuneD would not load.
    """
    source = host if files is None else files
    directories = profile_directories(source)
    if path is not None:
        directories = (*directories, os.path.dirname(os.path.dirname(path)) or "/")
    profile = load_tuned(name, source, host, directories=directories, path=path)
    main = main_settings(source)
    installed = installed_version(source)
    judged = version or known_version(installed)
    each = {
        one: convert_profile(profile, host, one, files=source, main=main, version=judged)
        for one in ("faithful", "intent")
    }
    settings = each[mode]
    found = find_differences(profile, host, main, each["faithful"], each["intent"])
    option = profile.main.get("summary")
    shown = show_version(version) if version else installed
    notes = [
        "Which sections are for this host, and which idle states and CPUs it has, was judged when it was imported."
    ]
    if judged is None:
        notes.append(f"Which TuneD will read it is unknown: judged as {show_version(NEWEST)} does (--tuned-version).")
    if profile.failed is not None:
        notes.append(f"TuneD refuses to load it on that host: {profile.failed}.")
    # The physical links of this host, where a line is for links: TuneD knows no others.
    return Imported(
        name=profile_name(f"tuned-{profile.name}"),
        origin=f"tuned:{profile.name}",
        mode=mode,
        title=f"TuneD's profile {profile.name}",
        about=(option.value or "") if option else "",
        sources=tuple(f"{path} (tuned {shown})" if shown else path for path in profile.files),
        settings=settings,
        differences=found,
        links=() if not any(one.for_each == "links" for one in settings) else devices_of(host, "net") or (),
        notes=tuple(notes),
    )


def read_again(files: Host) -> Mapping[str, str]:
    """``sysctl:`` tunable → value that TuneD sets after its own: that of the system's files
    (``reapply_sysctl``)."""
    return {f"sysctl:{key}": value for key, (value, _, _) in read_reapplied(files, main_settings(files)).items()}


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
