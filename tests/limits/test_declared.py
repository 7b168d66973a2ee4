"""``--volumes FILE``: TOML of our own and what AWS prints; what is wrong is reported with its field."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InvalidInputError
from advisor.limits.declared import Declared, DeclaredVolume, Quota, parse_declared, read_declared
from advisor.limits.media import medium_of
from tests.cases import read_cases
from tests.known import known

DATA = read_cases(__file__)

GOOD = DATA["GOOD"]


def test_toml() -> None:
    found = parse_declared(GOOD, "v.toml")
    first, second = found.volume
    assert (first.type, first.gib, first.iops, first.mib_per_s) == ("gp3", 100, 16000, 1000)
    assert (second.device, second.read_mb_per_s, second.write_mb_per_s) == ("nvme3n1", 3200, 1300)
    assert (found.instance_type, found.quota and found.quota.iops, found.where) == ("m4.large", 600_000, "v.toml")


def test_what_aws_prints() -> None:
    """Unknown keys are AWS's own; the IOPS that it gives a gp2 volume follow from its size and are left out."""
    volume = {"VolumeId": "vol-0abc1234", "Size": 5, "VolumeType": "gp2", "Iops": 100, "Encrypted": False, "Tags": []}
    other = {"VolumeId": "vol-0abc1235", "Size": 9, "VolumeType": "gp3", "Iops": 4000, "Throughput": 250}
    shared = {"VolumeId": "vol-0abc1236", "Size": 9, "VolumeType": "io2", "Iops": 400, "MultiAttachEnabled": True}
    text = json.dumps({"Volumes": [volume, other, shared], "NextToken": "x"}).encode()
    first, second, third = parse_declared(text, "v.json").volume
    assert (first.multi_attach, third.multi_attach) == (None, True)
    medium = medium_of(third, "v.json")
    assert medium is not None
    assert "Multi-Attach" in medium.why
    assert (first.volume_id, first.type, first.gib, first.iops) == ("vol-0abc1234", "gp2", 5, None)
    assert (second.iops, second.mib_per_s) == (4000, 250)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[volume]]\ntype='gp2'\ngib=5", r"volume\[0\].device: neither"),
        ("[[volume]]\ndevice='a'\ntype='gp9'\ngib=5", r"field volume\[0\].type|field volume\[...\].type"),
        ("[[volume]]\ndevice='a'\ntype='gp2'", r"volume\[0\].gib: .*needs its size"),
        ("[[volume]]\ndevice='a'\ntype='gp2'\ngib=0", r"gib"),
        ("[[volume]]\ndevice='a'\ntype='gp3'\ngib=5\nmulti-attach=true", r"multi-attach: .*has none"),
        ("[[volume]]\ndevice='a'\ntype='gp2'\ngib=5\niops=5", r"volume\[0\].iops: a volume of type gp2 has none"),
        ("[[volume]]\ndevice='a'\ntype='gp3'\ngib=5\niops=80001", r"volume\[0\].iops: 80,001 is more"),
        ("[[volume]]\ndevice='a'\ntype='gp3'\ngib=5\nthroughput-mib-per-s=2001", r"2,001 is more"),
        ("[[volume]]\ndevice='a'\ntype='gp3'\ngib=5\nspeed=1", r"speed: there is no such field"),
        ("[[volume]]\ndevice='a'\ntype='drive'\ngib=5", r"volume\[0\].gib: a volume of type drive has none"),
        ("[[volume]]\ndevice='a'\ntype='drive'\nread-mb-per-s=-1", r"read-mb-per-s"),
        ("[[volume]]\ndevice='a'\ntype='drive'\nread-mb-per-s=nan", r"volume"),
        ("[[volume]]\nvolume-id='../../etc'\ntype='gp2'\ngib=5", r"volume-id"),
        ("[[volume]]\ndevice='a'\ntype='drive'\n" * 2, r"volume\[1\]: a is declared twice"),
        ("where='x'", r"field where: there is no such field"),
        ("volume=3", r"field volume"),
        ("x" * 10, r"not valid TOML"),
        ('{"Volumes": [{"VolumeId": "vol-0abc1234"}]}', r"(?i)volume.?type: it is missing"),
        ('{"Volumes": 3}', r"Volumes"),
        ("{}", r"Volumes: it is missing"),
        ("{", r"not valid JSON"),
    ],
)
def test_what_is_wrong_is_told_with_its_field(text: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        parse_declared(text.encode(), "v")
    assert caught.value.message.startswith("v: ")
    assert caught.value.exit_code == 2


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))))
def test_nothing_but_an_error_comes_of_noise(data: bytes) -> None:
    with contextlib.suppress(InvalidInputError):
        assert parse_declared(data, "v").where == "v"


def test_a_pipe_or_nothing_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "absent", "."):
        with pytest.raises(InvalidInputError):
            read_declared(tmp_path / name)


def test_the_example_of_the_documentation_is_valid_and_names_every_field() -> None:
    text = (Path(__file__).parents[2] / "docs/limits.md").read_text()
    example = known(re.search(r"```toml\n(.*?)```", text, re.DOTALL))
    assert {one.type for one in parse_declared(example[1].encode(), "docs").volume} == {
        "gp3",
        "Premium_LRS",
        "pd-ssd",
        "drive",
    }
    for record in (Declared, DeclaredVolume, Quota):
        for field in msgspec.structs.fields(record):
            assert field.encode_name in {"where", "measured"} or field.encode_name in example[1]
