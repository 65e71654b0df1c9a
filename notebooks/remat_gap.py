#!/usr/bin/env python3
"""Distance of recomputation policies from the certified bound, over many steps.

    notebooks/remat_gap.py --program build/tidepool LOG... [--assume simrd] [--pool ideal]

Prints, for each policy and each fraction of the peak, the geometric mean of the policy's overhead divided by that of the
bound, over the logs on which the policy succeeds; the number of these logs; and the number of logs for which a plan may
exist. A mean of 1 is perfect. Logs whose bound is less than 0.01 % above the step's time are left out of all three.
"""

import argparse
import math

from sweep_rows import rows_of, split_list


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", help="traces, or anything that import reads")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--policies", default="tide-remat,next-use,dtr,dtr-eq,dtr-local,msps,largest,lru")
    parser.add_argument("--pool", default="ideal")
    parser.add_argument("--fractions", default="0.3,0.5,0.7")
    parser.add_argument("--assume", default="")
    arguments = parser.parse_args()

    policies = split_list(arguments.policies)
    fractions = split_list(arguments.fractions)
    assume = ["--assume", arguments.assume] if arguments.assume else []
    ratios = {(policy, fraction): [] for policy in policies for fraction in fractions}
    bounded = {fraction: 0 for fraction in fractions}
    for log in arguments.logs:
        for fraction in fractions:
            capacity = ["--capacity", fraction + "x"]
            (answer,) = rows_of([arguments.program, "bound", log, "--with", "remat", "--json", *capacity, *assume])
            if not answer["feasible"]:
                continue
            bound = answer["bounds"][-1]["makespan_ns"]
            runs = rows_of([arguments.program, "simulate", log, "--pool", arguments.pool, "--json", "--first",
                          "--policy", ",".join(policies), *capacity, *assume])
            baseline = runs[0]["baseline_ns"]
            if bound - baseline < 1e-4 * baseline:
                continue
            bounded[fraction] += 1
            for policy, run in zip(policies, runs):
                if run["outcome"] == "ok":
                    ratios[policy, fraction].append((run["makespan_ns"] - baseline) / (bound - baseline))

    print(f"{'':12}" + "".join(f"{fraction + 'x':>18}" for fraction in fractions))
    for policy in policies:
        cells = []
        for fraction in fractions:
            values = ratios[policy, fraction]
            mean = math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan
            cells.append(f"{mean:10.3f} ({len(values)}/{bounded[fraction]})")
        print(f"{policy:12}" + "".join(f"{cell:>18}" for cell in cells))


if __name__ == "__main__":
    main()
