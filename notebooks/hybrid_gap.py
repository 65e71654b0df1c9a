#!/usr/bin/env python3
"""Gap to the optimum against memory: our hybrid planner and others, on samples x capacities x machines.

    notebooks/hybrid_gap.py traces/samples/*.tide -o gap.svg

Prints, for each point, the overhead of every policy, our gap to the best certified bound for the same kinds of actions,
and our search time. Then it lists the points at which our planner is slower than another policy or has a gap over 2 %,
with the causes. The gap is (time - bound) / (time of the step without limit); a part of it is the looseness of the
bound. Needs matplotlib for -o.
"""

import argparse
import itertools
import os
import re
import statistics
from collections import Counter, defaultdict

from sweep_rows import policy_name, rows_of, trace_names

OTHERS = ("autoswap,capuchin,flashneuron,g10,geeps,grappler-swap,layer-window,lru-swap,pooch,superneurons,"
          "swapadvisor(with=swap),tflms,torch-offload,vdnn,chen,coop,dte,dtr,dtr-eq,dtr-local,msps,next-use,revolve,"
          "rotor,sqrt-n,tide-fold,tide-remat")
LIMIT = 0.02
SLACK = 1e-6  # share of the step; times that differ by less count as equal


def point_of(names, row):
    return names[row["trace"]], row["machine"], round(row["capacity_bytes"] / row["ideal_peak_bytes"], 3)


def sweep(arguments, pool, policies):
    """Rows of `tidepool sweep` by (trace, machine, capacity), then by policy with its options."""
    command = [arguments.program, "sweep", *arguments.traces, "--pool", pool, "--policy", policies, "--capacity",
               arguments.capacity, "--machine", arguments.machine, "--json", "-j", str(arguments.threads)]
    if arguments.results:
        command += ["-o", arguments.results]
    names = trace_names(arguments.traces)
    points = defaultdict(dict)
    for row in rows_of(command):
        points[point_of(names, row)][policy_name(row)] = row
    return points


def best_bounds(arguments, ours, points):
    """By point: the best bound of `tidepool bound`. Result rows only have bounds that take milliseconds."""
    steady = {point[0] for point, rows in points.items() if any(row["steady"] for row in rows.values())}
    allowed = re.search(r"\bwith=([a-z+]+)", ours)
    names = trace_names(arguments.traces)
    best = {}
    for trace, machine in itertools.product(names, arguments.machine.split(",")):
        command = [arguments.program, "bound", trace, "--machine", machine, "--capacity", arguments.capacity, "--with",
                   allowed[1].replace("+", ",") if allowed else "swap,remat", "--json",
                   *(["--steady"] if names[trace] in steady else [])]
        for answer in rows_of(command):
            if answer["bounds"]:
                best[point_of(names, answer)] = answer["bounds"][-1]
    return best


def use_bounds(points, bounds, ours):
    """Replaces the bounds of our rows."""
    for point, bound in bounds.items():
        row = points[point][ours]
        row["bound_kind"], row["limited_by"] = bound["name"], bound["limited_by"]
        row.pop("bound_ns", None)
        if "makespan_ns" in bound:
            row["bound_ns"] = bound["makespan_ns"]


def overhead(row):
    """Of a run that ended well, or None."""
    return row["makespan_ns"] / row["baseline_ns"] - 1 if row["outcome"] == "ok" else None


def gap(row):
    """Time of a run above its bound, as a share of the step; None if the run failed."""
    if row["outcome"] != "ok" or "bound_ns" not in row:
        return None
    return (row["makespan_ns"] - row["bound_ns"]) / row["baseline_ns"]


def reason(row, without_addresses):
    """The causes of a run's gap: its parts, and whether the gap remains on a pool without addresses."""
    if row["outcome"] != "ok":
        return "no plan found" if "bound_ns" in row else "no such plan exists"
    free = gap(without_addresses) if without_addresses else None
    step = row["baseline_ns"]
    parts = {"recomputing": row["recompute_ns"] / step, "waiting for copies in": row["stall_ns"]["h2d"] / step,
             "waiting for copies out": row["stall_ns"]["d2h"] / step}
    lost = ", ".join(f"{what} {share:.1%}" for what, share in sorted(parts.items(), key=lambda part: -part[1])
                     if share > 0.0005)
    placement = f"; {free:.1%} without addresses" if free is not None else ""
    return f"bound {row['bound_ns'] / step - 1:.1%} ({row['bound_kind']}, limited by {row['limited_by']}); {lost}{placement}"


def print_points(points, policies, ours):
    """The table, a line for each point."""
    print(f"{'trace':14}{'machine':14}{'capacity':>9}" + "".join(f"{name[:11]:>12}" for name in policies)
          + f"{'our gap':>9}{'search s':>10}")
    for point, rows in sorted(points.items()):
        line = f"{point[0]:14}{point[1]:14}{point[2]:>8}x"
        for name in policies:
            value = overhead(rows[name])
            line += f"{'-':>12}" if value is None else f"{value:>12.2%}"
        value = gap(rows[ours])
        line += f"{'-':>9}" if value is None else f"{value:>9.2%}"
        print(line + f"{rows[ours]['plan_ns'] / 1e9:>10.2f}")


