#!/usr/bin/env python3
"""Prints, for jobs of several ranks, which part of their copies is hidden, and how much time their steps lose.

    PYTHON tests/recording/hidden_table.py [--dlrm FOLDER] [--ranks 8] [--batch 8] [--program PROGRAM] [--keep FOLDER]

The ranks of a job follow plans of tide(with=swap) or, with recomputation, of tide, on the pool ideal, for shares of each
rank's own peak. There are two jobs:

  dlrm  PARAM's DLRM step on eight V100. FOLDER has dlrm_kineto.tar.gz and dlrm_pytorch_et.tar.gz; without the first,
        the job is left out. One kernel uses nearly all memory at once, so only 0.9995x is planned.
  gpt   tests/dry/fsdp2.py, a GPT sharded with FSDP2. Its first two steps are recorded dry, and simulated without the
        host's time. It runs with two batch sizes, 2 and --batch.

A row has the time of the job without limits and with plans, the bound that no such plans beat, the copied bytes of all
ranks, and the hidden share of the copies' time, as in notebooks/guide/ranks.md. PYTHON has PyTorch for CUDA; no GPU is
needed.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("TIDEPOOL_SHARED", ROOT / "../shared/data"))
LIMIT_S = 3600  # of one command


def run(*command):
    ended = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           check=False, timeout=LIMIT_S)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} exited with {ended.returncode}:\n{ended.stdout[-2000:]}"
                 f"{ended.stderr[-4000:]}")
    return ended.stdout


def row(program, name, job, policy, capacity, *options):
    plans = json.loads(run(program, "simulate", job, *options, "--policy", policy, "--pool", "ideal",
                           "--capacity", capacity, "--json"))
    ranks, without = plans["ranks"], plans["baseline_ns"]
    bound = f"{plans['bound_ns'] / 1e6:9.2f}" if plans["bound_ns"] is not None else f"{'none':>9}"
    if plans["makespan_ns"] is None:
        failed = sum(rank["outcome"] != "ok" for rank in ranks)
        print(f"{name:<12} {policy:<15} {capacity:>8} {without / 1e6:>9.2f} {'-':>9} {'-':>9} {bound}  {failed} of {len(ranks)} ranks "
              f"have no plan", flush=True)
        return
    copied = sum(rank["swap_out_bytes"] + rank["swap_in_bytes"] for rank in ranks)
    time, shown = (sum(rank[key] for rank in ranks) for key in ("copy_ns", "exposed_copy_ns"))
    hidden = f"{1 - shown / time:8.1%}" if time else f"{'-':>8}"
    makespan = plans["makespan_ns"]
    print(f"{name:<12} {policy:<15} {capacity:>8} {without / 1e6:>9.2f} {makespan / 1e6:>9.2f} {makespan / without - 1:>+9.2%} {bound} "
          f"{copied / 2**20:>10.1f} {hidden}", flush=True)


def dlrm(arguments, folder):
    job = folder / "dlrm.json"
    run(arguments.program, "import", arguments.dlrm / "dlrm_kineto.tar.gz", "--format", "kineto", "--with",
        arguments.dlrm / "dlrm_pytorch_et.tar.gz", "-o", job)
    row(arguments.program, "dlrm", job, "tide(with=swap)", "0.9995x", "--machine", "v100-pcie3")


def gpt(arguments, folder, batch, capacities):
    job = folder / f"gpt{batch}.json"
    run(arguments.program, "record", "--dry", "-o", job, "--", sys.executable, "-m", "torch.distributed.run", "--standalone",
        "--nproc-per-node", arguments.ranks, ROOT / "tests/dry/fsdp2.py", "--batch", batch)
    for policy in "tide(with=swap)", "tide":
        for capacity in capacities:
            row(arguments.program, f"gpt, batch {batch}", job, policy, capacity, "--of", "host", "--scale", "0", "--machine",
                "a100-pcie4")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dlrm", type=pathlib.Path, default=SHARED / "multigpu/dlrm8", metavar="FOLDER")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--batch", type=int, default=8, help="the batch of each rank of the second GPT; that of the first is 2")
    parser.add_argument("--program", default=ROOT / "build/tidepool")
    parser.add_argument("--keep", type=lambda path: pathlib.Path(path).resolve(), help="folder for the recordings")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or pathlib.Path(scratch)
        folder.mkdir(exist_ok=True)
        print(f"{'job':<12} {'policy':<15} {'capacity':>8} {'ms':>9} {'planned':>9} {'':>9} {'bound':>9} {'MiB copied':>10} {'hidden':>8}")
        if (arguments.dlrm / "dlrm_kineto.tar.gz").exists():
            dlrm(arguments, folder)
        else:
            print(f"dlrm: left out, {arguments.dlrm} has no dlrm_kineto.tar.gz")
        gpt(arguments, folder, 2, ("0.99x", "0.9x", "0.8x"))
        gpt(arguments, folder, arguments.batch, ("0.95x", "0.9x", "0.8x"))


if __name__ == "__main__":
    main()
