#!/usr/bin/env python3
"""Compares peaks under PyTorch's activation_memory_budget, measured on a GPU by others, with those of dry runs.

The measurements are allocators/ackaudit.csv of the published inputs ($TIDEPOOL_SHARED or ../shared/data): models
compiled by aot_eager and Inductor at several budgets, on a GTX 1650. Each measured run, a process with one budget after the other,
is repeated on the fake of a GPU of the same compute capability. Prints a table of the measured numbers and of the
differences of the dry ones from them; ends with 1 if a number differs. Needs a PyTorch for CUDA (the measured runs had
2.14.0), Triton for Inductor, and transformers; no GPU.

    tests/recording/budget_peaks_table.py [--program build/tidepool] [--python PYTHON] [RUN...]
"""

import argparse
import csv
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SHARED = pathlib.Path(os.environ.get("TIDEPOOL_SHARED", HERE.parents[2] / "shared" / "data"))
TABLE = "allocators/ackaudit.csv"
LIMIT_S = 3600  # of a recording
DEVICE = "t4"  # of compute capability 7.5 too, so that PyTorch takes the same kernels
NUMBERS = ("n_items", "n_saved", "resident_before_bytes", "peak_rep1_bytes", "peak_reps2to5_bytes")


def found_by(program, python, model, scale, backend, budgets):
    """The numbers of a dry run, by budget."""
    with tempfile.TemporaryDirectory() as folder:
        job = [python, HERE / "budget_peaks_job.py", model, scale, backend, ",".join(budgets)]
        ran = subprocess.run([program, "record", "--dry", "--device", DEVICE, "-o", f"{folder}/run.tide", "--", *job],
                             capture_output=True, text=True, timeout=LIMIT_S)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if len(lines) < len(budgets):
        sys.exit(f"{model} {scale}: {len(lines)} of {len(budgets)} budgets ran:\n{ran.stderr}")
    for line in lines:
        if len(set(line["peaks"][1:])) > 1:
            sys.exit(f"{model} {scale}, {line['budget']}: peaks {line['peaks']}; expected equal ones from the second step on")
    return {line["budget"]: [line["items"], line["saved"], line["resident"], *line["peaks"][:2]] for line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", metavar="RUN", help="names in the table's first column; all unless given")
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--python", default=os.environ.get("TIDEPOOL_TORCH_PYTHON", sys.executable))
    asked = parser.parse_args()
    if not (SHARED / TABLE).exists():
        print(f"skipped: {SHARED / TABLE} is not there")
        return 0
    with open(SHARED / TABLE, newline="") as file:
        rows = [row for row in csv.DictReader(file) if not asked.runs or row["run"] in asked.runs]
    print("| run | model | budget | items, saved | resident | peak, first | peak, later | difference |")
    print("|---|---|---|---|---|---|---|---|")
    equal = compared = 0
    for (run, model, scale, backend), group in itertools.groupby(
            rows, key=lambda row: (row["run"], row["model"], row["scale"], row["backend"])):
        cells = {row["budget"] or "eager": [int(row[number]) for number in NUMBERS] for row in group}
        found = found_by(asked.program, asked.python, model, scale, backend, list(cells))
        for budget, measured in cells.items():
            differences = [mine - theirs for mine, theirs in zip(found[budget], measured)]
            items, saved, *sizes = measured
            print(f"| {run} | {model} {scale} | {budget} | {items}, {saved} | " + " | ".join(f"{size:,}" for size in sizes) +
                  f" | {'none' if not any(differences) else ', '.join(f'{d:+,}' for d in differences)} |", flush=True)
            equal += not any(differences)
            compared += 1
    print(f"\n{equal} of {compared} cells are equal in all five numbers")
    return int(equal < compared)


if __name__ == "__main__":
    sys.exit(main())
