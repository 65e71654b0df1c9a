"""Plots of results; each draws into given axes and returns them. Needs matplotlib."""

from __future__ import annotations

import matplotlib.pyplot
import pandas

GIB = 2**30


def label_lines(axes, size: float = 8):
    """Writes each line's name to the left of its first point, in its colour. Overlapping names are moved down."""
    left, right = axes.dataLim.intervalx
    axes.set_xlim(left - 0.33 * (right - left), right + 0.04 * (right - left))
    axes.figure.canvas.draw()  # positions of points are known after drawing
    named = [line for line in axes.lines if not line.get_label().startswith("_") and len(line.get_xdata()) > 0]
    first = {line: (line.get_xdata()[0], line.get_ydata()[0]) for line in named}
    height = {line: axes.transData.transform(point)[1] * 72 / axes.figure.dpi for line, point in first.items()}
    bottom = axes.bbox.y0 * 72 / axes.figure.dpi + size  # above the axis with its numbers
    free = float("inf")
    for line in sorted(named, key=lambda line: -height[line]):
        free = max(bottom, min(height[line], free - 1.25 * size))
        axes.annotate(line.get_label(), first[line], xytext=(-size, free - height[line]), textcoords="offset points",
                      fontsize=size, color=line.get_color(), ha="right", va="center", annotation_clip=False)
    return axes


def frontier(rows: pandas.DataFrame, axes=None):
    """Overhead against memory, a line for each policy, with the lowest bound of these runs at each capacity and what
    limits it."""
    axes = axes if axes is not None else matplotlib.pyplot.subplots(figsize=(7, 4))[1]
    share = rows["capacity_bytes"] / rows["ideal_peak_bytes"]
    rows = rows.assign(share=share, overhead=100 * (rows["overhead_ratio"] - 1))
    for name, of_policy in rows[rows["outcome"] == "ok"].groupby("policy"):
        best = of_policy.groupby("share")["overhead"].min()
        axes.plot(best.index, best.to_numpy(), marker="o", markersize=4, label=name)
    if "bound_ns" in rows:
        bounded = rows[rows["bound_ns"].notna()].reset_index(drop=True)
        bounded = bounded.assign(least=100 * (bounded["bound_ns"] / bounded["baseline_ns"] - 1))
        lowest = bounded.loc[bounded.groupby("share")["least"].idxmin()]
        if len(lowest) > 0:
            axes.plot(lowest["share"], lowest["least"], color="black", linestyle=":", label="no plan is below")
        for marker, (resource, points) in zip("x+1234", lowest.groupby("limited_by")):
            axes.plot(points["share"], points["least"], color="black", linestyle="", marker=marker,
                      label=f"limited by {resource}")
    axes.set(xlabel="capacity, times the ideal peak", ylabel="overhead, %", yscale="symlog")
    axes.set_ylim(bottom=0)
    return label_lines(axes)


def memory(trace, axes=None):
    """Bytes alive over the steps of a program."""
    axes = axes if axes is not None else matplotlib.pyplot.subplots(figsize=(7, 3))[1]
    axes.fill_between(range(len(trace.live_bytes)), trace.live_bytes / GIB, step="post")
    axes.set(xlabel="step of the program", ylabel="alive, GiB")
    return axes
