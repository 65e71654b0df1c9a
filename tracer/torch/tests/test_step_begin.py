"""Tests of what an iteration leaves out: evaluations before its step, and the begin of another training."""

import json
import pathlib
import tempfile
import unittest
import warnings

from support import hide_optimizers, torch

from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import _pop_mode, _push_mode

from tidepool_torch.live import Capture
from tidepool_torch.live_recorder import LiveRecorder
from tidepool_torch.raw_file import RawFile


class Iterations(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model, self.teacher = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def ops(self, before, iterations=2, models=()):
        """The names of each iteration's ops. before() runs before the forward pass, and returns the input."""
        file = RawFile(self.folder)
        with LiveRecorder([self.model, *models], [self.optimizer], file) as self.recorder:
            for _ in range(iterations):
                self.model(before()).exp().sum().backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.recorder.iteration()
        file.close()
        return self.read()

    def read(self):
        found = []
        path, = self.folder.iterdir()
        self.records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in self.records:
            if record.get("action") == "begin":
                found.append([])
            elif record.get("kind") == "framework_op":
                found[-1].append(record["name"].removeprefix("aten::"))
        return found

    def evaluation(self):
        with torch.no_grad():
            for _ in range(3):
                (self.model(torch.zeros(2, 4)).cosh().sum() / 3).item()

    def test_an_evaluation_before_a_step_is_left_out(self):
        plain = self.ops(lambda: torch.ones(2, 4))
        for path in self.folder.iterdir():
            path.unlink()

        def before():
            self.evaluation()
            return torch.ones(2, 4)

        self.assertEqual(self.ops(before)[:2], plain[:2])
        self.assertEqual(self.recorder.left_out, 2 * 3 * 6)
        self.assertEqual(plain[0][:3], ["ones", "addmm", "exp"])

    def test_an_evaluation_that_autograd_recorded_is_left_out(self):
        self.model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), self.model)

        def before():
            self.model(torch.zeros(2, 4)).cosh().sum().item()
            return torch.ones(2, 4)

        ops = self.ops(before)[0]
        self.assertEqual((ops[0], "cosh" in ops, "exp" in ops), ("ones", False, True))

    def test_no_buffer_of_an_evaluation_is_in_the_records(self):
        self.ops(lambda: (self.evaluation(), torch.ones(2, 4))[1])
        live, ends = {}, 0
        for record in self.records:
            if record.get("kind") == "framework_memory":
                if record["action"] == "free_completed":
                    del live[record["address"]]
                else:
                    live[record["address"]] = record["size"]
            for _, address, size in record.get("uses", []):
                self.assertEqual(live[address], size)
            ends += record.get("action") == "end"
        self.assertEqual(ends, 2)

    def test_ops_behind_an_evaluation_are_left_out_up_to_the_first_that_the_step_uses(self):
        def before():
            self.evaluation()
            torch.tensor([0.5, 0.25]).mean().item()
            return torch.ones(2, 4)

        self.assertEqual(self.ops(before)[0][:3], ["ones", "addmm", "exp"])

    def test_fake_tensors_beside_real_ones_have_no_buffers(self):
        """DTensor makes them to find the shapes of results."""
        def before():
            ours = _pop_mode()
            with FakeTensorMode():
                with ours:
                    torch.empty(1 << 20)
            _push_mode(ours)
            return torch.ones(2, 4)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.ops(before)
        sizes = [record["size"] for record in self.records if record.get("kind") == "framework_memory"]
        self.assertLess(max(sizes), 1 << 20)

    def test_a_call_whose_results_the_step_uses_is_in_the_step(self):
        def before():
            self.evaluation()
            with torch.no_grad():
                return self.teacher(torch.ones(2, 4)).tanh()

        for ops in self.ops(before, models=[self.teacher])[:2]:
            self.assertEqual(ops[:5], ["ones", "addmm", "tanh", "addmm", "exp"])
        self.assertEqual(self.recorder.left_out, 2 * 3 * 6)

    def test_an_evaluation_behind_the_call_of_a_teacher_is_in_the_step(self):
        def before():
            with torch.no_grad():
                taught = self.teacher(torch.ones(2, 4))
            self.evaluation()
            return taught

        self.assertIn("cosh", self.ops(before, models=[self.teacher])[0])
        self.assertEqual(self.recorder.left_out, 0)

    def test_what_is_behind_the_last_step_has_not_begun_an_iteration(self):
        with LiveRecorder([self.model], [self.optimizer], RawFile(self.folder)) as recorder:
            torch.zeros(3).sum().item()
            self.assertFalse(recorder.begun)
            with torch.no_grad():
                self.model(torch.ones(2, 4))
            self.assertTrue(recorder.begun)

    def test_records_that_were_written_early_stay(self):
        file = RawFile(self.folder)
        with LiveRecorder([self.model], [self.optimizer], file) as recorder:
            self.evaluation()
            file._write_held()
            self.model(torch.ones(2, 4)).sum().backward()
            recorder.iteration()
            self.assertEqual(recorder.left_out, 0)
            file._write_held()
            self.assertFalse(recorder.follow([self.teacher], []))


class Trainings(unittest.TestCase):
    """A job trains one model after another."""

    def test_each_training_is_recorded_behind_its_first_step(self):
        hide_optimizers(self)
        with tempfile.TemporaryDirectory() as folder:
            capture = Capture(folder)
            self.addCleanup(capture._threads.stop)
            for width in (3, 5):
                model = torch.nn.Sequential(torch.nn.Linear(width, width))
                optimizer = torch.optim.Adam(model.parameters())
                for _ in range(3):
                    model(torch.ones(2, width)).sum().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                del model, optimizer
            capture._end()
            path, = pathlib.Path(folder).iterdir()
            records = [json.loads(line) for line in path.read_text().splitlines()]
        begins = [record["id"] for record in records if record.get("action") == "begin"]
        ends = [record["id"] for record in records if record.get("action") == "end"]
        self.assertEqual((begins, ends), ([1, 2, 3, 4], [1, 2, 3, 4]))
        live, first = {}, []
        for record in records:
            if record.get("kind") == "framework_memory":
                if record["action"] == "free_completed":
                    del live[record["address"]]
                else:
                    live[record["address"]] = record
            if record.get("name") == "aten::addmm":
                weight = max((live[address] for _, address, _ in record["uses"]), key=lambda each: each["size"])
                first.append((weight["size"], record["module"]))
                self.assertTrue(all(live[address]["size"] == size for _, address, size in record["uses"]))
        self.assertEqual(first, [(36, "0")] * 2 + [(100, "0")] * 2)


if __name__ == "__main__":
    unittest.main()
