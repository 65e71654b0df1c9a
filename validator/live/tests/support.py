"""Imports and helpers of all tests here. Without torch or the built program, the tests are skipped."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../../../tracer/torch")]

try:
    import torch
except ImportError:
    if "TIDEPOOL_REQUIRE_TORCH" in os.environ:
        raise
    raise unittest.SkipTest("PyTorch is not installed; the tests of live jobs need it") from None

PROGRAM = os.environ.get("TIDEPOOL_PROGRAM", os.path.join(HERE, "../../../build/tidepool"))
if not os.access(PROGRAM, os.X_OK):
    raise unittest.SkipTest(f"{PROGRAM} is not built; TIDEPOOL_PROGRAM may name it")

if os.environ.get("TIDEPOOL_NATIVE") != "off" and shutil.which("g++") is None:
    os.environ["TIDEPOOL_NATIVE"] = "off"

import models
import tidepool_torch
from tidepool_live import LiveProgram, follower_for
from tidepool_live.device import HostDevice
from tidepool_live.saved import saved_tensors_of
from tidepool_torch import native
from tidepool_torch.devices import find_device
from tidepool_torch.raw_file import RawFile
from tidepool_torch.replay import NativeRecorder

torch.set_num_threads(1)


def tidepool(*arguments):
    result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    assert result.returncode == 0, f"{arguments}: {result.stdout}{result.stderr}"
    return result.stdout


# Follows a plan natively if its trace was recorded so.
Follower, SavedTensors = follower_for, saved_tensors_of


class UncountedHost(RawFile):
    """Its traces leave the host's time out, as those of measured times do, so that copies cost a small step something."""

    def write(self, **record):
        if record.get("key") != "times_error":
            super().write(**record)


def record(step, network, optimizer, path):
    """Records the second step of a job as TIDEPOOL_NATIVE says."""
    if os.environ.get("TIDEPOOL_NATIVE") == "off":
        program = tidepool_torch.record_steps(step, network, optimizer, device="a100").program
        del program.meta["times_error"]
        program.save(path)
        return
    step()
    with tempfile.TemporaryDirectory() as folder:
        file = UncountedHost(folder)
        with NativeRecorder(native.core(), network, optimizer, file, find_device("a100")) as recorder:
            step()
            recorder.iteration()
        file.close()
        tidepool("import", folder, "-o", path)


class Planned:
    """A recorded step of a network and a plan for it, in a temporary folder. model: a name of models.make(), or a function
    that returns (network, optimizer, step)."""

    def __init__(self, model, policy, capacity):
        self._folder = tempfile.TemporaryDirectory()
        self.trace, self.plan = self.file("step.jsonl"), self.file("step.plan")
        network, optimizer, step = models.make(model) if isinstance(model, str) else model()
        record(step, network, optimizer, self.trace)
        tidepool("simulate", self.trace, "--first", "--policy", policy, "--capacity", capacity, "--overhead-limit", "none",
                 "--plan-out", self.plan)
        tidepool("run", "--plan", self.plan, "--trace", self.trace, "--program-out", self.file("program.json"))
        self.program = LiveProgram.load(self.file("program.json"))

    def file(self, name):
        return os.path.join(self._folder.name, name)

    def close(self):
        self._folder.cleanup()


def train(model, steps, plan=None, device=None):
    """Trains a fresh network. A plan is followed from the second step on. Returns the losses, the parameters and buffers, and
    the report (None without a plan)."""
    network, optimizer, step = models.make(model)
    losses = [step()]
    follower = None
    if plan is not None:
        follower = Follower(plan, network, optimizer, device or HostDevice())
        with follower:
            losses += [step() for _ in range(steps - 1)]
    else:
        losses += [step() for _ in range(steps - 1)]
    state = [tensor.clone() for tensor in network.state_dict().values()]
    return losses, state, follower.report.content() if follower else None


def check_numbers(case, make, policy, capacity, drive, device=None):
    """Runs a job with a plan, as `tidepool run` does, and without one. Its values must be the same.

    case         the test
    make()       network, optimizer and step() as for Planned, and whatever drive() needs
    drive(made)  takes steps after the first; returns values
    Returns the report, and the predicted numbers with the plan's limit.
    """
    planned = Planned(lambda: make()[:3], policy, capacity)
    case.addCleanup(planned.close)

    def run(plan):
        made = make()
        values = [made[2]()]
        if plan is None:
            return values + drive(made), None
        with Follower(plan, made[0], made[1], device or HostDevice()) as follower, SavedTensors(follower):
            values += drive(made)
        return values, follower.report.content()

    values, report = run(planned.program)
    case.assertEqual(values, run(None)[0])
    return report, {**planned.program.predicted, "limit_bytes": planned.program.limit}
