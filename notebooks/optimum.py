#!/usr/bin/env python3
"""Every policy beside the optimum: time above the proved optimum or bound, and search time, at many points.

    notebooks/optimum.py [TRACE...] [-o optimum.svg]

A point is a step with a capacity and a machine. Without traces, the points are

  - the samples at 0.5, 0.7 and 0.9 of their peak, on --machine;
  - the instances of traces/instances, with their links;
  - recomputation problems of Checkmate, MONeT and Moccasin, if --published is a folder of them. These have policies that
    recompute only, and count bytes without addresses, as their authors did.

Prints a line for each point, a line for each policy, and the points where Tidepool's planner (tide, or tide-remat if a
point is recomputation only) is not the fastest or may be over 1 % above the optimum. A search may take --limit seconds of CPU time. Each run is kept in --rows when it ends, so the
same command goes on where it was interrupted; runs of another version of the program are repeated. All points take
about ten minutes on two cores. Search time is CPU time. Needs matplotlib for -o.
"""

import argparse
import pathlib
import statistics
import tempfile
from collections import Counter

from optimum_points import (SAMPLES, Rows, every_policy, measured, points_of_instances, points_of_problems,
                            points_of_traces, version_of)

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLOSE = 0.01  # share of the bound; a plan within it counts as close to the optimum
SAME = 1e-6  # share of the step; times that differ by less count as equal


def fastest(runs):
    """(name, run) of the runs that end well, the fastest first."""
    return sorted(((name, run) for name, run in runs.items() if run["outcome"] == "ok"),
                  key=lambda each: each[1]["makespan_ns"])


def gap(bound, run):
    """How far a run may be above the optimum, as a share of the bound; None if the run failed or no plan exists."""
    return run["makespan_ns"] / bound["bound_ns"] - 1 if run["outcome"] == "ok" and bound["feasible"] else None


def table(found):
    """A dict for each point: the bound, the best known plan, and the overhead of every policy, in %."""
    lines = []
    for point, (bound, runs) in found.items():
        ending = fastest(runs)
        base = next((run["baseline_ns"] for run in runs.values() if "baseline_ns" in run), None)

        def over(time):
            return None if time is None or base is None else 100 * (time / base - 1)
        best = min([*(run["makespan_ns"] for _, run in ending[:1]), *([point.best_ns] if point.best_ns else [])],
                   default=None)
        ours = runs.get(point.ours, {"outcome": "not run", "search_s": None})
        lines.append({
            "group": point.group, "point": point.name, "bound": over(bound.get("bound_ns")),
            "proved by": bound.get("bound", "no plan exists"), "best known": over(best),
            "gap": 100 * (best / bound["bound_ns"] - 1) if best and bound["feasible"] else None,
            "fastest policy": ending[0][0] if ending else "-", "Tidepool's": point.ours,
            "search s": ours["search_s"],
            **{name: over(run["makespan_ns"]) if run["outcome"] == "ok" else None for name, run in runs.items()}})
    return lines


def by_policy(found):
    """A dict for each policy: at how many points it ends well, is close to the optimum, and how long it searches. Points
    at which no plan exists do not count."""
    lines = []
    for name in dict.fromkeys(name for _, runs in found.values() for name in runs):
        mine = [(point, bound, runs[name]) for point, (bound, runs) in found.items() if name in runs and bound["feasible"]]
        gaps = [value for _, bound, run in mine if (value := gap(bound, run)) is not None]
        seconds = [run["search_s"] for _, _, run in mine]
        lines.append({"policy": name, "points": len(mine), "ends well": len(gaps),
                      "within 1 %": sum(value <= CLOSE for value in gaps),
                      "median gap": 100 * statistics.median(gaps) if gaps else None,
                      "over the limit": sum(run["outcome"] == "search_limit" for _, _, run in mine),
                      "median search s": statistics.median(seconds) if seconds else None,
                      "longest": max(seconds, default=None)})
    return sorted(lines, key=lambda line: (-line["within 1 %"], -line["ends well"]))


def cause(bound, run):
    """The overhead and the name of the bound, and the causes of a run's overhead, as a text."""
    step = run["baseline_ns"]
    parts = {"recomputing": run["recompute_ns"], "waiting for copies in": run["stall_ns"]["h2d"],
             "waiting for copies out": run["stall_ns"]["d2h"]}
    lost = ", ".join(f"{what} {time / step:.1%}" for what, time in sorted(parts.items(), key=lambda part: -part[1])
                     if time > 0.0005 * step)
    return f"bound {bound['bound_ns'] / step - 1:.1%} ({bound['bound']}); {lost}"


def shown(value, form="{:.2f}"):
    return "-" if value is None else form.format(value)


def print_table(lines):
    columns = list(dict.fromkeys(column for line in lines for column in line))
    cells = [columns, *([each if isinstance(each, str) else shown(each, "{}" if isinstance(each, int) else "{:.2f}")
                         for each in (line.get(column) for column in columns)] for line in lines)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for row in cells:
        print("  ".join(cell.rjust(width) if i else cell.ljust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))).rstrip())


