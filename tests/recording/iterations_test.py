"""The iterations of real jobs, with loops of their own and with loops of libraries. All iterations are found, however
many micro-batches are accumulated and however often a log is written. Jobs whose library is not installed are
skipped."""

import importlib.util
import os
import sys
import unittest

from matrix_test import Jobs

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "iteration_jobs.py")


class Iterations(Jobs):
    def check(self, kind, iterations, accumulated, logged):
        for missing in (each for each in {"peft": ("peft", "accelerate", "transformers"), "lightning": ("lightning",),
                                          "transformers": ("transformers", "accelerate")}.get(kind, ())
                        if importlib.util.find_spec(each) is None):
            self.skipTest(f"{missing} is not installed")
        job = [sys.executable, JOB, kind, str(iterations), str(accumulated), str(logged)]
        trace = self.file(kind + ".tide")
        result = self.run_program("record", "--dry", "-o", trace, "--", *job)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.facts(trace)["iterations"], iterations, (kind, accumulated, logged))
        if kind == "evaluation":
            return
        for way in (["--no-gpu"], ["--dry"]):  # the first step makes the optimizer's state, and is not recorded
            result = self.run_program("record", "--torch", *way, "--iterations", str(iterations - 1), "-o", trace, "--", *job)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.facts(trace)["iterations"], iterations - 1, (kind, accumulated, logged, way))

    def test_iterations_of_a_loop_that_logs_every_second_step(self):
        self.check("loop", 8, 1, 2)

    def test_iterations_of_a_loop_that_accumulates_and_logs_every_fourth_step(self):
        self.check("loop", 9, 2, 4)

    def test_iterations_of_an_evaluation_that_logs_every_fourth_batch(self):
        self.check("evaluation", 12, 1, 4)

    def test_iterations_of_lightning(self):
        self.check("lightning", 6, 4, 2)

    def test_iterations_of_the_trainer_of_transformers(self):
        self.check("transformers", 6, 2, 2)

    def test_iterations_of_lora_in_a_loop_of_accelerate(self):
        self.check("peft", 6, 2, 2)


if __name__ == "__main__":
    unittest.main()
