"""Requests from the pages of the kernel's trace of block events, and what they are like as a load."""

from __future__ import annotations

import base64
import json
import random
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from advisor.host.trace_instance import sum_lost
from advisor.observe.load import LoadFigures, joint_sizes, measure_load, total_variation
from advisor.observe.tracing import (
    COMPLETE,
    INSERT,
    ISSUE,
    BlockRequest,
    PageLayout,
    RequestMatcher,
    decode_pages,
    make_layout,
    parse_event_id,
)
from tests.known import known
from tests.observe.trace import NAMES, Event, layout, page_of

# Pages of Linux 6.18 with what the kernel itself printed of them: fio on a loop device with mq-deadline.
CAPTURED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "fixtures/block-trace.json").read_text())
PRINTED = re.compile(
    r".{16}-([0-9]+) .* ([0-9]+)[.]([0-9]{6}): (block_rq_[a-z]+): 7,1 ([A-Z]+) .*[)] ([0-9]+) [+] ([0-9]+) "
)


def captured_pages() -> list[list[bytes]]:
    return [[base64.b64decode(page).ljust(4096, b"\0") for page in cpu] for cpu in CAPTURED["pages"]]


def captured_layout() -> PageLayout:
    return make_layout(CAPTURED["header_page"], list(CAPTURED["formats"].values()))


def test_pages_of_a_kernel_say_what_it_printed_itself() -> None:
    names = {parse_event_id(text): name.rpartition("/")[2] for name, text in CAPTURED["formats"].items()}
    events = sorted(one for pages in captured_pages() for one in decode_pages(captured_layout(), pages))
    found = [
        (pid, round(at / 1000), names[number], letters.partition(b"\0")[0].decode(), sector, sectors)
        for at, number, pid, _, sector, sectors, letters in events
    ]
    printed = []
    for line in CAPTURED["text"]:
        match = PRINTED.match(line)
        assert match
        pid, seconds, micro, name, letters, sector, sectors = match.groups()
        printed.append((int(pid), int(seconds + micro), name, letters, int(sector), int(sectors)))
    assert [one[0:1] + one[2:] for one in found] == [one[0:1] + one[2:] for one in printed]
    assert all(abs(one[1] - other[1]) <= 1 for one, other in zip(found, printed, strict=True))


def test_captured_requests_are_matched_across_cpus() -> None:
    numbers = {parse_event_id(text): name for name, text in CAPTURED["formats"].items()}
    matcher = RequestMatcher(captured_layout(), {number: name for number, name in numbers.items() if number})
    matcher.add_pages(captured_pages())
    matcher.finish()
    disk = matcher.devices["7,1"]
    assert [(one.is_write, one.size_bytes) for one in disk.requests[:4]] == [
        (False, 4096),
        (True, 4096),
        (False, 16384),
        (True, 4096),
    ]
    # By the printed times of the first: 77062.102855 and .102948.
    assert disk.requests[0].seconds == pytest.approx(93e-6, abs=2e-6)
    assert (len(disk.requests), len(disk.flushes), disk.unmatched) == (14, 2, 0)
    # Printed: 77062.154612 to .154622.
    assert disk.flushes[0][1] - disk.flushes[0][0] == pytest.approx(10e-6, abs=2e-6)


def match_events(*cpus: Sequence[Event]) -> RequestMatcher:
    matcher = RequestMatcher(layout(), NAMES)
    matcher.add_pages([[page_of(events)] for events in cpus])
    matcher.finish()
    return matcher


def test_a_write_that_is_durable_by_itself() -> None:
    matcher = match_events(
        [
            Event(0, ISSUE, 4096, 32, "WFS", pid=812),
            Event(250, COMPLETE, 4096, 32, "WFS"),
            # The flush after it is completed by itself, in the name of the write.
            Event(260, COMPLETE, 4096, 0, "WFS"),
            Event(300, COMPLETE, 999, 64, "D"),
            Event(310, ISSUE, 0, 0, "FF"),
            Event(340, COMPLETE, (1 << 64) - 1, 0, "FF"),
        ]
    )
    found = matcher.devices["8,16"]
    assert [(one.pid, one.is_write, one.size_bytes) for one in found.requests] == [(812, True, 16384)]
    assert (found.durable_writes, found.discards, found.unmatched) == (1, 1, 0)
    assert [round((end - began) * 1e6) for began, end in found.flushes] == [30]
    assert matcher.pids == {812}


def test_a_merged_request_leaves_no_beginning_to_a_later_one() -> None:
    # The second is merged into the first, which ends with the size of both; its sector is written again later.
    found = match_events(
        [
            *(Event(1000, INSERT, 100), Event(1100, INSERT, 108), Event(1200, COMPLETE, 100, 16)),
            *(Event(9000, INSERT, 108), Event(9100, ISSUE, 108), Event(9500, COMPLETE, 108)),
        ]
    ).devices["8,16"]
    assert [(one.sector, one.size_bytes, round(one.seconds * 1e6)) for one in found.requests] == [
        (100, 8192, 200),
        (108, 4096, 500),
    ]


def test_requests_at_the_start_and_read_late() -> None:
    found = match_events([Event(1, COMPLETE, 100), Event(2, ISSUE, 8, letters="FWS")]).devices["8,16"]
    assert (found.unmatched, found.requests) == (1, [])
    # CPU 0 was read before it wrote the beginning, CPU 1 after it wrote the end.
    matcher = RequestMatcher(layout(), NAMES)
    matcher.add_pages([[page_of([Event(1, ISSUE, 8)])], [page_of([Event(20, COMPLETE, 8), Event(30, COMPLETE, 16)])]])
    matcher.add_pages([[page_of([Event(10, ISSUE, 16)])], []])
    matcher.finish()
    found = matcher.devices["8,16"]
    assert ([one.sector for one in found.requests], found.unmatched) == ([8, 16], 0)


