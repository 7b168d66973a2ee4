"""One file is a kind of tunable: what each says of its examples, its capture and its files below /sys holds."""

from __future__ import annotations

import re

import pytest

from advisor.host import ReadFile
from advisor.tunables import Kind, all_kinds, find_kind, parse_tunable
from tests.fleet.captures import is_captured


@pytest.mark.parametrize("kind", all_kinds(), ids=lambda kind: kind.name)
def test_a_kind_is_whole(kind: Kind) -> None:
    for identity, value in kind.examples:
        assert find_kind(identity) is kind
        assert parse_tunable(identity).id == identity
        assert parse_tunable(identity).check_value(value) is None, f"{identity} refuses its example {value}"
    assert kind.noun


@pytest.mark.parametrize("kind", [kind for kind in all_kinds() if kind.capture], ids=lambda kind: kind.name)
def test_a_capture_holds_what_the_examples_of_a_kind_read(kind: Kind) -> None:
    assert kind.capture is not None
    named = [identity for identity in kind.capture.values if "*" not in identity] or [kind.examples[0][0]]
    read = [parse_tunable(identity).probe for identity in named]
    missing = [one.path for one in read if isinstance(one, ReadFile) and not is_captured(one.path)]
    assert not missing, f"{kind.name}: the kind's capture does not hold {missing}"


@pytest.mark.parametrize("kind", [kind for kind in all_kinds() if kind.sysfs], ids=lambda kind: kind.name)
def test_a_file_below_sys_leads_to_its_kind(kind: Kind) -> None:
    read = [parse_tunable(identity).probe for identity, _ in kind.examples]
    for one in (one for one in read if isinstance(one, ReadFile) and one.path.startswith("/sys/")):
        owners = [found.expand(to) for pattern, to in kind.sysfs if (found := re.fullmatch(pattern, one.path))]
        assert "/queues/" in one.path or [parse_tunable(name).probe for name in owners] == [one]
