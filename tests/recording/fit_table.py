#!/usr/bin/env python3
"""Predicted against measured device memory of training runs: how well `tidepool fit` does, on published measurements.

    PYTHON tests/recording/fit_table.py mlp_step2.csv.gz [--every 40] [--device a100-40gb] [--keep FOLDER]

A table has a row for each training run: its program, in a few words, and the most memory of the device that nvidia-smi showed
(GPUMemNet's data sets, arXiv 2602.17817: an A100 with 40 GB). Every K-th row is taken. Its training program is made from the
row (fit_programs.py) and recorded dry (`tidepool record --dry`); `tidepool fit` says what the allocator reserves. On the rows
of even index the constant is fitted: the median of measured - reserved. On the others the prediction, reserved + constant, is
compared with what was measured. A job that is called fitting and does not fit: predicted to take no more than a device has,
measured to take more, for devices of each of --sizes. PYTHON has PyTorch for CUDA; no GPU is needed. FOLDER keeps the
recordings, and those in it are used again.
"""
import argparse
import csv
import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from fit_programs import TABLES
from warm_python import Server

MIB = 2**20


def read_rows(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def record_command(arguments, trace):
    return [arguments.program, "record", "--dry", "--device", arguments.device, "-o", str(trace), "--"]


def record(arguments, server, name, trace):
    job = server.command(__file__, arguments.table, "--train", name)
    ran = subprocess.run(record_command(arguments, trace) + job, capture_output=True, text=True)
    if ran.returncode != 0 or not trace.exists():
        raise SystemExit(f"{name}: not recorded:\n{ran.stderr}")


def answer(arguments, server, name, folder):
    """What `tidepool fit` says of a row's program."""
    trace = pathlib.Path(folder, name.replace(":", "-") + ".tide")
    if not trace.exists():
        record(arguments, server, name, trace)
    command = [arguments.program, "fit", str(trace), "--device", arguments.device, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def print_table(measured, predicted, sizes):
    errors = [abs(p - m) / m for p, m in zip(predicted, measured)]
    print("| rows | median error | 90th percentile | largest | called fitting that do not |\n|---|---|---|---|---|")
    called = [(p, m, size) for p, m in zip(predicted, measured) for size in sizes if p <= size]
    wrong = sum(m > size for _, m, size in called)
    print(f"| {len(errors)} | {statistics.median(errors):.2%} | {percentile(errors, 0.9):.2%} | {max(errors):.2%} | "
          f"{wrong} of {len(called)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", help=" or ".join(f"{name}.csv" for name in TABLES) + ", also .gz")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--device", default="a100-40gb", help="that it was measured on")
    parser.add_argument("--every", type=int, default=20, help="take every K-th row")
    parser.add_argument("--sizes", default="1536,1792,2048,3072,4096", help="MiB of devices that a job may fit on")
    parser.add_argument("--keep", help="folder for the recordings")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    name = pathlib.Path(arguments.table).name.split(".")[0]
    if name not in TABLES:
        parser.error(f"{arguments.table}: expected one of {', '.join(TABLES)}, .csv or .csv.gz")
    table = TABLES[name]
    rows = [row for row in read_rows(arguments.table) if table.counts(row)]
    if arguments.train:
        return table.train(next(row for row in rows if table.name(row) == arguments.train))
    arguments.program = str(pathlib.Path(arguments.program).resolve())
    taken = rows[::arguments.every]
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or scratch
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        server = Server(record_command(arguments, pathlib.Path(scratch, "server.tide")))  # its forks are dry runs
        try:
            answers = [answer(arguments, server, table.name(row), folder) for row in taken]
        finally:
            server.stop()
    measured = [float(row["measured_mib"]) for row in taken]
    reserved = [said["reserved_bytes"] / MIB for said in answers]
    rest = [m - r for m, r in zip(measured, reserved)]
    constant = statistics.median(rest[::2])
    print(f"{len(taken)} of {len(rows)} rows: every {arguments.every}th. Measured - reserved on the {len(rest[::2])} of even "
          f"index: median {constant:,.0f} MiB, from {min(rest[::2]):,.0f} to {max(rest[::2]):,.0f} MiB.")
    print(f"\nOf odd index, reserved + {constant:,.0f} MiB against measured:\n")
    sizes = [float(size) for size in arguments.sizes.split(",")]
    print_table(measured[1::2], [r + constant for r in reserved[1::2]], sizes)
    print(f"\nThe same rows, as `tidepool fit` says it (context {answers[0]['context_bytes'] / MIB:,.0f} MiB):\n")
    print_table(measured[1::2], [said["predicted_bytes"] / MIB for said in answers[1::2]], sizes)


if __name__ == "__main__":
    main()
