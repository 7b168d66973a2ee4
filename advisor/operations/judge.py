"""Lines of an article or a colleague, judged on a host. Nothing of them is ever run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from advisor.errors import InvalidInputError
from advisor.facts.host_facts import Facts, scan
from advisor.host import Host, live_host
from advisor.host.files import open_given
from advisor.host.provenance import Provenance, read_provenance
from advisor.importers.pasted.forms import read_pasted
from advisor.importers.source import MAX_BYTES as MAX_BYTES
from advisor.importers.source import decode
from advisor.operations.muting import mute_findings
from advisor.recommend import declared, outlooks
from advisor.recommend.verdicts import JudgedText, judge_texts
from advisor.rules.judged import judge


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
