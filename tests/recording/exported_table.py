#!/usr/bin/env python3
"""Peaks that `advise` promises for ten jobs of eight ranks, and what the changed programs take.

    PYTHON tests/recording/exported_table.py [--deepspeed PYTHON] [--capacity 0.8x] [--kinds A,B] [--keep FOLDER] [JOB ...]

joint_jobs.py is recorded dry for an A100, once for each job. The change that `advise` puts first is for the rank with the largest
peak; `advise --check` runs the job again with it in every rank, and compares this rank's peak with the promise. No GPU is needed.
PYTHON has PyTorch for CUDA, that of --deepspeed also DeepSpeed. Exit status 1: a peak is off by more than --tolerance percent.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests/recording/joint_jobs.py"
RANKS = 8
JOBS = {kind: [] for kind in ("ddp", "accumulation", "fsdp2", "uneven", "tensor", "mesh", "1f1b", "interleaved", "zero3", "experts")}
JOBS["1f1b"] = ["--batch", 1]  # offloaded, it needs memory of this machine
JOBS["interleaved"] = ["--layers", 2 * RANKS, "--batch", 1]  # at least one in each stage
LIMIT_S = 3600  # of one command


class Failed(Exception):
    """A command that ended with an error, and its last line."""


def run(*command, ends=(0,)):
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if ran.returncode not in ends:
        raise Failed((ran.stderr.strip().splitlines() or ["no message"])[-1])
    return ran.stdout


def row(asked, kind, folder):
    python = asked.deepspeed if kind == "zero3" else sys.executable
    words = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", RANKS, SCRIPT, kind, *JOBS[kind]]
    job = folder / f"{kind}.json"
    if not job.exists():
        run(asked.program, "record", "--dry", "--torch", "--device", "a100-80gb", "-o", job, "--", *words)
    ranks = json.loads(run(asked.program, "info", job, "--json"))["ranks"]
    most = max(range(RANKS), key=lambda rank: ranks[rank]["info"]["ideal_peak_bytes"])
    trace = folder / f"{kind}.rank{most}.tide"
    question = [asked.program, "advise", trace, "--capacity", asked.capacity, "--plans", "none", "--kinds", asked.kinds]
    answer = json.loads(run(*question, "--json", ends=(0, 1)))
    change = next((each for each in answer["changes"] if each["kind"] not in ("batch", "allocator")), None)
    if change is None:
        return [kind, most, answer["base_peak_bytes"] / 2**20, "none", None, None]
    checked = run(*question, "--check", "--", *words, ends=(0, 1))
    off = float(re.search(r"promised: ([-+][\d.]+) %$", checked, re.MULTILINE).group(1))
    named = f"{change['kind']} of {len(change['modules'])} modules" if change["modules"] else change["kind"]
    return [kind, most, answer["base_peak_bytes"] / 2**20, named, change["peak_bytes"] / 2**20, off]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="default: " + " ".join(JOBS))
    parser.add_argument("--deepspeed", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--capacity", default="0.8x")
    parser.add_argument("--kinds", default="checkpoint,selective-checkpoint,offload,early-updates")
    parser.add_argument("--tolerance", type=float, default=0.3, metavar="PERCENT")
    parser.add_argument("--program", default=ROOT / "build/tidepool")
    parser.add_argument("--keep", type=lambda path: pathlib.Path(path).resolve(),
                        help="folder for the recordings; those that are there are not made again")
    asked = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or pathlib.Path(scratch)
        folder.mkdir(exist_ok=True)
        print(f"{'job':<13} {'rank':>4} {'peak MiB':>9} {'promised':>9} {'off by':>8}  change")
        for kind in asked.jobs or JOBS:
            try:
                kind, rank, peak, change, promised, off = row(asked, kind, folder)
            except Failed as error:
                print(f"{kind:<13} {error}", flush=True)
                failed = True
                continue
            numbers = f"{promised:>9.1f} {off:>+7.2f}%" if promised else f"{'-':>9} {'-':>8}"
            print(f"{kind:<13} {rank:>4} {peak:>9.1f} {numbers}  {change}", flush=True)
            failed |= off is None or abs(off) > asked.tolerance
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
