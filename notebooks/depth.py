#!/usr/bin/env python3
"""Plots search time and quality against depth, with and without folding. Needs matplotlib for -o.

    notebooks/depth.py -o depth.svg

Makes synthetic steps of GPT- and ResNet-like models of growing depth (tidepool make), plans each at one capacity, and
prints search time, overhead and gap to the best bound. Overhead and gap are those of the best plan found. Search
time includes planning and the run. It is the wall time, multiplied by the share of a core that the command got; of a
few repetitions, the least time counts.

The last two lines of a model show how search time grows with the number of ops, in total and for each plan that was
tried. Each has the exponent over all depths, by least squares over the logarithms, and the one between the two deepest.
The search tries the same number of plans at every depth, but rejects some of them before they are run. The number of
rejected plans differs between depths, so two depths alone are not enough to judge the growth.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import tempfile
import time

LIMIT_S = 3600  # of one command
PLANNERS = {"folded": "tide-fold", "not folded": "tide-fold(fold=off)"}
KEYS = ("seconds", "overhead", "gap")


def call(command):
    """The JSON lines that a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode == 2:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure(arguments, trace, planner):
    """Search time in s (the least of several runs), tried plans, overhead, gap to the bound; None if the run fails."""
    seconds = []
    for _ in range(arguments.repetitions):
        begin, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        (run,) = call([arguments.program, "simulate", trace, "--policy", planner, "--pool", arguments.pool,
                       "--capacity", arguments.capacity, "--machine", arguments.machine, "--json"])
        if run["outcome"] != "ok":
            return None
        share = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - used) / (time.monotonic() - begin)
        seconds.append(run["plan_ns"] / 1e9 * min(share, 1))
    return {"seconds": min(seconds), "plans": run["cost_evaluations"], "overhead": run["overhead_ratio"] - 1, "gap": run.get("gap", math.nan)}


def slope(points):
    """Least-squares slope of log y over log x; NaN for fewer than two points."""
    if len(points) < 2:
        return math.nan
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys)) / sum((x - x_mean) ** 2 for x in xs)


def run_model(arguments, model, depths, options, planners):
    """Prints a table. Returns, by planner, (layers, ops, measurement) of each depth at which it was run and succeeded."""
    results = {name: [] for name in planners}
    print(f"{model}-like, {arguments.capacity} of the peak on {arguments.machine}, pool {arguments.pool}")
    print(f"{'layers':>8}{'ops':>9}" + "".join(f"{name + ': s':>18}{'plans':>7}{'overhead':>10}{'gap':>8}" for name in planners))
    with tempfile.TemporaryDirectory() as folder:
        for layers in depths:
            trace = os.path.join(folder, "step.tide")
            call([arguments.program, "make", model, "--layers", str(layers), "-o", trace, *options])
            (info,) = call([arguments.program, "info", trace, "--json"])
            line = f"{layers:>8}{info['ops']:>9}"
            for name, planner in planners.items():
                if results[name] and results[name][-1][2]["seconds"] > arguments.longest:
                    line += f"{'-':>18}{'-':>7}{'-':>10}{'-':>8}"  # the next smaller step took too long
                    continue
                measured = measure(arguments, trace, planner)
                if measured is None:
                    line += f"{'fails':>18}{'-':>7}{'-':>10}{'-':>8}"
                    continue
                results[name].append((layers, info["ops"], measured))
                line += (f"{measured['seconds']:>18.3f}{measured['plans']:>7}{measured['overhead']:>10.2%}"
                         f"{measured['gap']:>8.2%}")
            print(line, flush=True)
    for what, per in (("exponent", lambda measured: 1), ("for a plan", lambda measured: measured["plans"])):
        line = f"{what:>17}"
        for name in planners:
            times = [(ops, measured["seconds"] / per(measured)) for _, ops, measured in results[name]]
            line += f"{slope(times):>18.2f}{slope(times[-2:]):>17.2f}{'':>8}"
        print(line)
    print()
    return results


def plot(all_results, path):
    """One row of time, overhead and gap for each model."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    titles = {"seconds": "search time, s", "overhead": "overhead", "gap": "gap to the bound"}
    figure, axes = plt.subplots(len(all_results), len(KEYS), figsize=(12, 3.6 * len(all_results)), squeeze=False)
    for row, (model, results) in zip(axes, all_results.items()):
        for cell, key in zip(row, KEYS):
            for name, points in results.items():
                cell.plot([layers for layers, _, _ in points], [measured[key] for _, _, measured in points], marker="o",
                          label=name)
            cell.set_xscale("log")
            if key == "seconds":
                cell.set_yscale("log")
            else:
                cell.set_ylim(bottom=0)
            cell.set_xlabel(f"layers, {model}-like")
            cell.set_ylabel(titles[key])
            cell.grid(True, alpha=0.3)
        row[0].legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--gpt", default="12,24,48,96,192,384", help="layers")
    parser.add_argument("--resnet", default="20,50,98,302,1202,3002,10004", help="layers, each 6 n + 2")
    parser.add_argument("--capacity", default="0.6x")
    parser.add_argument("--machine", default="a100-pcie4")
    parser.add_argument("--pool", default="best-fit")
    parser.add_argument("--also", default="", help="another planner, as in 'tide(with=swap)'")
    parser.add_argument("--longest", type=float, default=30, help="leave a planner out after a step that took longer, s")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each; the shortest time counts")
    parser.add_argument("-o", "--output", help="SVG, PNG or PDF")
    arguments = parser.parse_args()

    planners = dict(PLANNERS)
    if arguments.also:
        planners[arguments.also] = arguments.also
    all_results = {}
    for model, depths, options in (("gpt", arguments.gpt, ["--hidden", "1024", "--heads", "16", "--batch", "16"]),
                                   ("resnet", arguments.resnet, [])):
        if depths:
            all_results[model] = run_model(arguments, model, [int(depth) for depth in depths.split(",")], options,
                                           planners)
    if arguments.output:
        plot(all_results, arguments.output)


if __name__ == "__main__":
    main()
