"""What the kernel, tc and ethtool print about links, as Python and as the rollback script read it."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from advisor.facts.network.ethtool_text import (
    kernel_feature_names,
    parse_ethtool_channels,
    parse_ethtool_coalesce,
    parse_ethtool_features,
    parse_ethtool_pause,
    parse_ethtool_rings,
)
from advisor.host import Missing, Probe, ReadEthtool, ReadFile
from advisor.host.ethtool import Answer, answer_key
from advisor.host.kernel_text import cpulist, qdisc
from advisor.host.steps import DriverGroup
from advisor.tunables.link_queues import LinkRps
from tests.captured import captured_file
from tests.cases import cases
from tests.tunables.form_shell import NOTHING, SHELLS, plain, read_batch, read_by_shell

CASES = cases(__file__)

MASK = ReadFile("/dev/stdin", "cpumask")
QDISC = ReadFile("/dev/stdin", "qdisc")


def by_shell(probe: Probe, text: str, shell: list[str] = SHELLS[0]) -> str:
    return read_by_shell(probe, text, shell)


MASKS = {
    "0": "none",
    "00000000,00000000\n": "none",
    "f": "0-3",
    "00000000,0000000F": "0-3",
    "1,00000000": "32",
    "80000001,80000001": "0,31-32,63",
    "5": "0,2",
    "": NOTHING,
    "x": NOTHING,
    "f\nf": NOTHING,
    "-1": NOTHING,
}


@pytest.mark.parametrize(("text", "value"), MASKS.items())
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_mask_of_cpus(text: str, value: str, shell: list[str]) -> None:
    assert (plain(cpulist(text)), by_shell(MASK, text, shell)) == (value, value)


@given(st.integers(0, 1 << 200))
def test_what_is_written_for_a_list_of_cpus_reads_so_again(mask: int) -> None:
    text = f"{mask:x}"
    value = cpulist(text)
    assert isinstance(value, str)
    one = LinkRps("eth1", 0)
    assert one.check_value(value) is None
    words = one.format_value(value).split(",")
    assert "".join(words) == text
    assert all(len(word) == 8 for word in words[1:])


FQ_CODEL = "limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64"
MQ = "qdisc mq {0} root \n" + "".join(f"qdisc fq_codel 0: parent {{1}}:{n} {FQ_CODEL} \n" for n in (2, 1))
CLSACT = "qdisc clsact ffff: parent ffff:fff1 \n"
QDISCS = {
    "qdisc noqueue 0: root refcnt 2 \n": "default noqueue",
    f"qdisc fq_codel 0: root refcnt 2 {FQ_CODEL} \n": f"default fq_codel {FQ_CODEL}",
    MQ.format("0:", ""): f"default mq fq_codel {FQ_CODEL}",
    MQ.format("0:", "") + CLSACT: f"default mq fq_codel {FQ_CODEL}",
    "qdisc pfifo_fast 0: root refcnt 5 bands 3 priomap 1 2 2 2\n": "default pfifo_fast bands 3 priomap 1 2 2 2",
    # Ours: its handle says that it has no parameters of its own.
    "qdisc fq ad4: root refcnt 5 limit 10000p flow_limit 100p\n": "fq",
    "qdisc fq_codel ad5: root refcnt 5 limit 10240p\n" + CLSACT: "fq_codel",
    # Somebody's: whether 10000p is the default or was asked for is unknown.
    "qdisc fq 8001: root refcnt 5 limit 10000p flow_limit 100p\n": NOTHING,
    "qdisc fq ad5: root refcnt 5 limit 10000p\n": NOTHING,
    "qdisc htb 1: root refcnt 5 r2q 10 default 0x10\n": NOTHING,
    "qdisc htb ad4: root refcnt 5 r2q 10 default 0x10\n": NOTHING,
    MQ.format("ad4:", "ad4"): NOTHING,
    MQ.format("1:", "1"): NOTHING,
    MQ.format("0:", "") + "qdisc fq 8002: parent :3 limit 5p\n": NOTHING,
    MQ.format("0:", "") + "qdisc pfifo_fast 0: parent :3 bands 3\n": NOTHING,
    "qdisc mqprio 0: root tc 2 map 0 1\n             queues:(0:3) (4:7)\n": NOTHING,
    "qdisc mq 0: root\n": "default mq",
    # Down since it was made.
    "qdisc noop 0: root refcnt 2 \n": NOTHING,
    CLSACT: NOTHING,
    "": NOTHING,
    "qdisc fq\n": NOTHING,
}


@pytest.mark.parametrize(("text", "value"), QDISCS.items())
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_root_qdisc_that_can_be_put_back(text: str, value: str, shell: list[str]) -> None:
    found = qdisc(text)
    assert (plain(found), by_shell(QDISC, text, shell)) == (value, value)
    assert isinstance(found, str) or found.state == "unreadable"


KEYS: Mapping[DriverGroup, tuple[str, ...]] = {
    "rings": ("rx", "rx-mini", "rx-jumbo", "tx"),
    "channels": ("rx", "tx", "other", "combined"),
    "coalesce": ("rx-usecs", "rx-frames", "tx-usecs", "tx-frames", "adaptive-rx", "adaptive-tx"),
    "pause": ("autoneg", "rx", "tx"),
}
PARSERS = {
    "rings": parse_ethtool_rings,
    "channels": parse_ethtool_channels,
    "coalesce": parse_ethtool_coalesce,
    "pause": parse_ethtool_pause,
}


@cache
def captured() -> tuple[tuple[str, str], ...]:
    """Name and text of each captured output of ethtool."""
    with tarfile.open(captured_file("cmd/insights_cmds.tar.xz")) as archive:
        files = {one.name: archive.extractfile(one) for one in archive if one.name.startswith("ethtool/")}
        return tuple((name, file.read().decode()) for name, file in sorted(files.items()) if file)


def expected(group: DriverGroup, text: str) -> Iterator[tuple[str, str]]:
    answer = features(text) if group == "features" else PARSERS[group](text)
    for key in features(text) if group == "features" else KEYS[group]:
        value = None if isinstance(answer, Missing) else answer.get(answer_key(group, key))
        yield key, NOTHING if value is None else str(value) if not isinstance(value, bool) else "on" if value else "off"


SUMMARIES = {"tx-checksumming", "scatter-gather", "tcp-segmentation-offload"}


def features(text: str) -> Answer:
    """Without those of which a summary alone is printed, by an old ethtool or where the text is cut: a script finds
    nothing there."""
    printed = parse_ethtool_features(text)
    if isinstance(printed, Missing):
        return {}
    return dict(kernel_feature_names({name: on for name, on in printed.items() if name not in SUMMARIES}))


def agree(group: DriverGroup, text: str) -> int:
    """How many values the script finds; each of them is what the parsers of the facts find."""
    found = 0
    for key, value in expected(group, text):
        ours = by_shell(ReadEthtool("eth0", group, key), text)
        # n/a is 0 to the parser; the script finds nothing, as there is nothing that could be set.
        assert ours == value or (value == "0" and ours == NOTHING), (group, key)
        found += ours != NOTHING
    return found


OTHER_GROUPS: Mapping[DriverGroup, str] = {
    "rings": "Channel |Coalesce |Pause |Features ",
    "channels": "Ring |Coalesce |Pause |Features ",
    "coalesce": "Ring |Channel |Pause |Features ",
    "pause": "Ring |Channel |Coalesce |Features ",
    "features": "Ring |Channel |Coalesce |Pause ",
}
FOUND: Mapping[DriverGroup, int] = {"rings": 6, "channels": 0, "coalesce": 5, "pause": 9, "features": 31}


@pytest.mark.captured
@pytest.mark.parametrize("group", FOUND)
def test_the_script_finds_in_captured_texts_what_the_parsers_find(group: DriverGroup) -> None:
    """Broken and refusing ones among them; not those that answer another question."""
    texts = [text for _, text in captured() if not re.match(OTHER_GROUPS[group], text)]
    assert len(texts) > 15
    assert sum(agree(group, text) for text in texts) >= FOUND[group]


COALESCE = CASES["COALESCE"]
FEATURES = CASES["FEATURES"]


LABELS = ["RX", "TX", "RX Mini", "RX Jumbo", "Other", "Combined", "TX Push", "RX Buf Len"]
COUNTS = st.sampled_from(["n/a", "0", "007", "512", "4096"])
BLOCK = st.lists(st.builds("{}:\t\t{}".format, st.sampled_from(LABELS), COUNTS), max_size=7).map("\n".join)
BOUNDED = st.builds("A:\nPre-set maximums:\n{}\nCurrent hardware settings:\n{}\n".format, BLOCK, BLOCK)


PAUSE = "Pause parameters for a:\nAutonegotiate:\ton\nRX:\t\toff\nRX negotiated: on\nTX:\t\ton\n"
CUT = st.tuples(
    st.sampled_from(["coalesce", "pause", "features"]),
    st.sampled_from([COALESCE, PAUSE, FEATURES]),
    st.integers(0, 300),
).map(lambda drawn: (drawn[0], drawn[1][: drawn[2]]))


def check_batch(where: Path, listed: Iterable[tuple[DriverGroup, str]]) -> None:
    examples: list[tuple[str, Probe]] = []
    wanted: list[str] = []
    for number, (group, text) in enumerate(listed):
        root = where / str(number)
        root.mkdir(exist_ok=True)
        (root / "text").write_text(text)
        for key, value in expected(group, text):
            examples.append((str(root), ReadEthtool("eth0", group, key)))
            wanted.append(value)
    for shell in SHELLS:
        found = read_batch(shell, examples)
        for one, ours, value in zip(examples, found, wanted, strict=True):
            assert ours == value or (value == "0" and ours == NOTHING), (shell[0], one)


@settings(max_examples=3, derandomize=True, database=None)
@example([("features", FEATURES[: FEATURES.index("\n\ttx-tcp")])])
@given(st.lists(st.tuples(st.sampled_from(["rings", "channels"]), BOUNDED) | CUT, min_size=15, max_size=15))
def test_shells_and_parsers_find_the_same(
    tmp_path_factory: pytest.TempPathFactory, listed: list[tuple[DriverGroup, str]]
) -> None:
    check_batch(tmp_path_factory.mktemp("texts"), listed)
