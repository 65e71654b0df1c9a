"""The native core: its records are those of a dispatch mode, but for what a mode changes; it costs little; the job goes on whatever
happens to it."""

import contextlib
import io
import json
import os
import shutil
import statistics
import tempfile
import time
import unittest
from unittest import mock

from support import torch  # skips without it

from tidepool_torch import native
from tidepool_torch.live_recorder import LiveRecorder
from tidepool_torch.raw_file import RawFile
from tidepool_torch.replay import NativeRecorder


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.norm, self.drop = torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5)

    def forward(self, x):
        x = self.norm(self.first(x))
        x = x + torch.nn.functional.gelu(self.second(x)).view(-1, 8)
        return self.drop(x).sum()


def setUpModule():
    if shutil.which("g++") is None:
        raise unittest.SkipTest("there is no C++ compiler")
    global core
    core = native.Core(native.library())


class Job:
    """A small training job with its recorder."""

    def __init__(self, kind, folder):
        torch.manual_seed(0)
        self.model, self.x = Net(), torch.randn(16, 8)
        self.optimizer = torch.optim.Adam(self.model.parameters(), foreach=True)
        self.step()
        self.file = RawFile(folder)
        make = LiveRecorder if kind == "mode" else lambda *given: NativeRecorder(core, *given)
        self.recorder = make([self.model], [self.optimizer], self.file)

    def step(self):
        self.optimizer.zero_grad()
        loss = self.model(self.x)
        loss.backward()
        self.optimizer.step()
        return loss


def recorded(kind, steps=3):
    """The records and losses of a job."""
    with tempfile.TemporaryDirectory() as folder:
        job, losses = Job(kind, folder), []
        with job.recorder:
            for _ in range(steps):
                losses.append(job.step())
                job.recorder.iteration()
        job.file.close()
        name, = os.listdir(folder)
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return [json.loads(line) for line in file], [loss.item() for loss in losses]


def described(records):
    """The ops, without addresses and times. A mode turns the addition of a gradient to another one, in place, into one that makes
    a third gradient."""
    ops = []
    for record in records:
        if record.get("kind") == "framework_op":
            uses = [(access, size) for access, _, size in record["uses"]]
            name = record["name"]
            if name in ("aten::add", "aten::add_") and record["phase"] == "backward":
                name, uses = "sum of gradients", uses[1:2]
            ops.append((name, record["phase"], record.get("module"), record.get("line"), record.get("random"), uses))
    return ops


def peak(records):
    live = most = 0
    for record in records:
        if record.get("kind") == "framework_memory":
            live += record["size"] * {"alloc": 1, "existing": 0, "free_completed": -1}[record["action"]]
            most = max(most, live)
    return most


class Records(unittest.TestCase):
    def test_the_ops_are_those_that_a_mode_sees_and_gradients_are_added_in_place(self):
        by_mode, losses = recorded("mode")
        natively, same = recorded("native")
        self.assertEqual(losses, same)
        self.assertEqual(described(natively), described(by_mode))
        names = [record["name"] for record in natively if record.get("phase") == "backward"]
        self.assertIn("aten::add_", names)
        self.assertLessEqual(peak(natively), peak(by_mode))

    def test_a_number_of_python_is_no_buffer_as_under_a_mode(self):
        """Adam adds a tensor of a number to its step counters."""
        for kind in ("native", "mode"):
            records, _ = recorded(kind)
            begun = next(index for index, record in enumerate(records) if record.get("kind") == "framework_op")
            self.assertEqual([record for record in records[begun:] if record.get("action") == "existing" and
                              record.get("category") == "input" and record["size"] == 4], [], kind)

    def test_every_use_is_of_a_whole_live_buffer(self):
        records, _ = recorded("native")
        live = {}
        for record in records:
            if record.get("kind") == "framework_memory":
                if record["action"] == "free_completed":
                    self.assertEqual(live.pop(record["address"]), record["size"])
                else:
                    live[record["address"]] = record["size"]
            for _, address, size in record.get("uses", []):
                self.assertEqual(live[address], size)

    def test_the_file_says_that_the_ops_are_those_of_the_unchanged_job(self):
        for kind, says in (("native", ["native"]), ("mode", [])):
            records, _ = recorded(kind, steps=1)
            self.assertEqual([record["value"] for record in records if record.get("key") == "ops"], says)


