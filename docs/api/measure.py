"""Measure two patterns at one and at eight threads, for at most ten minutes."""

from pathlib import Path

from advisor.operations import measure

settings = measure.choose_settings(target=Path("."), quick=True, budget=600, save=Path("series.json"))
workloads = measure.choose_workloads(["infoscale.4k-rand-r100"], threads="1,8")
print(workloads)


def measure_twice() -> None:
    """Run fio, and compare the series with an earlier one."""
    series = measure.measure_series(settings, workloads, progress=print)
    print(series.quality)
    print(measure.compare_results(Path("earlier.json"), Path("series.json")))
