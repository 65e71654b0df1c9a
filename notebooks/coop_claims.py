#!/usr/bin/env python3
"""Tests the claims of Coop's authors against DTR and DTE, on one arena, and prints the results beside the claims.

    notebooks/coop_claims.py traces/samples/*.tide

Claims (Zhang et al., "Coop: Memory is not a Commodity", NeurIPS 2023): half of the memory at best for the same overhead, less
fragmentation, and a search that visits each buffer once. DTR is h_DTR and DTE the MegTaiChi heuristic, both on best
fit. Coop is the sliding window, on best fit and on a pool with cheap tensors at the other end (two-ended). The third
part of Coop, recomputable in-place, is in all of them, because recorded steps update parameters in place.
"""

import argparse
import math
import os
from collections import defaultdict

from sweep_rows import rows_of, trace_names

CANDIDATES = {("dtr", "best-fit"): "dtr", ("dte", "best-fit"): "dte", ("coop", "best-fit"): "coop",
              ("coop", "two-ended"): "coop+ends"}
OVERHEADS = (0.02, 0.05, 0.10, 0.20, 0.50)


def sweep(program, traces, capacities, threads):
    """Rows of `tidepool sweep`, one dict each."""
    command = [program, "sweep", *traces, "--pool", "best-fit,two-ended", "--policy", "dtr,dte,coop", "--capacity",
               capacities, "--overhead-limit", "2", "--count-search", "--json", "-j", str(threads)]
    return rows_of(command)


def least_memory(rows, overhead):
    """The least capacity, in ideal peaks, of a run that succeeds within an overhead. Search time does not count. None if no
    run does."""
    fitting = [row["capacity_bytes"] / row["ideal_peak_bytes"] for row in rows if row["outcome"] == "ok"
               and row["makespan_ns"] - row["search_ns"] <= (1 + overhead) * row["baseline_ns"]]
    return min(fitting, default=None)


def mean(values):  # NaN without values
    values = list(values)
    return sum(values) / len(values) if values else math.nan


def factor(by_candidate, rival):
    """The rival's memory as a multiple of that of Coop's better form. None if either has no successful run."""
    coop = [least for least in (by_candidate["coop"], by_candidate["coop+ends"]) if least is not None]
    return by_candidate[rival] / min(coop) if coop and by_candidate[rival] is not None else None


def print_memory(runs):
    """Prints memory at equal overhead. Returns, for each rival, all (factor, trace, overhead)."""
    names = list(CANDIDATES.values())
    print("memory needed, as a multiple of the ideal peak (-: not at any capacity tried)")
    print(f"{'':14}{'overhead':>9}" + "".join(f"{name:>11}" for name in names) + "   dtr/coop   dte/coop")
    factors = defaultdict(list)
    for trace, by_candidate in runs.items():
        for overhead in OVERHEADS:
            least = {name: least_memory(by_candidate[name], overhead) for name in names}
            line = f"{trace:14}{overhead:>8.0%} " + "".join(
                f"{'-':>11}" if least[name] is None else f"{least[name]:>11.3f}" for name in names)
            for rival in ("dtr", "dte"):
                times = factor(least, rival)
                line += f"{'-':>11}" if times is None else f"{times:>11.2f}"
                if times is not None:
                    factors[rival].append((times, trace, overhead))
            print(line)
    return factors


def print_search(runs):
    """Prints fragmentation and search at capacities where all policies evict and end well. Returns means by name."""
    names = list(CANDIDATES.values())
    print("\nwhere all four evict and end well, for one evicting allocation: free memory, evaluated costs, search time")
    print(f"{'':14}{'points':>7}" + "".join(f"{name:>28}" for name in names))
    all_means = {name: [] for name in names}
    for trace, by_candidate in runs.items():
        at = {name: {row["capacity_bytes"]: row for row in by_candidate[name]
                     if row["outcome"] == "ok" and row["evicting_allocations"] > 0} for name in names}
        shared = set.intersection(*(set(rows) for rows in at.values()))
        line = f"{trace:14}{len(shared):>7}"
        for name in names:
            rows = [at[name][capacity] for capacity in shared]
            figures = (mean(row["eviction_fragmentation"] for row in rows),
                       mean(row["cost_evaluations"] / row["evicting_allocations"] for row in rows),
                       mean(row["search_ns"] / row["evicting_allocations"] for row in rows) / 1000)
            if rows:
                all_means[name].append(figures)
            line += f"{figures[0]:>9.1%}{figures[1]:>8.0f}{figures[2]:>8.1f} us" if rows else f"{'-':>28}"
        print(line)
    return {name: tuple(mean(figures[i] for figures in all_means[name]) for i in range(3)) for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--capacity", default="0.3x..1.1x/33", help="as for tidepool sweep")
    parser.add_argument("-j", "--threads", default=os.cpu_count())
    arguments = parser.parse_args()

    traces = trace_names(arguments.traces)
    runs = defaultdict(lambda: {name: [] for name in CANDIDATES.values()})
    for row in sweep(arguments.program, arguments.traces, arguments.capacity, arguments.threads):
        name = CANDIDATES.get((row["policy"], row["pool"]))
        if name is not None:
            runs[traces[row["trace"]]][name].append(row)

    factors = print_memory(runs)
    means = print_search(runs)
    print("\nclaim                                         found here")
    for rival in ("dtr", "dte"):
        if factors[rival]:
            most, trace, overhead = max(factors[rival])
            geometric = math.exp(mean(math.log(times) for times, _, _ in factors[rival]))
            print(f"up to 2x less memory than {rival.upper()}                 up to {most:.2f}x ({trace} at {overhead:.0%}), "
                  f"geometric mean {geometric:.2f}x, least {min(factors[rival])[0]:.2f}x")
    print("less fragmentation                            " + ", ".join(
        f"{name} {figures[0]:.1%}" for name, figures in means.items()))
    print("each buffer looked at once in a search        " + ", ".join(
        f"{name} {figures[1]:.0f} costs in {figures[2]:.1f} us" for name, figures in means.items()))


if __name__ == "__main__":
    main()
