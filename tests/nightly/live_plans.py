#!/usr/bin/env python3
"""Plans of every policy on live PyTorch jobs: the job computes the same numbers, in the plan's memory.

    live_plans.py --program build/tidepool [--networks lstm,unet] [--policies dtr,tide]

Each network trains six steps, and follows a plan from the second on. A policy that has no plan, or one that `tidepool run`
refuses, is left out. The last line is a JSON object: runs and findings.
"""
import argparse
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAPACITIES = ("0.5x", "0.6x", "0.7x", "0.85x")
STEPS = 6
# The backward of a custom function gets its two saved tensors, of 128 KiB each, before the plan brings both back.
BEYOND = {"custom": 2 * 512 * 64 * 4}


def made(network):
    import torch
    from live_networks import NETWORKS

    torch.manual_seed(0)
    return NETWORKS[network]()


def findings_of(network, policy, capacity):
    """The findings about one plan, None if there is no plan to follow."""
    from support import Follower, HostDevice, Planned, SavedTensors

    try:
        planned = Planned(lambda: made(network), policy, capacity)
    except AssertionError as failed:  # a command of the program ended with an exit code other than 0
        said = "outcome " in str(failed) or "tidepool: " in str(failed)
        return None if said else [f"ended without a reason: {failed}"]
    try:
        with open(planned.plan, encoding="utf-8") as file:
            limit = json.loads(file.readline())["capacity_bytes"] + BEYOND.get(network, 0)
        _, _, step = made(network)
        alone = [step() for _ in range(STEPS)]
        model, optimizer, step = made(network)
        followed = [step()]
        with Follower(planned.program, model, optimizer, HostDevice()) as follower, SavedTensors(follower):
            followed += [step() for _ in range(STEPS - 1)]
        report = follower.report.content()
    except Exception as error:
        return [f"{type(error).__name__}: {error}".splitlines()[0]]
    finally:
        planned.close()
    checks = ((followed == alone, f"losses are {followed}; expected {alone}"),
              (report["iterations"] == STEPS - 1, f"{report['iterations']} of {STEPS - 1} steps were followed"),
              (not report["left_out"], f"actions were left out: {report['left_out']}"),
              (report["peak_bytes"] <= limit, f"took {report['peak_bytes']:,} bytes; expected at most {limit:,}"))
    return [what for holds, what in checks if not holds]


def try_policy(network, policy, results):
    """The work of a process: puts the findings for each capacity."""
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 2)
    for capacity in CAPACITIES:
        results.put((capacity, findings_of(network, policy, capacity)))


class Trial:
    """A process for a network under a policy, since a fault may end it."""

    def __init__(self, network, policy):
        self.what = f"{network} under {policy}"
        self._results = multiprocessing.SimpleQueue()
        self._process = multiprocessing.Process(target=try_policy, args=(network, policy, self._results))
        self._process.start()
        self.sentinel = self._process.sentinel

    def outcome(self):
        """(number of plans, findings) of the process, which has ended."""
        self._process.join()
        plans, findings = 0, []
        while not self._results.empty():
            capacity, found = self._results.get()
            plans += found is not None
            findings += [f"{self.what} at {capacity}: {each}" for each in found or []]
        if self._process.exitcode != 0:
            findings.append(f"{self.what}: the process ended with {self._process.exitcode}")
        return plans, findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--networks")
    parser.add_argument("--policies")
    asked = parser.parse_args()
    os.environ["TIDEPOOL_PROGRAM"] = asked.program
    sys.path[:0] = [str(ROOT / "validator" / "live" / "tests"), str(ROOT / "tests" / "nightly")]
    try:
        import support  # noqa: F401
        from live_networks import NETWORKS
    except unittest.SkipTest as why:
        print(json.dumps({"runs": 0, "findings": [], "took": [f"skipped: {why}"]}))
        return 0
    listed = json.loads(subprocess.run([asked.program, "policies", "--json"], capture_output=True, check=True).stdout)
    policies = asked.policies.split(",") if asked.policies else [each["name"] for each in listed if each["kind"] != "pool"]
    networks = asked.networks.split(",") if asked.networks else list(NETWORKS)
    pairs = [(network, policy) for network in networks for policy in policies]
    runs, findings, trials = 0, [], []
    while pairs or trials:
        while pairs and len(trials) < os.cpu_count():
            trials.append(Trial(*pairs.pop(0)))
        ended = multiprocessing.connection.wait([each.sentinel for each in trials])
        for trial in [each for each in trials if each.sentinel in ended]:
            trials.remove(trial)
            plans, found = trial.outcome()
            runs += plans
            findings += found
            print(f"{trial.what}: {plans} plans, {len(found)} findings", flush=True)
    print(json.dumps({"runs": runs, "findings": findings}))
    return 1 if findings else 0


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    sys.exit(main())
