"""Spans of fake hosts: what their files hold at each moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from advisor.host import Host, MemoryFiles, NoCommands
from advisor.observe.sample import CounterSpan, Reading, Sample

Source = Callable[[Host, Reading], None]


def host_with(files: Mapping[str, str]) -> Host:
    return Host(MemoryFiles({path: text.encode() for path, text in files.items()}), NoCommands())


def sample_of(files: Mapping[str, str], read: Source, at_seconds: float = 0.0) -> Sample:
    reading = Reading(at_seconds)
    read(host_with(files), reading)
    return reading.make_sample()


def span_of(read: Source, *moments: Mapping[str, str]) -> CounterSpan:
    """What ``read`` finds in files at moments that are 10 s apart."""
    return CounterSpan([sample_of(files, read, 100.0 + 10 * number) for number, files in enumerate(moments)])
