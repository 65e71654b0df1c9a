"""Tests that a job does not notice the recorder inside it."""

import contextlib
import gc
import io
import json
import os
import tempfile
import unittest
import weakref
from unittest import mock

from support import torch  # skips without it
from torch.overrides import TorchFunctionMode
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from torch.utils.data import DataLoader, TensorDataset

from tidepool_torch.history import History
from tidepool_torch.live_recorder import LiveRecorder
from tidepool_torch.raw_file import RawFile


class Lines:
    """Stands for a RawFile."""

    is_open = True

    def __init__(self):
        self.lines = []

    def add(self, line):
        self.lines.append(line)

    def write(self, **record):
        self.lines.append(str(record))

    def clock(self):
        pass

    flush = drop = place = clock


def recorder(file=None):
    model = torch.nn.Linear(4, 4)
    return model, LiveRecorder([model], [torch.optim.SGD(model.parameters(), lr=0.1)], file or Lines())


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Forks(unittest.TestCase):
    def test_a_forked_process_has_no_mode_and_leaves_the_file_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            file = RawFile(folder)
            _, guest = recorder(file)
            with guest:
                held = list(file._held)
                child = os.fork()
                if child == 0:
                    torch.ones(3) + 1
                    os._exit(0 if _get_current_dispatch_mode() is None and file._held == held else 1)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
                self.assertIs(_get_current_dispatch_mode(), guest)
            file.abandon()


class Iterations(unittest.TestCase):
    def test_an_iteration_begins_1_ns_after_the_end_of_the_one_before_so_that_no_op_is_between(self):
        file = Lines()
        _, guest = recorder(file)
        with guest:
            guest.iteration()
            guest.iteration()
        times = {action: [json.loads(line)["time"] for line in file.lines if f'"action":"{action}"' in line]
                 for action in ("begin", "end")}
        self.assertEqual(times["begin"][1:], [time + 1 for time in times["end"]])
        self.assertEqual(len(times["end"]), 2)


