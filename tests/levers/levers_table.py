#!/usr/bin/env python3
"""Prints the gain of each lever (a way to save memory): the least memory in which a step's overhead is below some percent.

    tests/levers/levers_table.py [--program build/tidepool] [--results levers.sqlite] [--effort 40]
                                 [--machines NAME,...] [--levers LEVER,...] [SAMPLE...]

Memory is in percent of the least memory in which the unchanged step has an overhead below 0.01 % on PyTorch's pool. Each
number is a search of `tidepool sweep --find` in steps of one percent of the step's peak. Runs are kept in --results and
not repeated, so the same command continues an interrupted one. --effort is the effort of planners, less than their default.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# By name: the pool and the policy, in which {} stands for the effort.
LEVERS = {"order": ("pytorch", "order-peak"), "pool": ("tide-pool", "none"),
          "swap": ("pytorch", "tide(with=swap,effort={})"), "remat": ("pytorch", "tide-remat(effort={})"),
          "all": ("best-fit", "tide(with=order+swap+remat,effort={})")}
BUDGETS = {"+0 %": "overhead<0.01%", "+2 %": "overhead<2%", "+5 %": "overhead<5%", "+10 %": "overhead<10%"}
MACHINES = "v100-pcie3,a100-pcie4,gh200-c2c"


def least(program, results, sample, machines, pool, policies, objective):
    """Bytes by (machine, policy as asked); None if no capacity of the sweep meets the objective. One sweep searches for
    all of them at the same time, so that every core has work."""
    ran = subprocess.run([program, "sweep", sample, "--pool", pool, "--policy", ",".join(policies), "--machine", machines,
                          "--find", objective, "-o", results, "--json"], capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{sample}: {', '.join(policies)} on {pool} ended with {ran.returncode}:\n{ran.stderr}")
    found = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    return {(each["machine"], asked_as(each, policies)): each["capacity_bytes"] if each["found"] else None for each in found}


def parts_of(policy):
    """The name and the options of a policy: ("tide", {"with=swap", "effort=40"})."""
    name, _, options = policy.rstrip(")").partition("(")
    return name, set(options.split(",")) - {""}


def asked_as(row, policies):
    """The policy of `policies` that a row is about. It has all options of the row. It may have more, since rows leave out
    options that have their default values. If several policies fit, the one with the fewest options is taken.

    >>> asked = ["tide(with=swap,effort=600)", "tide(with=swap,effort=40)", "tide(effort=40)", "order-peak"]
    >>> asked_as({"policy": "tide", "options": "tide(effort=40,with=swap)"}, asked)
    'tide(with=swap,effort=40)'
    >>> asked_as({"policy": "tide", "options": "tide(with=swap)"}, asked[:1] + asked[2:])
    'tide(with=swap,effort=600)'
    >>> asked_as({"policy": "order-peak", "options": ""}, asked)
    'order-peak'
    >>> asked_as({"policy": "tide", "options": "tide(effort=50)"}, asked)
    Traceback (most recent call last):
    SystemExit: a row is about tide(effort=50), which is none of tide(with=swap,effort=600), tide(with=swap,effort=40), \
tide(effort=40), order-peak
    """
    name, options = parts_of(row["options"] or row["policy"])
    fitting = [policy for policy in policies if parts_of(policy)[0] == name and options <= parts_of(policy)[1]]
    if not fitting:
        sys.exit(f"a row is about {row['options'] or row['policy']}, which is none of {', '.join(policies)}")
    return min(fitting, key=lambda policy: len(parts_of(policy)[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("samples", nargs="*", metavar="SAMPLE")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--results", default="levers.sqlite", metavar="FILE")
    parser.add_argument("--effort", type=int, default=40)
    parser.add_argument("--machines", default=MACHINES)
    parser.add_argument("--levers", default=",".join(LEVERS))
    options = parser.parse_args()
    names = options.samples or sorted(path.stem for path in (ROOT / "traces/samples").glob("*.tide"))
    levers = options.levers.split(",")
    began = time.monotonic()

    def found(sample, pool, policies, objective):
        return least(options.program, options.results, sample, options.machines, pool, policies, objective)

    print(f"| sample | machine | lever | {' | '.join(BUDGETS)} |")
    print(f"|---|---|---|{'---|' * len(BUDGETS)}")
    for name in names:
        sample = str(ROOT / "traces/samples" / f"{name}.tide")
        base = found(sample, "pytorch", ["none"], BUDGETS["+0 %"])
        answers = {}  # by pool and budget
        for pool in sorted({LEVERS[lever][0] for lever in levers}):
            policies = [LEVERS[lever][1].format(options.effort) for lever in levers if LEVERS[lever][0] == pool]
            for budget, objective in BUDGETS.items():
                answers[pool, budget] = found(sample, pool, policies, objective)
        for machine in options.machines.split(","):
            for lever in levers:
                pool, policy = LEVERS[lever][0], LEVERS[lever][1].format(options.effort)
                row = [answers[pool, budget][machine, policy] for budget in BUDGETS]
                cells = ["-" if memory is None else f"{100 * memory / base[machine, 'none']:.0f}" for memory in row]
                print(f"| {name} | {machine} | {lever} | {' | '.join(cells)} |", flush=True)
    print(f"{(time.monotonic() - began) / 60:.0f} minutes", file=sys.stderr)


if __name__ == "__main__":
    main()
