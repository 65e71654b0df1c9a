"""Tests of the allocator's library. They call it as PyTorch does, with the requests of a network that really trains."""

import ctypes
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

from support import HERE, PROGRAM, models, tidepool

import tidepool_torch
from tidepool_live.allocator import load

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(PROGRAM)), "python", "libtidepool_allocator.so")


class Served:
    """Buffers in the library's memory. Each is filled with its own mark until it ends."""

    def __init__(self, library):
        self._library, self.live = library, {}
        self.asked = self.damaged = 0

    def alloc(self, buffer):
        memory = self._library.tidepool_alloc(buffer.size, 0, None)
        self.asked += 1
        mark = self.asked % 251
        ctypes.memset(memory, mark, buffer.size)
        self.live[buffer] = (memory, mark)

    def free(self, buffer):
        memory, mark = self.live.pop(buffer)
        self.damaged += ctypes.string_at(memory, buffer.size) != bytes([mark]) * buffer.size
        self._library.tidepool_free(memory, buffer.size, 0, None)


@unittest.skipUnless(os.path.exists(LIBRARY), f"{LIBRARY} is not built")
class Allocator(unittest.TestCase):
    def test_three_steps_of_a_gpt_are_served_as_planned_after_weights_in_another_order(self):
        network, optimizer, step = models.make("gpt")
        once = tidepool_torch.record_steps(step, network, optimizer, device="a100")
        with tempfile.TemporaryDirectory() as folder:
            trace, layout = os.path.join(folder, "step.jsonl"), os.path.join(folder, "step.layout")
            once.save(trace)
            tidepool("pack", trace, "--pool", "tide-pool", "--layout-out", layout)
            os.environ.update(TIDEPOOL_LAYOUT=layout, TIDEPOOL_LAYOUT_MEMORY="host")
            library = load(LIBRARY)
            library.tidepool_report()  # reads its settings now
            del os.environ["TIDEPOOL_LAYOUT"], os.environ["TIDEPOOL_LAYOUT_MEMORY"]
        program = tidepool_torch.record_steps(step, network, optimizer, steps=3, warmup=0).program
        served = Served(library)
        existing = [buffer for buffer in program.existing if buffer.kind != "gradient"]  # no gradient exists yet
        random.Random(1).shuffle(existing)
        for buffer in existing:
            served.alloc(buffer)
        for what, subject in program.steps:
            if what == "alloc":
                served.alloc(subject)
            elif what == "free" and subject in served.live:
                served.free(subject)
        report = json.loads(library.tidepool_report())
        self.assertEqual((served.damaged, report["failed"], report["unknown_frees"], report["outside"]), (0, 0, 0, 0))
        self.assertEqual(report["planned"] + report["fallback"], served.asked)
        self.assertGreater(report["planned"], 0.98 * served.asked)


class Benchmark(unittest.TestCase):
    def test_cudnns_choice_by_trial_stays_off_and_the_script_is_told_once(self):
        script = ("import torch; from tidepool_live.allocator import keep_benchmark_off; keep_benchmark_off()\n"
                  "torch.backends.cudnn.benchmark = True\n"
                  "print(torch.backends.cudnn.benchmark)\n"
                  "with torch.backends.cudnn.flags(benchmark=True): print(torch.backends.cudnn.benchmark)\n")
        packages = os.pathsep.join(os.path.join(HERE, folder) for folder in ("..", "../../../tracer/torch"))
        done = subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": packages}, capture_output=True,
                              text=True)
        self.assertEqual((done.stdout, done.returncode), ("False\nFalse\n", 0), done.stderr)
        self.assertEqual(done.stderr, "tidepool_live: torch.backends.cudnn.benchmark stays off: PyTorch cannot ask a pluggable "
                                      "allocator for its largest free block\n")


if __name__ == "__main__":
    unittest.main()
