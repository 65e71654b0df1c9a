#!/usr/bin/env python3
"""Whether `tidepool fit` and dry runs of the same job agree: random jobs, each with several capacities.

    verdicts.py --program build/tidepool [--jobs 200] [--first 0]

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


def record_command(program, capacity, trace):
    return [program, "record", "--dry", "--device", DEVICE, "--capacity", f"{capacity}B", "-o", trace, "--"]


class Job:
    def __init__(self, program, server, seed, folder):
        self._program, self._folder, self._seed = program, folder, seed
        self._command = server.command(random_job.__file__, str(seed))
        self.open = 0  # number of verdicts that are not for certain
        self._environment = {**os.environ, "PYTORCH_ALLOC_CONF": random_job.settings(seed)}

    def _run(self, *command):
        return subprocess.run(command, capture_output=True, text=True, env=self._environment)

    def record(self, capacity, trace):
        return self._run(*record_command(self._program, capacity, trace), *self._command)

    def findings(self):
        """For each capacity: what differs, or "" if both agree."""
        trace = os.path.join(self._folder, "job.tide")
        ample = self.record(MUCH, trace)
        if ample.returncode != 0:
            return [f"seed {self._seed}: cannot be recorded: {ample.stderr[-300:]}"]
        reserved = int(ample.stdout.split()[-1])
        draw = random.Random(self._seed)
        capacities = [reserved + (4 << 20), reserved - (4 << 20)]
        capacities += [int(reserved * draw.uniform(0.5, 1.2)) for _ in range(CAPACITIES - len(capacities))]
        return [self._compare(trace, capacity + CONTEXT) for capacity in capacities]

    def _compare(self, trace, capacity):
        verdict = self._run(self._program, "fit", trace, "--device", DEVICE, "--capacity", f"{capacity}B", "--json")
        if verdict.returncode != 0:
            return f"seed {self._seed}: fit: {verdict.stderr[-300:]}"
        fit = json.loads(verdict.stdout)
        run = self.record(capacity, os.path.join(self._folder, "again.tide"))
        died = "OutOfMemoryError" in run.stderr
        if run.returncode != 0 and not died:
            return f"seed {self._seed}, {capacity} B: {run.stderr[-300:]}"
        self.open += not fit["certain"]
        wrong = fit["fits"] and died or not fit["fits"] and not died and fit["certain"]
        return f"seed {self._seed}, {capacity} B: fit says {fit['fits']}, and the job {'died' if died else 'ran'}" if wrong else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    program = str(asked.program.resolve())
    runs, findings, uncertain = 0, [], 0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(record_command(program, MUCH, os.path.join(folder, "server.tide")))
        try:
            for seed in range(asked.first, asked.first + asked.jobs):
                job = Job(program, server, seed, folder)
                found = job.findings()
                uncertain += job.open
                runs += len(found)
                for finding in filter(None, found):
                    findings.append(finding)
                    print(finding, flush=True)
        finally:
            server.stop()
    print(json.dumps({"runs": runs, "findings": findings, "took": [f"{uncertain} not for certain"]}))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