def print_findings(points, ideal, ours):
    """Points at which ours is slower than another policy, points with a wide gap, and the summary."""
    worse, wide, gaps = [], [], []
    for point, rows in sorted(points.items()):
        mine = rows[ours]
        ending = {name: row for name, row in rows.items() if name != ours and row["outcome"] == "ok"}
        best = min(ending.values(), key=lambda row: row["makespan_ns"], default=None)
        best_name = next((name for name, row in ending.items() if row is best), None)
        if best and (mine["outcome"] != "ok"
                     or mine["makespan_ns"] > best["makespan_ns"] + SLACK * best["baseline_ns"]):
            worse.append((point, mine, best_name, best))
        value = gap(mine)
        if value is not None:
            gaps.append(value)
            if value > LIMIT:
                wide.append((point, mine, value))
    print(f"\n{ours} is worse than another policy at {len(worse)} of {len(points)} points")
    for point, mine, name, best in worse:
        value = overhead(mine)
        print(f"  {point[0]:14}{point[1]:14}{point[2]:>6}x  {name} {overhead(best):.2%}, ours "
              + (f"{value:.2%}" if value is not None else mine["outcome"]) + f": {reason(mine, None)}")
    print(f"\nover {LIMIT:.0%} of the step beyond the bound at {len(wide)} of {len(gaps)} points where it ends well")
    for point, mine, value in wide:
        print(f"  {point[0]:14}{point[1]:14}{point[2]:>6}x  {value:7.2%}: {reason(mine, ideal.get(point, {}).get(ours))}")
    if gaps:
        print(f"\n{ours}: ends well at {len(gaps)} of {len(points)} points, median gap {statistics.median(gaps):.2%}, "
              f"{sum(value <= LIMIT for value in gaps)} within {LIMIT:.0%}; median search "
              f"{statistics.median(rows[ours]['plan_ns'] / 1e9 for rows in points.values()):.2f} s, longest "
              f"{max(rows[ours]['plan_ns'] / 1e9 for rows in points.values()):.2f} s")
    if worse:
        print("better there: " + ", ".join(f"{name} {count}" for name, count in
                                           Counter(name for _, _, name, _ in worse).most_common()))


def plot(points, policies, ours, path):
    """Overhead against memory, a row for each machine and a column for each trace, with the bound."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    traces, machines = sorted({point[0] for point in points}), sorted({point[1] for point in points})
    figure, axes = plt.subplots(len(machines), len(traces), figsize=(2.8 * len(traces), 2.6 * len(machines)),
                                squeeze=False, sharex=True)
    for row, machine in zip(axes, machines):
        for cell, trace in zip(row, traces):
            line = [(point[2], rows) for point, rows in sorted(points.items()) if point[:2] == (trace, machine)]
            for i, name in enumerate(policies):
                shown = [(capacity, 100 * overhead(rows[name])) for capacity, rows in line
                         if overhead(rows[name]) is not None]
                cell.plot([x for x, _ in shown], [y for _, y in shown], linewidth=2 if name == ours else 0.8,
                          color="black" if name == ours else f"C{i % 10}",
                          linestyle="-" if i < 10 else "--", label=name)
            bounded = [(capacity, 100 * (rows[ours]["bound_ns"] / rows[ours]["baseline_ns"] - 1))
                       for capacity, rows in line if "bound_ns" in rows[ours]]
            cell.fill_between([x for x, _ in bounded], [y for _, y in bounded], color="0.85", label="impossible")
            cell.set_yscale("symlog", linthresh=1)
            cell.set_ylim(bottom=0)
            cell.set_title(f"{trace}, {machine}", fontsize=7)
            cell.grid(True, alpha=0.3)
    for cell in axes[-1]:
        cell.set_xlabel("memory, of the peak", fontsize=7)
    for row in axes:
        row[0].set_ylabel("overhead, %", fontsize=7)
    axes[0][0].legend(fontsize=5)
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--ours", default="tide", help="a hybrid policy; its bound is that of the point")
    parser.add_argument("--others", default=OTHERS)
    parser.add_argument("--capacity", default="0.3x..1.0x/8", help="as for tidepool sweep")
    parser.add_argument("--machine", default="v100-pcie3,a100-pcie4,gh200-c2c")
    parser.add_argument("--pool", default="best-fit")
    parser.add_argument("-j", "--threads", default=os.cpu_count())
    parser.add_argument("--results", help="a database of runs; runs in it are not repeated")
    parser.add_argument("-o", "--output", help="SVG, PNG or PDF")
    arguments = parser.parse_args()

    points = sweep(arguments, arguments.pool, f"{arguments.ours},{arguments.others}")
    policies = list(dict.fromkeys(name for rows in points.values() for name in rows))
    ours = next(name for name in policies if name.startswith(arguments.ours.split("(")[0])
                and (name == arguments.ours or "(" in arguments.ours))
    ideal = sweep(arguments, "ideal", arguments.ours)
    bounds = best_bounds(arguments, ours, points)
    use_bounds(points, bounds, ours)
    use_bounds(ideal, bounds, ours)
    print_points(points, policies, ours)
    print_findings(points, ideal, ours)
    if arguments.output:
        plot(points, policies, ours, arguments.output)


if __name__ == "__main__":
    main()
