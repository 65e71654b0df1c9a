"""The native core: its records are those of a dispatch mode, but for what a mode changes; it costs little; the job goes on whatever
happens to it."""

import contextlib
import fcntl
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from support import torch  # skips without it

from tidepool_torch import native
from tidepool_torch.live_recorder import LiveRecorder
from tidepool_torch.raw_file import RawFile, now
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

    def test_a_storage_that_is_emptied_and_filled_again_is_two_buffers(self):
        """As FSDP does it, without an op."""
        with tempfile.TemporaryDirectory() as folder:
            job = Job("native", folder)
            with job.recorder:
                held = torch.ones(1000)
                held.untyped_storage().resize_(0)
                other = torch.ones(3000)  # it may be where the first was
                held.untyped_storage().resize_(4000)
                held.fill_(2)
                held.untyped_storage().resize_(0)
                job.step()
                job.recorder.iteration()
                self.assertFalse(job.recorder.lost)
                del held, other
            job.file.close()
            name, = os.listdir(folder)
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                records = [json.loads(line) for line in file]
        memory = [(record["action"], record["size"]) for record in records if record.get("size") in (4000, 12000)]
        self.assertEqual(memory[:5], [("alloc", 4000), ("free_completed", 4000), ("alloc", 12000), ("alloc", 4000),
                                      ("free_completed", 4000)])

    def test_a_kernel_that_pytorch_does_not_dispatch_has_its_place_in_the_program(self):
        """As one of Triton's: its launch is told in Python."""
        with tempfile.TemporaryDirectory() as folder:
            job = Job("native", folder)
            forward = job.model.second.forward

            def launching(x):
                job.recorder.launched("squared", now(), now())
                x.register_hook(lambda grad: job.recorder.launched("squared_backward", now(), now()))
                return forward(x)

            job.model.second.forward = launching
            with job.recorder:
                job.step()
                job.recorder.iteration()
                self.assertFalse(job.recorder.lost)
            job.file.close()
            name, = os.listdir(folder)
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                ops = [record for record in map(json.loads, file) if record.get("kind") == "framework_op"]
        names = [op["name"] for op in ops]
        place = names.index("squared")
        self.assertEqual((ops[place]["phase"], ops[place]["module"]), ("forward", "second"))
        self.assertIn("test_native.py:", ops[place]["line"])
        self.assertEqual(ops[place + 1]["module"], "second")
        self.assertEqual(ops[names.index("squared_backward")]["phase"], "backward")

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
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = folder.name
        patch = mock.patch.dict(os.environ, XDG_CACHE_HOME=self.cache)
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop("TIDEPOOL_NATIVE", None)
        native.core.cache_clear()
        self.addCleanup(native.core.cache_clear)

    def says(self):
        """What is printed when a recorder asks for the core and does not get it."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertIsNone(native.core_or_none())
        return said.getvalue()

    def test_without_a_compiler_the_reason_is_said_and_the_mode_records(self):
        with mock.patch.dict(os.environ, PATH=""):
            self.assertEqual(self.says(), "tidepool: no native recorder: there is no C++ compiler (g++); operators are recorded in "
                                          "Python, which takes about 0.1 ms each\n")

    def test_where_nothing_can_be_written_the_reason_is_said_and_the_mode_records(self):
        with mock.patch.dict(os.environ, XDG_CACHE_HOME="/proc/none"):
            self.assertRegex(self.says(), "^tidepool: no native recorder: .*/proc/none.*; operators are recorded in Python.*\n$")

    def test_a_library_that_cannot_be_loaded_is_said_and_the_mode_records(self):
        with mock.patch.object(native, "library", lambda *_: __file__):
            self.assertRegex(self.says(), "^tidepool: no native recorder: .*invalid ELF header; operators are recorded in Python.*\n$")

    def test_a_recorder_of_a_job_under_a_plan_leaves_the_core_to_the_plan(self):
        with mock.patch.dict(os.environ, TIDEPOOL_LIVE_PROGRAM="program.json"):
            self.assertEqual(self.says(), "")

    def test_a_build_in_another_process_is_awaited_for_a_limited_time(self):
        folder = native._cache_folder(native._CORE)
        folder.mkdir(parents=True)
        with open(folder / "lock", "w", encoding="utf-8") as lock, mock.patch.object(native, "LIMIT_S", 0.2):
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("another process has been building it for more than 0.2 s", self.says())

    def test_where_the_dispatch_key_is_taken_the_mode_records(self):
        job = ("import torch; taken = torch.library.Library('_', 'IMPL', 'Fake'); taken.fallback(lambda *_: None, 'Fake'); "
               "from tidepool_torch import native; native.library = lambda *_: %r; print(native.core_or_none())")
        result = subprocess.run([sys.executable, "-c", job % str(core.path)], capture_output=True, text=True, timeout=300,
                                env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(native.__file__))})
        self.assertEqual(result.stdout, "None\n", result.stderr)
        self.assertIn("uses the dispatch key Fake itself; operators are recorded in Python", result.stderr)

    def test_a_failed_build_is_tried_once_and_its_reason_stays(self):
        with mock.patch.object(native, "_flags", lambda: (["-no-such-flag"], [])):
            for again in ("", "to try again"):
                with self.assertRaisesRegex(native.NativeError, "it could not be built: .*no-such-flag.*" + again):
                    native.library()

    def test_a_build_that_failed_is_tried_again_after_a_day(self):
        folder = native._cache_folder(native._CORE)
        folder.mkdir(parents=True)
        (folder / "failed").write_text("Killed signal terminated program cc1plus")
        before = time.time() - 90_000
        os.utime(folder / "failed", (before, before))
        with mock.patch.dict(os.environ, PATH=""), self.assertRaisesRegex(native.NativeError, "there is no C"):
            native.library()


if __name__ == "__main__":
    unittest.main()
