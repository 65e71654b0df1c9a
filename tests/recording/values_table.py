#!/usr/bin/env python3
"""Compares peaks of jobs in which values decide sizes: recorded on the CPU, and dry, where some values are assumed.

For each job of values_jobs.py, it prints the most bytes alive in one step on the CPU, in a dry run with balanced choices,
and with `--routing worst`, without workspaces, which only a device has; and what `tidepool fit` says that sizes rest on.
Needs a PyTorch for CUDA, torchvision, transformers and torch_geometric; no GPU.

    tests/recording/values_table.py [--program build/tidepool] [JOB...]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from like_cpu import buffer_of, records_of
from recordings_table import DEVICE, LIMIT_S, NO_WORKSPACES
from values_jobs import JOBS

JOB = pathlib.Path(__file__).resolve().parent / "values_jobs.py"


def run(command):
    environment = {**os.environ, **NO_WORKSPACES, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LIMIT_S)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {ran.returncode}:\n{ran.stderr}")
    return ran.stdout


def peak_mib(program, job, trace, ways):
    device = "cuda" if "--dry" in ways else "cpu"
    run([program, "record", "--torch", "--skip", "1", *ways, "-o", trace, "--", sys.executable, JOB, job, "--device", device])
    alive, most = {}, 0
    for record in records_of(program, trace, os.path.dirname(trace)):
        key = buffer_of(record)
        if key == "free":
            alive.pop(record[key], None)
        elif key and record.get("kind") != "workspace":
            alive[record[key]] = record["size_bytes"]
            most = max(most, sum(alive.values()))
    return most / 2**20


def row(program, job, folder):
    trace = f"{folder}/{job}.tide"
    cpu = peak_mib(program, job, trace, ["--no-gpu"])
    dry_ways = ["--dry", "--device", DEVICE]
    worst = peak_mib(program, job, trace, [*dry_ways, "--routing", "worst"])
    dry = peak_mib(program, job, trace, dry_ways)
    sizes_from = json.loads(run([program, "fit", trace, "--device", DEVICE, "--json"]))["sizes_from"]
    return f"| {job} | {cpu:.2f} | {dry:.2f} | {100 * (dry / cpu - 1):+.2f} % | {worst:.2f} | {sizes_from} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", metavar="JOB")
    parser.add_argument("--program", default="build/tidepool")
    asked = parser.parse_args()
    program = str(pathlib.Path(asked.program).resolve())
    print("| job | CPU, MiB | dry | apart | dry, `--routing worst` | sizes rest on |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for job in asked.jobs or JOBS:
            print(row(program, job, folder), flush=True)


if __name__ == "__main__":
    main()
