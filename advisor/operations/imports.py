"""Profiles of other tools (TuneD, saptune, sysctl files) and settings of other hosts, as profiles of this library.

Nothing of what is imported is ever executed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from advisor.errors import InvalidInputError, PermissionDeniedError, RefusedError, UsageError
from advisor.exporters import Bundle, collect_settings, export_form
from advisor.exporters.apply_script import script_for_profiles
from advisor.exporters.settings import read_senses, write_bundle
from advisor.facts.host_facts import Facts, scan
from advisor.facts.writers import overriding_write, read_boot_settings
from advisor.host import Host, live_host
from advisor.host.files import open_given
from advisor.host.provenance import Provenance, read_provenance
from advisor.importers.from_host import import_host
from advisor.importers.pasted.forms import read_pasted
from advisor.importers.records import Imported, ImportedSetting, Mode
from advisor.importers.source import MAX_BYTES as MAX_BYTES
from advisor.importers.source import decode, find_source, import_source, list_installed
from advisor.importers.to_profile import to_profile, to_toml, with_judgement
from advisor.operations import open_host
from advisor.operations.files import write_output
from advisor.operations.muting import mute_findings
from advisor.planner import plan_profiles
from advisor.planning.records import Plan
from advisor.profiles.lint import checked_name
from advisor.profiles.profile import LOCAL_PROFILES
from advisor.recommend import declared, outlooks
from advisor.recommend.verdicts import JudgedText, judge_texts
from advisor.rules.judged import judge
from advisor.shell.quote import shell_quote

# A plan in the forms of other tools, and as a script.


def export_profiles(
    host: Host, names: Sequence[str], settings: Mapping[str, str], form: str, output: Path | None = None
) -> tuple[Plan, Bundle]:
    """Return the plan of the profiles on ``host`` and its files in the form of another tool.

    With ``output``, a new directory, the files are written there; a form that carries no value has none. Raises
    UsageError for an unknown form, RefusedError.
    """
    facts = scan(host)
    plan = plan_profiles(host, names, settings, facts=facts)
    senses = read_senses(host, names, settings, facts)
    bundle = _place_bundle(
        export_form(collect_settings(host, plan, hostname=facts.host.hostname, senses=senses), form), output
    )
    if output is not None and bundle.files:
        write_bundle(bundle, output)
    return plan, bundle


def write_apply_script(
    host: Host, names: Sequence[str], settings: Mapping[str, str], *, runtime_only: bool = False
) -> str:
    """Return the POSIX ``sh`` script that applies the profiles to ``host`` with nothing installed there."""
    return script_for_profiles(host, names, settings, runtime_only=runtime_only)


def _place_bundle(bundle: Bundle, output: Path | None) -> Bundle:
    """With the directory's name in the commands that put the files to use."""
    if output is None:
        return bundle
    # A path that begins with a dash would be an option.
    name = str(output) if not str(output).startswith("-") else f"./{output}"

    def fill_directory(line: str) -> str:
        """``DIRECTORY/FILE`` is quoted as one word: the name may hold blanks."""
        return re.sub(r"DIRECTORY(/\S*)", lambda found: shell_quote(name + found[1]), line)

    return msgspec.structs.replace(bundle, use=tuple(map(fill_directory, bundle.use)))


# Lines of an article or a colleague, judged on a host. Nothing of them is ever run.


class JudgedHost(msgspec.Struct, frozen=True):
    """What was judged on which host."""

    facts: Facts
    provenance: Provenance
    judged: JudgedText

    @property
    def has_settings(self) -> bool:
        """Whether a line of the text is a setting."""
        return bool(self.judged.lines)

    @property
    def is_harmful(self) -> bool:
        """Whether a line is harmful on this host."""
        return any(one.verdict == "harmful" for one in self.judged.lines)


def judge_lines(
    given: Mapping[str, bytes], host: Host | None = None, *, workload: str | None = None, place: str = ""
) -> JudgedHost:
    """Return the settings of texts, by their names, judged on ``host``, by default this one.

    ``workload`` declares what runs there, ``place`` is where a captured host was opened. Raises InvalidInputError for
    what is no text, UsageError for an invalid workload.
    """
    texts = {name: decode(data, name) for name, data in given.items()}
    wanted = declared(workload) if workload is not None else None
    asked = (host or live_host()).remembering()
    facts = scan(asked)
    pasted = [read_pasted(text, name, asked, facts) for name, text in texts.items()]
    findings = mute_findings(asked, facts, judge(facts, wanted)).findings
    active = [one for one in findings if one.muted is None]
    made = judge_texts(pasted, asked, facts, active, outlooks(asked, facts), wanted)
    return JudgedHost(facts, read_provenance(asked, place), made)


