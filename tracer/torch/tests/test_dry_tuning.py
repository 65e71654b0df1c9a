"""Autotuning in a dry run: what it takes of Triton and Inductor. Neither needs to be able to compile here."""

import contextlib
import io
import subprocess
import sys
import types
import unittest
from unittest import mock

from support import torch  # noqa: F401

from tidepool_torch import dry_tuning

INDUCTOR = """
from tidepool_torch import dry_tuning
dry_tuning.attach()
from types import SimpleNamespace
from torch._inductor import select_algorithm
from torch._inductor.fx_passes import pad_mm
from torch._inductor.runtime import benchmarking, triton_heuristics
def fail(): raise AssertionError("measured")
assert benchmarking.benchmarker.benchmark_gpu(fail) == 1
assert pad_mm.get_cached_should_pad("any product") is True
tuner = SimpleNamespace(launchers=["first", "second"])
kind = triton_heuristics.CachingAutotuner
assert kind.benchmark_all_configs(tuner) == {"first": 1}
assert kind.coordinate_descent_tuning(tuner, "first", 1, 2) == "first"
"""


class DryTuningTest(unittest.TestCase):
    def test_inductor_measures_nothing(self):
        ran = subprocess.run([sys.executable, "-c", INDUCTOR], capture_output=True, text=True, timeout=300,
                             env={"PYTHONPATH": ":".join(sys.path)})
        self.assertEqual((ran.returncode, ran.stdout), (0, ""), ran.stderr)
        self.assertNotIn("tidepool", ran.stderr)

    def test_triton_takes_the_first_configuration_that_works(self):
        for of_graph in (False, True):  # with a CUDA graph, Triton 3.0 has one time for a configuration
            tried = []

            class Autotuner:
                def _bench(self, config):
                    tried.append(config)
                    time = float("inf") if config == "too large" else 5.0
                    return time if of_graph else [time] * 3

                def run(self, *configs):
                    times = {config: self._bench(config) for config in configs}
                    return min(times, key=lambda config: times[config])

            dry_tuning._change("triton.runtime.autotuner", types.SimpleNamespace(Autotuner=Autotuner))
            self.assertEqual(Autotuner().run("too large", "first", "second"), "first")
            self.assertEqual(tried, ["too large", "first"])
            self.assertEqual(Autotuner().run("second", "first"), "second")

    def test_what_triton_measures_runs_once(self):
        def do_bench(*_args, **_kwargs):
            self.fail("measured")

        module = types.SimpleNamespace(do_bench=do_bench, do_bench_cudagraph=do_bench)
        dry_tuning._change("triton.testing", module)
        calls = []
        with mock.patch.object(dry_tuning, "_say") as say:
            self.assertEqual(module.do_bench(lambda: calls.append(1), quantiles=(0.5, 0.2, 0.8)), [1, 1, 1])
            self.assertEqual(module.do_bench(lambda: calls.append(1), warmup=5), 1)
        self.assertEqual(len(calls), 2)
        say.assert_called()  # the trace states that a device would measure

    def test_a_version_without_what_is_changed_is_said(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            dry_tuning._change("torch._inductor.fx_passes.pad_mm", types.SimpleNamespace())
        self.assertIn("tidepool dry run: torch._inductor.fx_passes.pad_mm: ", said.getvalue())


if __name__ == "__main__":
    unittest.main()