class Jobs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.job = Job("native", folder.name)

    def test_an_error_of_the_recorder_is_printed_once_and_the_job_goes_on(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), mock.patch.object(self.job.recorder, "run", side_effect=KeyError("addr")):
            with self.job.recorder:
                self.job.step()
                self.job.recorder.iteration()
                self.job.step()
        self.assertEqual(said.getvalue(), "tidepool: the recording of PyTorch ends here: KeyError: 'addr'; the job goes on\n")

    def test_an_error_of_an_op_reaches_the_job_and_not_the_recorder(self):
        with self.job.recorder:
            with self.assertRaisesRegex(RuntimeError, "must match"):
                torch.ones(3) + torch.ones(4)
            self.job.recorder.iteration()
            self.assertFalse(self.job.recorder.lost)

    def test_a_sparse_tensor_ends_the_recording_and_not_the_job(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.job.recorder:
            self.assertEqual((torch.eye(4).to_sparse() * 2).to_dense().sum().item(), 8)
        self.assertIn("has no single storage", said.getvalue())

    def test_a_forked_process_is_not_recorded_and_frees_its_memory(self):
        with self.job.recorder:
            child = os.fork()
            if child == 0:
                held = core.cells[core.WORDS]
                right = (torch.ones(3) + 1).sum().item() == 6 and core.cells[core.WORDS] == held
                os._exit(0 if right else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.job.step()
            self.job.recorder.iteration()
            self.assertFalse(self.job.recorder.lost)

    def test_memory_that_a_recording_has_seen_is_freed_after_it_as_without_one(self):
        with self.job.recorder:
            kept = torch.ones(1000) + 1
            self.job.step()
        kept.resize_(2000)
        self.assertEqual(kept[:1000].sum().item(), 2000)
        del kept
        self.job.step()

    def test_recorded_operators_cost_less_than_half_of_an_empty_mode_costs(self):
        x = torch.ones(4)

        def thousand():
            begin = time.process_time()
            for _ in range(1000):
                torch.add(x, x)
            return time.process_time() - begin

        plain = statistics.median(thousand() for _ in range(9))
        with self.job.recorder:
            seen = statistics.median(thousand() for _ in range(9))
        self.assertLess((seen - plain) / 1000, 25e-6)  # 2 us on an idle machine; a recording mode takes 100


class Builds(unittest.TestCase):
    def test_without_a_compiler_the_reason_is_said_and_the_mode_records(self):
        with tempfile.TemporaryDirectory() as cache, mock.patch.dict(os.environ, XDG_CACHE_HOME=cache, PATH="", TIDEPOOL_NATIVE="on"):
            native.core.cache_clear()
            self.addCleanup(native.core.cache_clear)
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertIsNone(native.core_or_none())
        self.assertEqual(said.getvalue(), "tidepool: no native recorder: there is no C++ compiler (g++); operators are recorded in "
                                          "Python, which takes about 0.1 ms each\n")

    def test_a_failed_build_is_tried_once_and_its_reason_stays(self):
        with tempfile.TemporaryDirectory() as cache, mock.patch.dict(os.environ, XDG_CACHE_HOME=cache), \
                mock.patch.object(native, "_flags", lambda: (["-no-such-flag"], [])):
            for again in ("", "to try again"):
                with self.assertRaisesRegex(native.NativeError, "it could not be built: .*no-such-flag.*" + again):
                    native.library()


if __name__ == "__main__":
    unittest.main()
