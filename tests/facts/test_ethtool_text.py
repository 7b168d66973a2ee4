"""What ethtool prints, also where it is broken: every captured text against what is true of it."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Callable, Mapping
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.facts.network import ethtool_text
from advisor.facts.network.ethtool_text import (
    kernel_feature_names,
    parse_ethtool_channels,
    parse_ethtool_coalesce,
    parse_ethtool_driver,
    parse_ethtool_features,
    parse_ethtool_pause,
    parse_ethtool_rings,
    parse_ethtool_settings,
    settings_speed_mbps,
)
from advisor.host import Missing
from tests.captured import captured_file, truth_rows

PARSERS = [getattr(ethtool_text, name) for name in dir(ethtool_text) if name.startswith("parse_ethtool_")]

RINGS = """\
Ring parameters for eth0:
Pre-set maximums:
RX:\t\t4096
RX Mini:\tn/a
RX Jumbo:\tn/a
TX:\t\t4096
TX push buff len:\tn/a
Current hardware settings:
RX:\t\t1024
RX Mini:\tn/a
RX Jumbo:\tn/a
RX Buf Len:\t\tn/a
CQE Size:\t\tn/a
TX Push:\toff
TX:\t\t512
"""
CHANNELS = """\
Channel parameters for ens5:
Pre-set maximums:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\t1
Combined:\t8
Current hardware settings:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\t1
Combined:\t4
"""


def answer(parsed: object) -> Mapping[str, object]:
    assert isinstance(parsed, dict), parsed
    return parsed


def test_rings() -> None:
    rings = answer(parse_ethtool_rings(RINGS))
    assert (rings["rx"], rings["rx_max"], rings["tx"], rings["tx_max"]) == (1024, 4096, 512, 4096)
    assert rings["rx_jumbo_max"] == 0


def test_channels() -> None:
    channels = answer(parse_ethtool_channels(CHANNELS))
    assert (channels["combined"], channels["combined_max"]) == (4, 8)
    assert (channels["rx"], channels["tx_max"], channels["other"]) == (0, 0, 1)


def test_a_truncated_text_gives_what_it_still_holds() -> None:
    assert answer(parse_ethtool_rings(RINGS.partition("Current")[0])).keys() == {
        *("rx_max", "rx_mini_max", "rx_jumbo_max", "tx_max")
    }


def test_values_before_the_sections_belong_to_neither() -> None:
    assert isinstance(parse_ethtool_rings("Ring parameters for eth0:\nRX: 5\nTX: 5\n"), Missing)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("Cannot get device ring settings: Operation not supported\n", "absent"),
        ("netlink error: Operation not supported\n", "absent"),
        ("netlink error: No such device\n", "absent"),
        ("ethtool: bad command line argument(s)\nFor more information run ethtool -h\n", "unreadable"),
        ("Cannot get device ring settings: Operation not permitted\n", "unreadable"),
        ("", "unreadable"),
    ],
)
def test_a_refusal_keeps_ethtools_own_words(text: str, state: str) -> None:
    refused = parse_ethtool_rings(text)
    assert isinstance(refused, Missing)
    assert refused.state == state
    assert refused.why == (text.splitlines()[0] if text else "ethtool printed no ring sizes")


def test_driver() -> None:
    text = "driver: ena\nversion: 2.8.0g\nfirmware-version: \nbus-info: 0000:00:05.0\nsupports-statistics: yes\n"
    driver = answer(parse_ethtool_driver(text))
    assert driver == {
        "driver": "ena",
        "version": "2.8.0g",
        "firmware": "",
        "bus": "0000:00:05.0",
        "supports-statistics": True,
    }


def test_features_that_wait_for_something_are_off() -> None:
    text = "Features for bond0:\ngeneric-segmentation-offload: off [requested on]\ntx-lockless: on [fixed]\n"
    assert parse_ethtool_features(text) == {"generic-segmentation-offload": False, "tx-lockless": True}


def test_feature_names_become_the_kernels() -> None:
    text = (
        "Features for eth0:\nrx-checksumming: on\ntx-checksumming: on\n\ttx-checksum-ip-generic: on\n"
        "scatter-gather: on\n\ttx-scatter-gather: on\n\ttx-scatter-gather-fraglist: off [fixed]\n"
        "tcp-segmentation-offload: off\n\ttx-tcp-segmentation: off\n\ttx-tcp6-segmentation: on\n"
        "generic-receive-offload: on\nlarge-receive-offload: off [fixed]\nrx-vlan-offload: on\nhw-tc-offload: off\n"
    )
    assert kernel_feature_names(answer(parse_ethtool_features(text))) == {  # type: ignore[arg-type]
        "hw-tc-offload": False,
        "rx-checksum": True,
        "rx-gro": True,
        "rx-lro": False,
        "rx-vlan-hw-parse": True,
        "tx-checksum-ip-generic": True,
        "tx-scatter-gather": True,
        "tx-scatter-gather-fraglist": False,
        "tx-tcp-segmentation": False,
        "tx-tcp6-segmentation": True,
    }


def test_a_summary_that_stands_alone_is_kept() -> None:
    text = "Offload parameters for eth0:\nrx-checksumming: on\ntx-checksumming: on\ntcp segmentation offload: on\n"
    printed = parse_ethtool_features(text)
    assert not isinstance(printed, Missing)
    assert kernel_feature_names(printed) == {"rx-checksum": True, "tx-checksumming": True, "tx-tcp-segmentation": True}


def test_coalesce_without_values_leaves_them_out() -> None:
    text = "Adaptive RX: on  TX: n/a\nrx-usecs: 20\ntx-usecs: n/a\nCQE mode RX: off  TX: on\n"
    assert parse_ethtool_coalesce(text) == {
        "adaptive-rx": True,
        "rx-usecs": 20,
        "cqe-mode-rx": False,
        "cqe-mode-tx": True,
    }


def test_settings_keep_every_printed_line() -> None:
    text = (
        "Settings for eth0:\n\tSupported link modes:   10baseT/Half 10baseT/Full\n\t               1000baseT/Full\n"
        "Cannot get wake-on-lan settings: Operation not permitted\n\t   not a value\n\tSpeed: 25000Mb/s\n"
    )
    settings = parse_ethtool_settings(text)
    assert settings == {
        "Supported link modes": ("10baseT/Half 10baseT/Full", "1000baseT/Full"),
        "Speed": ("25000Mb/s",),
    }
    assert settings_speed_mbps(settings) == 25000


def test_an_unknown_speed_is_none() -> None:
    assert settings_speed_mbps({"Speed": ("Unknown!",)}) is None
    assert settings_speed_mbps({}) is None


@given(st.lists(st.sampled_from([*RINGS.splitlines(), *CHANNELS.splitlines(), "RX: -1", "RX:", "TX: 9" * 30, "\0"])))
def test_no_order_of_lines_gives_a_number_that_was_not_printed(lines: list[str]) -> None:
    parsed = parse_ethtool_rings("\n".join(lines))
    if isinstance(parsed, dict):
        assert set(parsed.values()) <= {0, 512, 1024, 4096, 1, 4, 8}


# --- the captured texts -------------------------------------------------------------------------------------------


@cache
def texts() -> Mapping[str, str]:
    """Captured outputs of ethtool by file name."""
    found = {}
    with tarfile.open(captured_file("cmd/insights_cmds.tar.xz")) as tar:
        for member in tar:
            opened = tar.extractfile(member) if "/ethtool/" in f"/{member.name}" else None
            if opened:
                found[member.name.rpartition("/")[2]] = opened.read().decode()
    return found


def _rows() -> list[dict[str, str]]:
    try:
        return [row for row in truth_rows("ethtool_truth") if row["kind"] in (*_PARSER, "?", "-T")]
    except pytest.skip.Exception:
        return []


def _plain(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _first_lines(settings: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {name: lines[0] for name, lines in settings.items()}


# Truth names every value as ethtool prints it; these bring our names and types back to that.
_BACK: Mapping[str, Mapping[str, str]] = {
    "-a": {
        "autoneg": "Autonegotiate",
        "rx": "RX",
        "tx": "TX",
        "rx_negotiated": "RX negotiated",
        "tx_negotiated": "TX negotiated",
    },
    "-g": {
        f"{own}{ending}": f"{side}.{printed}"
        for own, printed in {"rx": "RX", "rx_mini": "RX Mini", "rx_jumbo": "RX Jumbo", "tx": "TX"}.items()
        for ending, side in {"": "cur", "_max": "max"}.items()
    },
    "-i": {"firmware": "firmware-version", "bus": "bus-info"},
}
_PARSER: Mapping[str, Callable[[str], object]] = {
    "-a": parse_ethtool_pause,
    "-c": parse_ethtool_coalesce,
    "-g": parse_ethtool_rings,
    "-i": parse_ethtool_driver,
    "-k": parse_ethtool_features,
    "(none)": parse_ethtool_settings,
}


@pytest.mark.captured
@pytest.mark.parametrize("row", _rows(), ids=lambda row: str(row["file"]))
def test_captured_text(row: Mapping[str, str]) -> None:
    text, kind = texts()[row["file"]], row["kind"]
    # Time stamping (-T) is not a fact of advisor, so its text is as strange to every parser as a refusal.
    if kind in ("?", "-T"):
        for parser in PARSERS:
            assert isinstance(parser(text), Missing), parser.__name__
        return
    parsed = _PARSER[kind](text)
    assert isinstance(parsed, Missing) == bool(int(row["is_error"])), parsed
    expected = json.loads(row["facts"])
    if kind == "-k":
        # We keep whether a feature is on, not that it is fixed.
        expected = {name: value.split()[0] for name, value in expected.items()}
    found = {} if isinstance(parsed, Missing) else _as_printed(kind, answer(parsed))
    assert found == expected | {name: "0" for name, value in expected.items() if value == "n/a"}


def _as_printed(kind: str, parsed: Mapping[str, object]) -> dict[str, str]:
    if kind == "(none)":
        return _first_lines({name: lines for name, lines in parsed.items() if isinstance(lines, tuple)})
    names = _BACK.get(kind, {})
    words = {names.get(name, name): _plain(value) for name, value in parsed.items()}
    if kind == "-i":
        return {name: {"on": "yes", "off": "no"}.get(value, value) for name, value in words.items()}
    return words


@pytest.mark.captured
def test_every_captured_text_has_a_row() -> None:
    assert set(texts()) == {row["file"] for row in truth_rows("ethtool_truth")}
    assert all(re.fullmatch(r"-\w|--show-priv-flags|\(none\)|\?", row["kind"]) for row in truth_rows("ethtool_truth"))