def read_given(name: str) -> bytes:
    """Return the content of a file, one byte more than what is judged at most. Raises InvalidInputError."""
    hint = "name a text file, or - for standard input"
    try:
        if passed := re.fullmatch("/(?:dev|proc/self)/fd/([0-9]{1,9})", name):
            # A pipe of <(…): whoever started this holds its other end.
            with open(os.dup(int(passed[1])), "rb") as pipe:
                return pipe.read(MAX_BYTES + 1)
        with open_given(Path(name)) as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, InvalidInputError) as error:
        why = error.message if isinstance(error, InvalidInputError) else f"{name}: {error.strerror}"
        raise InvalidInputError(why, hint=hint) from error


def import_profile(
    source: str | None = None,
    *,
    from_host: Path | None = None,
    mode: str = "intent",
    host: Host | None = None,
    tuned_version: str | None = None,
) -> Imported:
    """Return another tool's profile with a report on each of its lines, as it would be on ``host`` (this one).

    ``source`` is ``tuned:NAME``, ``saptune:NOTE``, ``sysctl:FILE`` or a file of one of them; ``from_host`` is a capture
    of a host whose settings are taken instead. ``mode`` is ``faithful`` (what its program really does) or ``intent``
    (what was meant). ``tuned_version``, such as 2.25, says which release of TuneD is judged by instead of the
    installed one. Raises UsageError for what is not there, InvalidInputError naming file and line.
    """
    if (source is None) == (from_host is None):
        raise UsageError("name one source: tuned:NAME, saptune:NOTE, sysctl:FILE, a file, or --from-host SNAPSHOT")
    if mode not in ("faithful", "intent"):
        raise UsageError(f"--mode {mode}: neither faithful nor intent")
    chosen: Mode = "faithful" if mode == "faithful" else "intent"
    here = host or live_host()
    if from_host is not None:
        if tuned_version is not None:
            raise UsageError("--tuned-version is for profiles of TuneD")
        imported = import_host(open_host(snapshot=from_host), here, chosen, where=str(from_host))
    else:
        assert source is not None
        found = find_source(source)
        files = live_host() if found.path else here
        imported = import_source(found, here, files, chosen, tuned_version=tuned_version)
    return _with_writers(with_judgement(imported, scan(here)), here)


def _with_writers(found: Imported, host: Host) -> Imported:
    """The import, with a note where something sets a kernel parameter otherwise after a file of advisor's."""
    names = [one.tunable for one in found.settings if one.tunable and one.tunable.startswith("sysctl:")]
    boot = read_boot_settings(host, names)
    path = f"/etc/sysctl.d/90-advisor-{found.name}.conf"

    def noted(one: ImportedSetting) -> ImportedSetting:
        write = overriding_write(boot, one.tunable, one.value or "", path) if one.tunable in names else None
        if write is None or write.value is None or write.file == one.file:
            return one
        return msgspec.structs.replace(one, note="; ".join(filter(None, (one.note, write.sentence))))

    return msgspec.structs.replace(found, settings=tuple(map(noted, found.settings)))


def render_profile(found: Imported) -> str:
    """Return the TOML of an imported profile. Raises InvalidInputError where the import made one that is none."""
    to_profile(found)
    return to_toml(found)


def save_profile(found: Imported, path: Path | None = None) -> tuple[Imported, Path]:
    """Write an imported profile to ``NAME.toml``, by default into the library of this host; return it with that name.

    Raises PermissionDeniedError where only root may write there, RefusedError for a profile in the library that was
    not imported, UsageError for another ending and for a name that no profile may have.
    """
    target = path or LOCAL_PROFILES / f"{found.name}.toml"
    if path is None:
        if os.geteuid() != 0:
            raise PermissionDeniedError(
                f"{target}: only root may write there", hint=f"-o {target.stem}.toml writes it here"
            )
        LOCAL_PROFILES.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.read_bytes().startswith(b"# Imported from "):
            raise RefusedError(
                f"{target}: is there, and was not imported", hint="move it away, or write elsewhere with -o"
            )
    named = msgspec.structs.replace(found, name=checked_name(target.stem))
    toml = render_profile(named)
    if target.suffix != ".toml":
        raise UsageError(f"{target}: a profile's file is NAME.toml")
    write_output(target, toml)
    return named, target


def place_in_library(path: Path) -> Path | None:
    """Return where a profile's file has to lie for the library of this host to have it; None for one that is there."""
    return None if path.parent.resolve() == LOCAL_PROFILES.resolve() else LOCAL_PROFILES / path.name


def list_importable(host: Host | None = None) -> Mapping[str, str]:
    """Return the file of each source that can be imported by name from ``host``, by default this one."""
    return list_installed(host or live_host())
