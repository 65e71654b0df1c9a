"""Plans that Inductor carries out on the CPU, in unmodified scripts."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

from support import HERE, PROGRAM, tidepool, torch
from tidepool_live.compiled_session import CompiledSession

JOB = [sys.executable, os.path.join(HERE, "compiled_job.py")]


@unittest.skipUnless(shutil.which("g++"), "Inductor needs a C++ compiler")
@unittest.skipIf(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15), "earlier versions compile again while they are recorded")
class CompiledTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kept = tempfile.TemporaryDirectory()  # by which a job need not be compiled again for its losses alone
        cls.addClassCleanup(kept.cleanup)
        cls.environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": kept.name}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, name):
        return os.path.join(self.folder, name)

    def ran(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True)

    def check(self, model, capacity):
        """The compiled step saves what the plan saves, within 0.5 %, and its losses are those of the job alone."""
        trace, plan, job = self.file("step.tide"), self.file("step.plan"), [*JOB, model]
        recorded = self.ran(PROGRAM, "record", "--torch", "--no-gpu", "-o", trace, "--", *job)
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        tidepool("simulate", trace, "--first", "--policy", "none", "--capacity", "none", "--plan-out", plan)
        tidepool("run", "--plan", plan, "--trace", trace, "--program-out", self.file("all.json"))
        with open(self.file("all.json"), encoding="utf-8") as file:
            saved_without = sum(json.load(file)["saved"].values())
        tidepool("simulate", trace, "--first", "--policy", "tide-remat", "--capacity", capacity, "--plan-out", plan)
        result = self.ran(PROGRAM, "run", "--json", "--plan", plan, "--trace", trace, "--", *job)
        self.assertEqual(result.returncode, 0, result.stderr)
        said = json.loads(result.stdout)
        self.assertLessEqual(abs(said["measured_held_bytes"] / said["predicted_held_bytes"] - 1), 0.005)
        self.assertLess(said["measured_held_bytes"], 0.7 * saved_without)
        losses = [line for line in result.stderr.splitlines() if line.startswith("0x1")]
        self.assertEqual(losses, self.ran(*job).stdout.split())
        self.assertEqual(len(losses), 3)

    def test_what_the_job_gets_counts_as_held_where_the_plan_keeps_it(self):
        x = torch.ones(64)
        for kept, held in ((True, 512), (False, 256)):
            session = CompiledSession.__new__(CompiledSession)  # without changing Inductor
            session._partition = types.SimpleNamespace(saves=lambda node, kept=kept: kept and node.name == "add")
            session._held, session._copies = {}, {}
            graph = torch.fx.symbolic_trace(lambda x: (x + 1, x * 2))
            graph.meta["tidepool_outputs"] = 1
            run = session._compile(lambda graph, _inputs: lambda given: graph(*given), graph, [x])
            run([x])
            self.assertEqual(session.report()["held_bytes"], held)

    def test_a_perceptron_saves_what_its_plan_saves(self):
        self.check("mlp", "0.7x")

    def test_a_transformer_saves_what_its_plan_saves(self):
        self.check("gpt", "0.7x")

    def test_a_convolutional_network_saves_what_its_plan_saves(self):
        self.check("cnn", "0.7x")


if __name__ == "__main__":
    unittest.main()
