#!/usr/bin/env python3
"""Compares predicted, recorded and measured peaks of jobs that really train on the CPU, with updates in backward.

    PYTHON tests/recording/early_updates_table.py [--program build/tidepool] [--tolerance 2] [JOB...]

Each JOB is a model and an optimizer of early_updates_job.py, as in lm/adamw. It is recorded, and `tidepool advise`
predicts the peak of its step with early updates. The advised code is applied to the job; the changed job is recorded,
and run once more under `tidepool run`, which counts the bytes of all tensors while the job runs. Exit status 1: the
losses of the changed job are not bit for bit those of the job, or a peak differs from the prediction by more than
--tolerance percent. PYTHON needs PyTorch.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

JOB = pathlib.Path(__file__).resolve().parent / "early_updates_job.py"
JOBS = [f"{model}/{optimizer}" for model in ("mlp", "cnn", "lm") for optimizer in ("sgd", "adamw", "adamw-foreach")]
STEPS = 8
SKIP = "2"  # steps that are left out after the first, which is never recorded: modules are seen from the second step on


def output(command, ends=(0,)):
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                         env={**os.environ, "OMP_NUM_THREADS": "1"})
    if ran.returncode not in ends:
        sys.exit(f"{' '.join(map(str, command))} ended with {ran.returncode}:\n{ran.stderr}")
    return ran.stdout


def record(program, job, trace):
    output([program, "record", "--torch", "--no-gpu", "--skip", SKIP, "--iterations", "1", "-o", trace, "--", *job])


def peak_of(program, trace):
    return json.loads(output([program, "info", trace, "--json"]))["ideal_peak_bytes"]


def measured(program, job, trace, folder):
    """The largest sum of bytes of tensors in a step of the job, as it is counted while the job runs."""
    plan = f"{folder}/none.plan"
    output([program, "simulate", trace, "--first", "--policy", "none", "--pool", "ideal", "--capacity", "none",
            "--plan-out", plan])
    run = json.loads(output([program, "run", "--json", "--plan", plan, "--trace", trace, "--", *job]))
    return run["measured_peak_bytes"]


def row(program, name, folder):
    """The line that is printed for a job; None if nothing is advised."""
    job = [sys.executable, JOB, *name.split("/"), str(STEPS)]
    plain, changed, change = f"{folder}/plain.tide", f"{folder}/changed.tide", f"{folder}/change.py"
    record(program, job, plain)
    # The capacity is one byte less than the peak: whether the change fits does not matter here.
    peak = peak_of(program, plain)
    advice = json.loads(output([program, "advise", plain, "--capacity", f"{peak - 1}B", "--kinds", "early-updates",
                                "--json"], ends=(0, 1)))
    if not advice["changes"]:
        return None
    best = advice["changes"][0]
    pathlib.Path(change).write_text(best["code"])
    losses, changed_losses = output(job), output([*job, change])
    record(program, [*job, change], changed)
    return {"name": name, "peak": peak, "predicted": best["peak_bytes"], "again": peak_of(program, changed),
            "measured_plain": measured(program, job, plain, folder),
            "measured": measured(program, [*job, change], changed, folder), "same": losses == changed_losses}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", metavar="JOB")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--tolerance", type=float, default=2.0, metavar="PERCENT")
    options = parser.parse_args()
    mib = 1 << 20
    print("| job | peak | measured | with early updates: predicted | recorded again | measured | difference | losses |")
    print("|---|---|---|---|---|---|---|---|")
    failed = False
    for name in options.jobs or JOBS:
        with tempfile.TemporaryDirectory() as folder:
            found = row(options.program, name, folder)
        if found is None:
            print(f"| {name} | no early update lowers the peak | | | | | | |", flush=True)
            continue
        apart = [100 * (found["predicted"] / found[key] - 1) for key in ("again", "measured")]
        worst = max(apart, key=abs)
        failed |= abs(worst) > options.tolerance or not found["same"]
        print(f"| {name} | {found['peak'] / mib:.2f} MiB | {found['measured_plain'] / mib:.2f} MiB "
              f"| {found['predicted'] / mib:.2f} MiB ({found['predicted'] / found['peak'] - 1:+.1%}) "
              f"| {found['again'] / mib:.2f} MiB | {found['measured'] / mib:.2f} MiB | {worst:+.2f}% "
              f"| {'the same bits' if found['same'] else 'DIFFER'} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
