#!/usr/bin/env python3
"""Prints rows of a table: which jobs `tidepool record --dry` can record with the PyTorch of this Python.

    PYTHON tests/recording/wheels_table.py [--program build/tidepool] [--devices h100-80gb,rtx-4090] [--header]

Each job of wheel_jobs.py is recorded with and without --torch, for each device. "yes": the job ended with 0, the trace
can be read, and, without --torch, kernels have operands. Otherwise, the cell has the message of the job or of tidepool.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from warm_python import Server

LIMIT_S = 300  # of one command
HERE = pathlib.Path(__file__).resolve().parent
JOB = HERE / "wheel_jobs.py"
# The jobs by name, with a description. out_of_memory allocates after its steps until memory runs out, and must get the
# error.
TITLES = {"cnn": "CNN", "embedding": "embedding, AdamW", "attention": "bfloat16 attention",
          "indexing": "indexing, sort, nonzero", "out_of_memory": "out of memory", "compiled": "`torch.compile`"}
ERROR = re.compile(r"^[\w.]*\b(\w*Error|\w+Missing): (.*)")
MOST = 60  # characters of a reason


def said(text):
    """The last error message in the output of a program, or else its last line."""
    lines = [line.strip().removeprefix("tidepool: ") for line in text.splitlines() if line.strip()]
    errors = [found.expand(r"\1: \2") for line in lines if (found := ERROR.match(line))]
    words = (errors or lines or ["nothing said"])[-1].replace("|", "/")
    return words if len(words) <= MOST else words[:MOST - 3] + "..."


def cell(program, server, device, options, job):
    """One job's result, in words."""
    with tempfile.TemporaryDirectory() as folder:
        trace = f"{folder}/run.tide"
        capacity = ["--capacity", "4GiB"] if job == "out_of_memory" else []
        command = [program, "record", "--dry", "--device", device, *capacity, *options, "-o", trace, "--"]
        try:
            ran = subprocess.run([*command, *server.command(str(JOB), job)], capture_output=True, text=True, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            return "does not end in 5 minutes"
        if ran.returncode != 0:
            return said(ran.stderr)
        if job == "out_of_memory" and "out of memory" not in ran.stdout:
            return "was not out of memory"
        info = subprocess.run([program, "info", trace, "--json"], capture_output=True, text=True, timeout=LIMIT_S)
        if info.returncode != 0:
            return said(info.stderr)
        evidence = json.loads(info.stdout)["evidence"]
        known = sum(evidence[kind] for kind in ("const", "parameter", "inferred"))
        return "yes" if options or known > 0 else "no operands of kernels"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/tidepool")
    parser.add_argument("--devices", default="h100-80gb,rtx-4090")
    parser.add_argument("--header", action="store_true", help="print the head of the table before the rows")
    asked = parser.parse_args()
    program = str(pathlib.Path(asked.program).resolve())
    if asked.header:
        print("| PyTorch | device | | " + " | ".join(TITLES.values()) + " |")
        print("|---|---|---" + "|---" * len(TITLES) + "|")
    version = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], check=True, capture_output=True,
                             text=True, timeout=LIMIT_S).stdout.strip()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for device in asked.devices.split(","):
        with tempfile.TemporaryDirectory() as folder:
            server = Server([program, "record", "--dry", "--device", device, "-o", f"{folder}/server.tide", "--"])
            try:
                for options in ([], ["--torch"]):
                    cells = [cell(program, server, device, options, job) for job in TITLES]
                    print(f"| {version} | {device} | {' '.join(options)} | {' | '.join(cells)} |", flush=True)
            finally:
                server.stop()


if __name__ == "__main__":
    main()
