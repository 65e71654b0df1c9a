#!/usr/bin/env python3
"""Predicted against measured device memory of training runs: how well `tidepool fit` does, on published measurements.

    PYTHON tests/recording/fit_table.py mlp_step2.csv.gz [--every 40] [--device a100-40gb] [--keep FOLDER]

A table has a row for each training run: its program, in a few words, and the most memory of the device that nvidia-smi
showed (GPUMemNet's data sets, arXiv 2602.17817: an A100 with 40 GB). Every K-th row is taken. Its training program is
made from the row (fit_programs.py) and recorded dry (`tidepool record --dry`); `tidepool fit` says what the allocator
reserves, and what workspaces take besides. Rows of even index fit the constant: the median of measured - reserved -
workspaces. On the other rows, the prediction with that constant is compared with the measurement. The table counts
wrong verdicts on devices of each of --sizes: jobs whose prediction fits the device and whose measurement does not, then
the same for certain: by the largest prediction (`high_bytes`), of jobs without workspaces of convolutions. The next
column counts jobs whose least prediction (`low_bytes`) does not fit, and whose measurement does. The last column is the
share of jobs whose measurement is at most the largest prediction. PYTHON has PyTorch for CUDA, and timm for the tables of
images; no GPU is needed. FOLDER keeps the recordings, and those in it are used again.
"""
import argparse
import csv
import gzip
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

from fit_programs import TABLES
from warm_python import Server

LIMIT_S = 3600  # of one command
MIB = 2**20


def read_rows(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def record_command(arguments, trace):
    return [arguments.program, "record", "--dry", "--device", arguments.device, "-o", str(trace), "--"]


def record(arguments, server, name, trace):
    """Records a row's program. If the program does not end well, the recording is empty, and the reason is printed."""
    job = server.command(__file__, arguments.table, "--train", name)
    unfinished = trace.with_suffix(".part.tide")
    ran = subprocess.run(record_command(arguments, unfinished) + job, capture_output=True, text=True, timeout=LIMIT_S)
    if ran.returncode != 0:
        said = [line for line in ran.stderr.splitlines() if line.strip() and str(unfinished) not in line]
        print(f"{name}: {'; '.join(said[-2:])}", file=sys.stderr)
        unfinished.unlink(missing_ok=True)
        trace.touch()
    else:
        unfinished.rename(trace)


def record_missing(arguments, table, traces):
    """Records the programs that have no trace yet. @param traces  path by name of a row"""
    missing = {name: trace for name, trace in traces.items() if not trace.exists()}
    if not missing:
        return
    with tempfile.TemporaryDirectory() as scratch:
        server = Server(record_command(arguments, pathlib.Path(scratch, "server.tide")), table.modules)
        try:
            for name, trace in missing.items():
                record(arguments, server, name, trace)  # forks of a process in a dry run are in a dry run, too
        finally:
            server.stop()


def answer(arguments, trace):
    """The answer of `tidepool fit` for a row's program; None if the program did not run."""
    if trace.stat().st_size == 0:
        return None
    command = [arguments.program, "fit", str(trace), "--device", arguments.device, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def wrong_of(measured, predicted, sizes, fits=True):
    """The number of wrong verdicts "fits" (or "does not fit"), of all such verdicts on devices of these sizes: "2 of 100"."""
    called = [(m, size) for p, m in zip(predicted, measured) for size in sizes if (p <= size) == fits]
    return f"{sum((m <= size) != fits for m, size in called)} of {len(called)}"


def print_table(measured, predicted, said, sizes):
    high, low = ([each[key] / MIB for each in said] for key in ("high_bytes", "low_bytes"))
    known = [h if each["convolution_workspace_bytes"] == 0 else math.inf for h, each in zip(high, said)]
    errors = [abs(p - m) / m for p, m in zip(predicted, measured)]
    print("| rows | median error | 90th percentile | largest | wrongly said to fit | wrongly said to fit for certain | "
          "wrongly said not to fit for certain | at most `high` |\n|---|---|---|---|---|---|---|---|")
    within = sum(m <= h for m, h in zip(measured, high)) / len(high)
    print(f"| {len(errors)} | {statistics.median(errors):.2%} | {percentile(errors, 0.9):.2%} | {max(errors):.2%} | "
          f"{wrong_of(measured, predicted, sizes)} | {wrong_of(measured, known, sizes)} | "
          f"{wrong_of(measured, low, sizes, fits=False)} | {within:.0%} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", help=" or ".join(f"{name}.csv" for name in TABLES) + ", also .gz")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--device", default="a100-40gb", help="the GPU that the memory was measured on")
    parser.add_argument("--every", type=int, default=20, help="take every K-th row")
    parser.add_argument("--sizes", help="MiB of devices that a job may fit on")
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
        folder = pathlib.Path(arguments.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        traces = {table.name(row): folder / (table.name(row).replace(":", "-") + ".tide") for row in taken}
        record_missing(arguments, table, traces)
        answers = [answer(arguments, trace) for trace in traces.values()]
    known = [(float(row["measured_mib"]), said) for row, said in zip(taken, answers) if said]
    measured = [most for most, _ in known]
    reserved = [(said["reserved_bytes"] + said["workspace_bytes"]) / MIB for _, said in known]
    rest = [m - r for m, r in zip(measured, reserved)]
    constant = statistics.median(rest[::2])
    step = "every row" if arguments.every == 1 else f"one row in {arguments.every}"
    print(f"{len(known)} of {len(rows)} rows: {step}"
          f"{f', but {len(taken) - len(known)} whose program does not run' if len(known) < len(taken) else ''}. "
          f"Measured - reserved - workspaces on the {len(rest[::2])} of "
          f"even index: median {constant:,.0f} MiB, from {min(rest[::2]):,.0f} to {max(rest[::2]):,.0f} MiB.")
    print(f"\nOf odd index, reserved + workspaces + {constant:,.0f} MiB against measured:\n")
    sizes = [float(size) for size in (arguments.sizes or table.sizes).split(",")]
    print_table(measured[1::2], [r + constant for r in reserved[1::2]], [said for _, said in known[1::2]], sizes)
    others = known[1::2] if table.fitted else known
    print(f"\n{'The same' if table.fitted else 'All'} rows, as `tidepool fit` says it "
          f"(context {known[0][1]['context_bytes'] / MIB:,.0f} MiB):\n")
    print_table([most for most, _ in others], [said["predicted_bytes"] / MIB for _, said in others],
                [said for _, said in others], sizes)


if __name__ == "__main__":
    main()
