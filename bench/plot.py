"""The plot of warm placement times against the size of the cluster."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from bench.report import Results
from bench.timing import say


def draw(results: Results, file: Path) -> None:
    """Draw both sides and numpy's lower bound, or print that matplotlib is missing."""
    try:
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
    except ModuleNotFoundError:
        say("*** matplotlib is not installed: no plot is drawn. It is in the dependency group `bench`.")
        return
    pyplot.rcParams["svg.hashsalt"] = "coterie"  # the same numbers give the same file
    figure, axes = pyplot.subplots(figsize=(7.2, 4.4), layout="constrained")
    nodes = [one.nodes for one in results.comparisons]
    ours = [[line.warm_us for line in one.lines] for one in results.comparisons]
    theirs = [[line.kueue_warm_us for line in one.lines if line.kueue_warm_us] for one in results.comparisons]
    _band(axes, nodes, ours, "Coterie", "#0072b2")
    if all(theirs):
        _band(axes, nodes, theirs, f"Kueue {results.comparisons[0].kueue_version}", "#d55e00")
    axes.plot(nodes, [one.numpy_us for one in results.comparisons], "--", color="#666666", label="one numpy pass")
    axes.set(xscale="log", yscale="log", xlabel="nodes", ylabel="microseconds per placement, warm")
    axes.set_xticks(nodes, [f"{count:,}" for count in nodes])
    axes.minorticks_off()
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False)
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
    pyplot.close(figure)


def _band(axes: Any, nodes: list[int], times: list[list[float]], name: str, colour: str) -> None:  # noqa: ANN401 - matplotlib's types are not installed where it is not
    """Draw the fastest and the slowest request as the edges of a band."""
    low, high = [min(each) for each in times], [max(each) for each in times]
    axes.fill_between(nodes, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(nodes, high, "o-", color=colour, markersize=3.5, label=name)
    axes.plot(nodes, low, "-", color=colour, linewidth=0.8)