class Counting(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


class CountingFunctions(TorchFunctionMode):
    calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        CountingFunctions.calls += 1
        return func(*args, **(kwargs or {}))


class Modes(unittest.TestCase):
    def test_a_mode_of_functions_of_the_scripts_sees_no_call_of_the_recorder(self):
        model, guest = recorder()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step():
            CountingFunctions.calls = 0
            with CountingFunctions():
                model(torch.ones(2, 4)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
            return CountingFunctions.calls

        alone = step()
        with guest:
            self.assertEqual(step(), alone)

    def test_a_mode_of_the_scripts_sees_each_op_once_and_ends_when_the_script_ends_it(self):
        file = Lines()
        _, guest = recorder(file)
        x, own = torch.ones(2), Counting()
        with own:
            x + 1
            guest.__enter__()
            x + 1
        self.assertIs(_get_current_dispatch_mode(), guest)
        self.assertTrue(_python_dispatch.is_in_torch_dispatch_mode())
        self.assertFalse(_python_dispatch.is_in_any_mode_without_ignore_compile_internals())
        with own:
            x + 1
        self.assertEqual(own.calls, 3)
        x + 1
        guest.__exit__(None, None, None)
        self.assertIsNone(_get_current_dispatch_mode())
        self.assertFalse(_python_dispatch.is_in_torch_dispatch_mode())
        self.assertEqual(sum('"name":"aten::add"' in line for line in file.lines), 3)

    def test_a_mode_of_the_scripts_that_is_on_when_the_recording_ends_stays_on(self):
        _, guest = recorder()
        guest.__enter__()
        with Passing() as own:
            guest.__exit__(None, None, None)
            self.assertIs(_get_current_dispatch_mode(), own)
        self.assertIsNone(_get_current_dispatch_mode())


class Loaders(unittest.TestCase):
    def test_ops_of_a_loader_are_not_recorded_and_its_batch_begins_with_its_first_use(self):
        file = Lines()
        model, guest = recorder(file)
        data = DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=2)
        with guest:
            before = len(file.lines)
            (batch,) = next(iter(data))
            self.assertEqual(file.lines[before:], [])
            model(batch)
            begun = [line for line in file.lines[before:] if '"category":"input"' in line]
        self.assertEqual(len(begun), 1)
        self.assertIn('"action":"alloc"', begun[0])
        self.assertIn('"size":32', begun[0])


class Errors(unittest.TestCase):
    def test_an_error_of_the_recorder_is_printed_once_and_ops_still_return_their_results(self):
        _, guest = recorder()
        said = io.StringIO()
        with guest, contextlib.redirect_stderr(said), mock.patch.object(guest, "run", side_effect=KeyError("addr")):
            self.assertEqual((torch.ones(3) + 1).sum().item(), 6)
            self.assertEqual((torch.ones(3) + 1).sum().item(), 6)
        self.assertEqual(said.getvalue(), "tidepool: the recording of PyTorch ends here: KeyError: 'addr'; the job goes on\n")

    def test_an_error_of_the_job_reaches_the_job_and_not_the_recorder(self):
        _, guest = recorder()
        with guest, self.assertRaisesRegex(RuntimeError, "must match"):
            torch.ones(3) + torch.ones(4)
        self.assertFalse(guest.lost)

    def test_a_sparse_tensor_ends_the_recording_and_not_the_job(self):
        _, guest = recorder()
        said = io.StringIO()
        with guest, contextlib.redirect_stderr(said):
            self.assertEqual((torch.eye(4).to_sparse() * 2).to_dense().sum().item(), 8)
        self.assertIn("has no single storage", said.getvalue())
        self.assertEqual(said.getvalue().count("tidepool: "), 1)

    def test_a_sparse_gradient_ends_the_recording_and_not_the_job(self):
        linear, embedding = torch.nn.Linear(4, 4), torch.nn.Embedding(3, 4, sparse=True)
        optimizer = torch.optim.SGD([*linear.parameters(), *embedding.parameters()], lr=1)
        guest = LiveRecorder([torch.nn.ModuleList([linear, embedding])], [optimizer], Lines())
        before = embedding.weight.detach().clone()
        said = io.StringIO()
        with guest, contextlib.redirect_stderr(said):
            for step in range(3):
                optimizer.zero_grad()
                x = torch.ones(1, 4)
                if step > 0:
                    x = embedding(torch.tensor([2])) + x
                linear(x).sum().backward()
                optimizer.step()
                guest.iteration()
            self.assertTrue(guest.lost)
        self.assertIn("has no single storage", said.getvalue())
        self.assertEqual(said.getvalue().count("tidepool: "), 1)
        self.assertFalse(torch.equal(embedding.weight, before))

    def test_a_buffer_that_changes_its_size_ends_and_another_one_begins(self):
        file = Lines()
        _, guest = recorder(file)
        with guest:
            x = torch.zeros(4)
            x.resize_(100)
            x.fill_(1)
        sizes = [line.split('"size":')[1].split(",")[0] for line in file.lines if '"action":"alloc"' in line]
        self.assertEqual(sizes, ["16", "400"])
        self.assertEqual(sum('"action":"free_completed"' in line for line in file.lines), 1)


class Lifetimes(unittest.TestCase):
    def test_a_parameter_that_the_job_replaces_ends_there(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
        guest = LiveRecorder([model], [optimizer], Lines())
        with guest:
            replaced = weakref.ref(model[1].weight)
            model[1] = torch.nn.Linear(4, 4)
            gc.collect()
            self.assertIsNone(replaced())
            optimizer.step()
            self.assertFalse(guest.lost)


class OwnHistory(unittest.TestCase):
    """A script that uses PyTorch's history of its allocator itself. A stand-in has the history: no GPU is needed."""

    def setUp(self):
        self.entries, self.on = [], False

        def record(enabled="all", context="all", max_entries=10):
            self.on = bool(enabled)
            if not self.on:
                self.entries.clear()

        def snapshot(device=None):
            return {"segments": [], "device_traces": [list(self.entries)]}

        for target, value in (("torch.cuda.memory._record_memory_history", record),
                              ("torch.cuda.memory._snapshot", snapshot),
                              ("torch.cuda.is_initialized", lambda: True), ("torch.cuda._lazy_call", lambda call: call())):
            patch = mock.patch(target, value)
            patch.start()
            self.addCleanup(patch.stop)

    def happens(self, action, address):
        if self.on:
            where = {"device_free": address} if action == "oom" else {"addr": address}
            self.entries.append({"action": action, "size": 512, "stream": 0, "time_us": 1, **where})

    def test_a_script_sees_what_it_asked_for_and_the_recording_everything(self):
        file = Lines()
        history = History(lambda: file)
        memory = torch.cuda.memory
        self.happens("alloc", 1)
        self.assertEqual(memory._snapshot()["device_traces"], [[]])  # the script has not asked for a history
        memory._record_memory_history(max_entries=5)
        self.happens("alloc", 2)
        self.assertEqual([entry["addr"] for entry in memory._snapshot()["device_traces"][0]], [2])
        history.write()
        self.assertEqual([entry["addr"] for entry in memory._snapshot()["device_traces"][0]], [2])
        memory._record_memory_history(enabled=None)
        self.happens("oom", 3)
        self.assertEqual(memory._snapshot()["device_traces"], [[]])
        history.end()
        self.assertFalse(self.on)
        addresses = [line.split("'address': ")[1].split(",")[0] for line in file.lines]
        self.assertEqual(addresses, ["1", "2", "3"])

    def test_times_are_converted_to_the_recordings_clock_however_the_clocks_drift(self):
        # The clock since 1970 runs 1.001 times as fast as the other one, and is set back to 0 in the end.
        readings = [(1_000_000_000, 500), (1_001_001_000, 1_000_500), (1_002_002_000, 2_000_500), (0, 3_000_500)]
        file = Lines()
        with mock.patch("tidepool_torch.history._read_clocks", lambda: readings.pop(0)):
            history = History(lambda: file)
            for times in ((1_000_000, 1_000_500), (1_001_500,), (0,)):
                for time_us in times:
                    self.entries.append({"action": "alloc", "size": 512, "stream": 0, "time_us": time_us, "addr": 1})
                history.write()
        times = [int(line.split("'time': ")[1].split(",")[0]) for line in file.lines]
        self.assertEqual(times, [500, 500_000, 1_499_001, 3_000_500])

    def test_a_history_that_the_script_has_on_stays_on_when_the_recording_ends(self):
        history = History(lambda: Lines())
        torch.cuda.memory._record_memory_history()
        self.happens("alloc", 2)
        history.end()
        self.assertTrue(self.on)
        self.assertEqual(len(torch.cuda.memory._snapshot()["device_traces"][0]), 1)


if __name__ == "__main__":
    unittest.main()