def test_times_that_no_delta_holds() -> None:
    head, long = 1 << 60, 200_000_000
    extended = struct.pack("=II", 30 | (long & (1 << 27) - 1) << 5, long >> 27)
    stamped = struct.pack("=II", 31 | 7 << 5, 3)
    # An event that the filter refused, and one too long for the size in its head.
    refused = struct.pack("=III", 29 | 1 << 5, 8, 0xFFFFFFFF)
    body = Event(0, ISSUE, 8).packed()[4:]
    large = struct.pack("=II", 5 << 5, 4 + 120) + body.ljust(120, b"\0")
    page = page_of([Event(1, ISSUE, 1)], at_ns=head, more=extended + refused + large + stamped)
    later = page_of([Event(0, ISSUE, 1)], at_ns=(3 << 27) + 7 + head)
    assert [one[0] - head for one in decode_pages(layout(), [page, later])] == [
        1000,
        1000 + long + 1 + 5,
        (3 << 27) + 7,
    ]
    stamp = page_of([], at_ns=head, more=stamped + Event(0, ISSUE, 1).packed())
    assert [one[0] - head for one in decode_pages(layout(), [stamp])] == [(3 << 27) + 7 + 5]


@pytest.mark.parametrize(
    ("changes", "why"),
    [(("nr_sector", "count"), "nr_sector"), (("ID: ", "id "), "ID"), (("size:8;", "size:7;"), "sector")],
)
def test_a_kernel_with_other_fields_is_no_layout(changes: tuple[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make_layout(CAPTURED["header_page"], [CAPTURED["formats"][ISSUE].replace(*changes)])
    with pytest.raises(ValueError, match="header_page"):
        make_layout("", [])


def test_lost_events_and_distances() -> None:
    text = "entries: 4\noverrun: 5\ncommit overrun: 1\nbytes: 312\ndropped events: 2\nread events: 9\n"
    assert sum_lost(text) == 8
    first = joint_sizes({"read": {"4096": 0.5}, "write": {"4096": 0.5}})
    assert total_variation(first, first) == 0
    assert total_variation(first, joint_sizes({"read": {"4096": 0.5, "8192": 0.5}})) == 0.5


def load_of(*rows: tuple[float, float, int, int], is_write: bool = False) -> LoadFigures:
    return measure_load([BlockRequest(at, took, 1, is_write, sector, size) for at, took, sector, size in rows])


def test_depth_flushes_and_discards() -> None:
    found = load_of((0.0, 2.0, 0, 4096), (1.0, 2.0, 100, 4096), (3.0, 1.0, 200, 8192))
    assert (found.seconds, found.depth_mean, found.depth_max) == (4.0, 5 / 4, 2)
    assert found.sizes == {"read": {"4096": 2 / 3, "8192": 1 / 3}, "write": {}}
    rows = [BlockRequest(number * 0.1, 0.001, 1, True, number * 50, 512) for number in range(100)]
    found = measure_load(rows, flushes=[(0.0, 0.1)] * 25, discards=100, durable_writes=10)
    assert (found.flushes_per_write, found.discard_share, found.durable_share) == (0.25, 0.5, 0.1)


def test_order_of_streams_and_of_random_requests() -> None:
    rows = [(number * 1e-3, 5e-4, (number % 3) * 10**6 + number // 3 * 8, 4096) for number in range(600)]
    found = load_of(*rows)
    assert found.sequential["read"] == pytest.approx(1 - 3 / 600)
    assert found.streams == 3
    chance = random.Random(1)
    found = load_of(*[(number * 1e-3, 5e-4, chance.randrange(10**6) * 8, 4096) for number in range(600)])
    assert (found.sequential["read"], found.streams) == (0.0, 1)
    assert found.zones == pytest.approx([0.05] * 20, abs=0.04)


def test_bursts_latency_and_threads_of_a_load() -> None:
    times = [(burst * 0.1 + number * 1e-4, 5e-5, number * 99, 4096) for burst in range(10) for number in range(20)]
    bursts = known(load_of(*times).bursts)
    assert (bursts.count, bursts.requests, bursts.requests_spread) == (10, 20, 0.0)
    assert bursts.pause_us == pytest.approx(98_050, abs=1)
    rows = [BlockRequest(number * 0.1, (number + 1) / 1000, 1, number >= 50, number * 50, 512) for number in range(100)]
    found = measure_load(rows, flushes=[(0.0, 0.1)] * 25, discards=100).latency
    assert (found["read"].p50_us, found["write"].p50_us) == pytest.approx((25_000, 75_000))
    assert found["all"].p99_us == pytest.approx(99_000)
    assert sum(found["all"].bins.values()) == 100
    rows = [BlockRequest(float(at), us / 1e6, 1, False, at, 512) for at, us in enumerate((0.3, 1.0, 1.05, 2.0, 8.1))]
    assert measure_load(rows).latency["all"].bins == {"1": 2, "1.091": 1, "2": 1, "8.724": 1}
    # Each of them asks once: nobody waits between two requests.
    for count in (2, 8, 40):
        rows = [BlockRequest(at / 1e3, 1e-4, 100 + at, False, at * 8, 4096) for at in range(count)]
        assert measure_load(rows).threads is None


@pytest.mark.parametrize("rows", [[], [(0.0, 1.0, 0, 512)], [(0.0, 0.0, 0, 512), (0.0, 0.0, 1, 512)]])
def test_too_few_are_no_load(rows: list[tuple[float, float, int, int]]) -> None:
    with pytest.raises(ValueError, match="request"):
        load_of(*rows)
