"""The recording of a job's first calls, here of a job on the CPU."""

import json
import pathlib
import tempfile
import unittest

from support import hide_optimizers, torch

from torch.utils._python_dispatch import _get_current_dispatch_mode

from tidepool_torch.first_calls import FirstCalls
from tidepool_torch.live import Capture
from tidepool_torch.live_recorder import LiveRecorder


class FirstCallsTest(unittest.TestCase):
    def setUp(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
        self.errors = []

    def watch(self):
        calls = FirstCalls(lambda models, records: LiveRecorder([self.model], [], records), self.errors.append)
        self.addCleanup(calls.stop)
        return calls

    def records(self, calls, failed=False):
        records = [json.loads(line) for line in calls.take(failed)]
        self.assertEqual(self.errors, [])
        self.assertIsNone(_get_current_dispatch_mode())
        names = [record["name"].removeprefix("aten::") for record in records if record["kind"] == "framework_op"]
        ends = [record for record in records if record["kind"] == "range" and record["action"] == "end"]
        return records, names, len(ends)

    def test_calls_without_gradients_are_iterations_whatever_ends_between_them(self):
        calls = self.watch()

        @torch.inference_mode()
        def infer():
            self.model(torch.ones(2, 4)).sum()

        for _ in range(3):
            infer()
            self.assertIsNone(_get_current_dispatch_mode())
        records, names, ended = self.records(calls)
        self.assertEqual((names.count("relu"), ended), (3, 3))
        self.assertIn(("parameter", "0.weight"), {(record.get("category"), record.get("name")) for record in records})

    def test_only_the_first_calls_are_recorded(self):
        calls = self.watch()
        with torch.no_grad():
            for _ in range(10):
                self.model(torch.ones(2, 4))
        _, names, ended = self.records(calls)
        self.assertEqual((names.count("addmm"), ended), (8, 8))

    def test_a_training_step_is_an_iteration_and_its_state_has_names(self):
        calls = self.watch()
        optimizer = torch.optim.Adam(self.model.parameters())
        loss = self.model(torch.ones(2, 4)).sum()
        with torch.no_grad():
            self.model(torch.ones(2, 4))  # of a metric: part of the step
        loss.backward()
        optimizer.step()
        calls.stepped([optimizer])
        self.model(torch.ones(2, 4))
        records, names, ended = self.records(calls)
        self.assertEqual((names.count("addmm"), ended), (2, 1))
        named = {(record.get("category"), record.get("name")) for record in records}
        self.assertLessEqual({("optimizer_state", "0.weight.exp_avg"), ("gradient", "0.bias.grad")}, named)

    def test_a_step_that_fails_is_there_up_to_its_failure(self):
        calls = self.watch()
        with self.assertRaises(RuntimeError):
            self.model(torch.ones(2, 4)).view(3)
        _, names, ended = self.records(calls, failed=True)
        self.assertEqual((names.count("relu"), ended), (1, 0))

    def test_of_a_step_that_fails_behind_an_evaluation_the_step_is_there(self):
        calls = self.watch()
        with torch.no_grad():
            self.model(torch.ones(2, 4))
        with self.assertRaises(RuntimeError):
            self.model(torch.ones(2, 4)).view(3)
        records, names, ended = self.records(calls, failed=True)
        self.assertEqual((names.count("relu"), ended), (1, 0))
        self.assertIn("0.weight", {record.get("name") for record in records})

    def test_a_job_that_ends_without_a_training_step_is_told_from_one_that_has_some(self):
        for trains in (False, True):
            calls = self.watch()
            self.model(torch.ones(2, 4))
            if trains:
                calls.stepped([])
            records, _, ended = self.records(calls)
            self.assertEqual((ended, "inference" in {record.get("key") for record in records}), (1, not trains))

    def test_calls_with_gradients_that_no_step_follows_are_an_iteration(self):
        calls = self.watch()
        for _ in range(3):
            self.model(torch.ones(2, 4))
        _, names, ended = self.records(calls)
        self.assertEqual((names.count("relu"), ended), (3, 1))

    def test_of_complete_iterations_and_one_that_is_not_the_complete_ones_stay(self):
        calls = self.watch()
        with torch.no_grad():
            self.model(torch.ones(2, 4))
        self.model(torch.ones(2, 4))
        _, names, ended = self.records(calls)
        self.assertEqual((names.count("addmm"), ended), (1, 1))

    def test_an_evaluation_behind_the_only_step_leaves_this_step(self):
        hide_optimizers(self)
        with tempfile.TemporaryDirectory() as folder:
            capture = Capture(folder)
            self.addCleanup(capture._threads.stop)
            capture._first = FirstCalls(lambda models, records: LiveRecorder(models, [], records), self.errors.append)
            optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
            self.model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            with torch.no_grad():
                self.model(torch.ones(2, 4)).cosh()
            capture._end()
            path, = pathlib.Path(folder).iterdir()
            records = [json.loads(line) for line in path.read_text().splitlines()]
        phases = {record["phase"] for record in records if record.get("kind") == "framework_op"}
        self.assertEqual(phases, {"forward", "backward", "optimizer"})
        self.assertNotIn("aten::cosh", [record.get("name") for record in records])

    def test_a_transformation_of_functions_is_left_alone(self):
        calls = self.watch()
        torch.func.vmap(self.model)(torch.ones(2, 4))
        self.assertEqual(self.records(calls)[1], [])


if __name__ == "__main__":
    unittest.main()
