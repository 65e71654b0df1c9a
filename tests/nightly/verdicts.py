#!/usr/bin/env python3
"""Whether `tidepool fit` and dry runs of the same job agree: random jobs, each with several capacities.

    verdicts.py --program build/tidepool [--jobs 200] [--first 0]
    verdicts.py --program build/tidepool --named

The second line is about the jobs of NAMED, with CUDA graphs, streams, settings, inference and sizes that values decide. It
prints what each reserves, and how far `reserved` of `fit` is from that. Some need transformers, torch_geometric or torchvision.

`fit` judges a recording of the job on a device with much memory. Then the job runs dry with the judged memory, and dies or
not. A verdict that is not for certain must not be wrong either if it says "fits". The last line is a JSON object: runs,
findings and remarks.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "dry"), str(TESTS / "recording")]
import random_job  # noqa: E402
from warm_python import Server  # noqa: E402

DEVICE = "rtx-3090"
CONTEXT = 300 << 20  # of that device, as `fit` assumes and dry runs take
MUCH = 512 << 30
CAPACITIES = 5

EXPANDABLE, SPLITS = "expandable_segments:True", "max_split_size_mb:64"
STATED, VALUES = "dry/stated.py", "recording/values_jobs.py"
CUDA = ("--device", "cuda")
NAMED = {  # script and arguments, setting of the allocator
    "graphs": ([STATED, "graphs"], ""), "graphs, expandable": ([STATED, "graphs"], EXPANDABLE),
    "graphed training": ([STATED, "graphed"], ""), "leak": ([STATED, "leak"], ""), "side stream": ([STATED, "side"], ""),
    "side stream, expandable": ([STATED, "side"], EXPANDABLE), "memory pools": ([STATED, "pool"], ""),
    "splits": ([STATED, "splits"], ""),
    "splits, limited": ([STATED, "splits"], SPLITS), "splits, expandable": ([STATED, "splits"], EXPANDABLE),
    "inference": ([STATED, "infer"], ""), "decoding": ([STATED, "decode"], ""),
    "decoding, expandable": ([STATED, "decode"], EXPANDABLE), "no kernels": ([STATED, "empty"], ""),
    "mixtral": ([VALUES, "mixtral", *CUDA], ""), "qwen3_moe": ([VALUES, "qwen3_moe", *CUDA], ""),
    "experts": ([VALUES, "hit_experts", *CUDA], ""), "switch": ([VALUES, "switch", *CUDA], ""),
    "shared expert": ([VALUES, "shared_expert", *CUDA], ""), "gat": ([VALUES, "gat", *CUDA], ""),
    "detection": ([VALUES, "detection", *CUDA], ""), "packed": ([VALUES, "packed", *CUDA], ""),
    "padding": ([VALUES, "padding", *CUDA], "")}


def record_command(program, capacity, trace):
    return [program, "record", "--dry", "--device", DEVICE, "--capacity", f"{capacity}B", "-o", trace, "--"]


class Job:
    """A script's run with arguments and a setting of the allocator. Its last word is what it reserved, in bytes."""

    def __init__(self, program, server, name, script, setting, folder):
        self._program, self._folder, self._name = program, folder, name
        self._command = server.command(str(TESTS / script[0]), *script[1:])
        self.open = self.died = 0  # number of verdicts that are not for certain, and of runs that died
        self.reserved = self.apart = None
        self._environment = {**os.environ, "PYTORCH_ALLOC_CONF": setting}

    def _run(self, *command):
        return subprocess.run(command, capture_output=True, text=True, env=self._environment)

    def record(self, capacity, trace):
        return self._run(*record_command(self._program, capacity, trace), *self._command)

    def findings(self):
        """For each capacity: what differs, or "" if both agree."""
        trace = os.path.join(self._folder, "job.tide")
        ample = self.record(MUCH, trace)
        if ample.returncode != 0:
            return [f"{self._name}: cannot be recorded: {ample.stderr[-300:]}"]
        self.reserved = reserved = int(ample.stdout.split()[-1])
        self.apart = self._fit(trace, MUCH)["reserved_bytes"] / reserved - 1
        draw = random.Random(self._name)
        capacities = [reserved + (4 << 20), reserved - (4 << 20)]
        capacities += [int(reserved * draw.uniform(0.5, 1.2)) for _ in range(CAPACITIES - len(capacities))]
        return [self._compare(trace, capacity + CONTEXT) for capacity in capacities]

    def _fit(self, trace, capacity):
        verdict = self._run(self._program, "fit", trace, "--device", DEVICE, "--capacity", f"{capacity}B", "--json")
        return json.loads(verdict.stdout)

    def _compare(self, trace, capacity):
        fit = self._fit(trace, capacity)
        run = self.record(capacity, os.path.join(self._folder, "again.tide"))
        died = "OutOfMemoryError" in run.stderr
        if run.returncode != 0 and not died:
            return f"{self._name}, {capacity} B: {run.stderr[-300:]}"
        self.open += not fit["certain"]
        self.died += died
        wrong = fit["fits"] and died or not fit["fits"] and not died and fit["certain"]
        return f"{self._name}, {capacity} B: fit says {fit['fits']}, and the job {'died' if died else 'ran'}" if wrong else ""


def jobs_of(asked):
    """Name, script and setting of each job."""
    if asked.named:
        return [(name, script, setting) for name, (script, setting) in NAMED.items()]
    seeds = range(asked.first, asked.first + asked.jobs)
    return [(f"seed {seed}", ["dry/random_job.py", str(seed)], random_job.settings(seed)) for seed in seeds]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--named", action="store_true")
    asked = parser.parse_args()
    program = str(asked.program.resolve())
    runs, findings, uncertain, died = 0, [], 0, 0
    if asked.named:
        print("| job | reserved, MiB | `fit` apart | runs | died | not for certain | wrong |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        server = Server(record_command(program, MUCH, os.path.join(folder, "server.tide")))
        try:
            for name, script, setting in jobs_of(asked):
                job = Job(program, server, name, script, setting, folder)
                found = job.findings()
                if asked.named and job.reserved:
                    print(f"| {name} | {job.reserved / 2**20:,.0f} | {job.apart:+.2%} | {len(found)} | {job.died} | {job.open} | "
                          f"{len(list(filter(None, found)))} |", flush=True)
                uncertain += job.open
                died += job.died
                runs += len(found)
                for finding in filter(None, found):
                    findings.append(finding)
                    print(finding, flush=True)
        finally:
            server.stop()
    print(json.dumps({"runs": runs, "findings": findings, "took": [f"{died} died", f"{uncertain} not for certain"]}))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