def print_findings(found):
    """Prints the points at which Point.ours is not the fastest or may be over 1 % above the optimum, and a summary."""
    slower, wide, gaps, better = [], [], [], Counter()
    for point, (bound, runs) in found.items():
        ending = fastest(runs)
        if not bound["feasible"] or not ending or point.ours not in runs:
            continue
        name, first = ending[0]
        mine = runs[point.ours]
        value = gap(bound, mine)
        if value is None or mine["makespan_ns"] > first["makespan_ns"] + SAME * first["baseline_ns"]:
            better[name] += 1
            slower.append(f"  {point.name}: {name} {first['makespan_ns'] / first['baseline_ns'] - 1:.2%}, {point.ours} "
                          + (mine["outcome"] if value is None else
                             f"{mine['makespan_ns'] / mine['baseline_ns'] - 1:.2%}"))
        if value is not None:
            gaps.append(value)
            if value > CLOSE:
                wide.append((value, f"  {point.name}: {value:.2%}: {cause(bound, mine)}"))
    print(f"\nnot the fastest policy at {len(slower)} of {len(found)} points", *slower, sep="\n")
    if better:
        print("faster there: " + ", ".join(f"{name} {count}" for name, count in better.most_common()))
    print(f"\nover {CLOSE:.0%} above the bound at {len(wide)} of {len(gaps)} points where it ends well",
          *(line for _, line in sorted(wide, reverse=True)), sep="\n")
    if gaps:
        print(f"\nmedian gap {statistics.median(gaps):.2%}, {sum(value <= CLOSE for value in gaps)} of {len(gaps)} within "
              f"{CLOSE:.0%}, {sum(value == 0 for value in gaps)} proved optimal")


def figure(found):
    """Draws a line for each point: overhead of every policy and of the bound, and beside it all search times."""
    import matplotlib.pyplot as plt

    points = [(point, bound, runs) for point, (bound, runs) in found.items() if bound["feasible"] and fastest(runs)]
    drawn, (times, searches) = plt.subplots(1, 2, figsize=(12, 1.2 + 0.19 * len(points)), sharey=True,
                                            gridspec_kw={"width_ratios": [3, 1], "wspace": 0.02})
    for y, (point, bound, runs) in enumerate(points):
        first, fast = fastest(runs)[0]
        base = fast["baseline_ns"]

        def over(time):
            return 100 * (time / base - 1)
        times.barh(y, over(bound["bound_ns"]), height=0.8, color="#f2c4b8", zorder=1)
        for name, run in runs.items():
            ours = name == point.ours
            style = {"color": "black" if ours else "0.65", "s": 22 if ours else 7, "zorder": 3 if ours else 2}
            if run["outcome"] == "ok":
                times.scatter(over(run["makespan_ns"]), y, linewidth=0, **style)
            searches.scatter(max(run["search_s"], 1e-4), y, linewidth=0.8,
                             marker="x" if run["outcome"] == "search_limit" else ".", **style)
        if point.best_ns:
            times.scatter(over(point.best_ns), y, marker="D", s=12, linewidth=0, color="#1f77b4", zorder=4)
        mine = runs.get(point.ours, {"outcome": "not run"})
        if mine["outcome"] != "ok" or fast["makespan_ns"] < mine["makespan_ns"]:
            times.annotate(first, (over(fast["makespan_ns"]), y), fontsize=6, xytext=(5, 0), textcoords="offset points",
                           va="center")
    times.set_yticks(range(len(points)), [point.name for point, _, _ in points], fontsize=7)
    times.set(ylim=(len(points) - 0.4, -0.6), xlabel="overhead, %",
              title="red: proved impossible    black: Tidepool's planner    grey: others, named where the fastest    blue: best known")
    times.set_xscale("symlog", linthresh=0.1)
    times.set_xlim(left=0)
    searches.set(xscale="log", xlabel="CPU time of the search, s", title="x: ended at the limit")
    for axes in (times, searches):
        axes.title.set_fontsize(8)
        axes.grid(True, axis="x", alpha=0.3)
    return drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--policies", help="some of them, separated by commas; all if not given")
    parser.add_argument("--capacity", default="0.5x,0.7x,0.9x", help="of traces; separated by commas")
    parser.add_argument("--machine", default="a100-pcie4", help="for traces; separated by commas")
    parser.add_argument("--pool", default="best-fit", help="for traces")
    parser.add_argument("--published", default=str(ROOT.parent / "shared" / "data" / "remat_optimal"))
    parser.add_argument("--limit", type=int, default=10, help="seconds of CPU time for one run")
    parser.add_argument("-j", "--threads", type=int, default=2)
    parser.add_argument("--rows", default="build/optimum.jsonl", help="where runs are kept")
    parser.add_argument("-o", "--output", help="SVG, PNG or PDF")
    arguments = parser.parse_args()

    policies = every_policy(arguments.program)
    if arguments.policies:
        policies = [each for each in policies if each[0] in arguments.policies.split(",")]
    capacities, machines = arguments.capacity.split(","), arguments.machine.split(",")
    with tempfile.TemporaryDirectory() as folder:
        points = points_of_traces(arguments.traces or sorted(SAMPLES.glob("*.tide")), capacities, machines, arguments.pool)
        if not arguments.traces:
            points += points_of_instances(folder)
            if pathlib.Path(arguments.published).is_dir():
                points += points_of_problems(arguments.published, arguments.program)
            else:
                print(f"{arguments.published} is not there: without the problems of Checkmate, MONeT and Moccasin")
        found = measured(points, policies, arguments.program, Rows(arguments.rows, version_of(arguments.program)), arguments.limit,
                         arguments.threads)
    print_table(table(found))
    print()
    print_table(by_policy(found))
    print_findings(found)
    if arguments.output:
        figure(found).savefig(arguments.output, bbox_inches="tight")


if __name__ == "__main__":
    main()
