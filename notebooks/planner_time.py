#!/usr/bin/env python3
"""Plots planning time against the number of buffers, of synthetic and real steps. Needs matplotlib.

    build/tidepool_bench --benchmark_filter='one_pass|tide_pool' --benchmark_out=synthetic.json
    build/tidepool pack traces/samples/*.tide --pool one-pass,tide-pool --json > real.jsonl
    notebooks/planner_time.py synthetic.json real.jsonl -o planner_time.svg
"""

import argparse
import json
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SECONDS_PER = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def synthetic(path):
    """(buffers, seconds) by planner, from Google Benchmark's JSON; medians where runs were repeated."""
    points = defaultdict(dict)
    with open(path, encoding="utf-8") as file:
        runs = json.load(file)["benchmarks"]
    for run in runs:
        planner, buffers = run["run_name"].split("/")[:2]
        if run["run_type"] == "iteration" or run["aggregate_name"] == "median":
            points[planner][int(buffers)] = run["cpu_time"] * SECONDS_PER[run["time_unit"]]
    return {planner: sorted(cost.items()) for planner, cost in points.items()}


def real(path):
    """(buffers, seconds) by planner, from the lines of `tidepool pack --json`."""
    points = defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for line in file:
            packing = json.loads(line)
            points[packing["pool"].replace("-", "_")].append((packing["buffers"], packing["wall_ns"] * 1e-9))
    return points


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("synthetic", help="Google Benchmark's JSON")
    parser.add_argument("real", help="lines of tidepool pack --json")
    parser.add_argument("-o", "--output", default="planner_time.svg", help="SVG, PNG or PDF")
    arguments = parser.parse_args()

    figure, axes = plt.subplots(figsize=(7, 4.5))
    recorded = real(arguments.real)
    for planner, points in synthetic(arguments.synthetic).items():
        (line,) = axes.loglog(*zip(*points), marker="o", label=f"{planner}, synthetic")
        if recorded[planner]:
            axes.loglog(*zip(*recorded[planner]), "x", color=line.get_color(), label=f"{planner}, recorded steps")
    axes.set_xlabel("buffers")
    axes.set_ylabel("seconds")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(arguments.output)


if __name__ == "__main__":
    main()
