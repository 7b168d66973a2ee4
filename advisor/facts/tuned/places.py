"""Where TuneD keeps its profiles: two layouts of versions, and what its main configuration says."""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.errors import AdvisorError
from advisor.facts.tuned.ini import decode_text, parse_tuned_ini
from advisor.host import Host, Missing
from advisor.host.patterns import lazy_regex

MAIN_CONF = "/etc/tuned/tuned-main.conf"
_OLD = ("/usr/lib/tuned", "/etc/tuned")
_NEW = ("/usr/lib/tuned/profiles", "/etc/tuned/profiles")


def main_settings(files: Host) -> Mapping[str, str]:
    """TuneD's main configuration; empty where there is none, or none that can be read."""
    data = files.read_bytes(MAIN_CONF)
    if isinstance(data, Missing):
        return {}
    try:
        sections = parse_tuned_ini(decode_text(data, MAIN_CONF), MAIN_CONF, is_variables=True)
    except AdvisorError:
        # TuneD then does not start at all; its defaults are the best that can be said.
        return {}
    return {key: option.value for options in sections.values() for key, option in options.items() if option.value}


def is_on(settings: Mapping[str, str], key: str) -> bool:
    """Whether a switch of the main configuration is on; it is where nothing is said."""
    return settings.get(key, "1").lower() in ("1", "true", "yes", "on", "y", "t")


def profile_directories(files: Host) -> tuple[str, ...]:
    """The directories of profiles, the last of which wins. Since 2.23 they lie below ``profiles``."""
    listed = main_settings(files).get("profile_dirs")
    if listed:
        return tuple(part.strip() for part in listed.split(",") if part.strip().startswith("/"))
    return _NEW if files.is_dir(_NEW[0]) else _OLD


def is_plain_file(files: Host, place: str) -> bool:
    """Whether it may be read: a regular file. To open a device that a profile names could do something already."""
    real = files.real(place)
    if isinstance(real, Missing) or files.is_dir(place):
        return False
    owner = files.owner(real)
    # A snapshot does not hold the type of a file; it holds no devices.
    return not isinstance(owner, Missing) or owner.is_absent


def installed_profiles(files: Host) -> Mapping[str, str]:
    """Name → file of every TuneD profile that is installed, sorted."""
    found: dict[str, str] = {}
    for directory in profile_directories(files):
        for name in files.names(directory):
            place = f"{directory}/{name}/tuned.conf"
            if is_plain_file(files, place):
                found[name] = place
    return dict(sorted(found.items()))


def package_version(files: Host, package: str) -> str | None:
    """The version of an installed Debian package; None where dpkg does not know it."""
    status = files.read("/var/lib/dpkg/status")
    if isinstance(status, Missing):
        return None
    for block in status.split("\n\n"):
        lines = block.split("\n")
        if lines[0].strip() == f"Package: {package}":
            return next((line.partition(":")[2].strip() for line in lines if line.startswith("Version:")), None)
    return None


# Where distributions put Python's packages.
_PYTHONS = lazy_regex(r"python3(\.[0-9]+)?")
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64")


def python_packages(files: Host) -> list[str]:
    """The directories of Python's packages on that machine."""
    return [
        f"{library}/{python}/{packages}"
        for library in _LIBRARIES
        for python in files.names(library)
        if _PYTHONS.fullmatch(python)
        for packages in ("dist-packages", "site-packages", "lib-dynload")
    ]


def lacks_perf(files: Host) -> bool:
    """Whether TuneD is installed and Python's module perf is not: its plugin scheduler is then not loaded at all.

    Debian 12 has no package of that module. False where TuneD's own package is not seen.
    """
    names = {name for directory in python_packages(files) for name in files.names(directory)}
    return "tuned" in names and not any(re.fullmatch(r"perf(\..*)?\.(so|py)|perf", name) for name in names)
