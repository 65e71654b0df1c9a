"""Recording of an unchanged training script into a raw file: records, order, kinds, iterations, clocks."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import torch  # skips without it

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../../tests/recording"))
from warm_python import Server  # noqa: E402
INJECT = os.path.join(HERE, "../../../validator/live/inject")
SCRIPT = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), foreach=True)
x = torch.randn(16, 4)
for _ in range(6):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
print(loss.item().hex())
"""


# Another thread updates an average. (Threads of a DataLoader do not count as the job's.)
THREADS = """
import concurrent.futures, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
average, other = torch.zeros(4, 4), concurrent.futures.ThreadPoolExecutor(1)
for _ in range(4):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    other.submit(lambda: average.mul_(0.9).add_(model.weight.detach())).result()
print(average.sum().item().hex())
"""


# PyTorch's history of its allocator, as on a GPU: each iteration makes one buffer, whose address is the iteration's
# number from 1 on.
HISTORY = f"""
import sys, time, torch
sys.path.append({os.path.join(HERE, "..")!r})
import tidepool_torch.live
entries = []
torch.cuda.is_initialized, torch.cuda._lazy_call = lambda: True, lambda call: call()
torch.cuda.memory._record_memory_history = lambda enabled="all", context="all": enabled or entries.clear()
torch.cuda.memory._snapshot = lambda: {{"segments": [], "device_traces": [list(entries)]}}
tidepool_torch.live.attach()
""" + SCRIPT.replace("    optimizer.zero_grad()", """
    entries.append({"action": "alloc", "addr": _ + 1, "size": 512, "stream": 0, "time_us": time.time_ns() // 1000})
    optimizer.zero_grad()""")


# Two models of one class, each with its optimizer, as in GANs. A copy of the first model holds an average of its
# weights; the loss is a module too.
TWO = """
import copy, torch
torch.manual_seed(0)
first, second = torch.nn.Sequential(torch.nn.Linear(4, 4)), torch.nn.Sequential(torch.nn.Linear(4, 4))
average, loss = copy.deepcopy(first), torch.nn.MSELoss()
optimizers = [torch.optim.Adam(model.parameters(), foreach=True) for model in (first, second)]
for _ in range(STEPS):
    for model, optimizer in zip((first, second), optimizers):
        optimizer.zero_grad()
        loss(model(torch.ones(2, 4)), torch.ones(2, 4)).backward()
        optimizer.step()
    for held, now in zip(average.parameters(), first.parameters()):
        held.detach().lerp_(now.detach(), 0.1)
print(sum(parameter.sum().item() for parameter in average.parameters()).hex())
"""


# Trains three models one after the other and says what it has let go of and still lives.
FOLDS = """
import gc, torch, weakref
torch.manual_seed(0)
for fold in range(3):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
    state = next(iter(optimizer.state.values()))["exp_avg"]
    gone = [weakref.ref(each) for each in (model, optimizer, model[0].weight, model[0].weight.grad, state)]
    del model, optimizer, state
    gc.collect()
    print([reference() is not None for reference in gone], sum(isinstance(each, torch.Tensor) for each in gc.get_objects()))
"""


def setUpModule():
    global server
    server = Server()
    unittest.addModuleCleanup(server.stop)


def run(settings, script=SCRIPT):
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join([INJECT, os.path.join(HERE, "..")])
        raw, job = os.path.join(folder, "run.raw"), os.path.join(folder, "job.py")
        environment = {**os.environ, "PYTHONPATH": path, "TIDEPOOL_RAW": raw, **settings}
        with open(job, "w", encoding="utf-8") as file:
            file.write(script)
        command = [sys.executable, job] if "LD_PRELOAD" in settings else server.command(job)
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
        if not os.path.exists(raw):
            return result, None, []
        names = sorted(os.listdir(raw), key=lambda name: name.endswith(".said"))
        with open(os.path.join(raw, names[0]), encoding="utf-8") as file:
            return result, names, [json.loads(line) for line in file]


class Script(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        settings = {"TIDEPOOL_RECORD_TORCH": "1", "TIDEPOOL_SKIP": "1", "TIDEPOOL_ITERATIONS": "2"}
        cls.result, cls.names, cls.records = run(settings)
        cls.plain, _, nothing = run({})
        assert nothing == []

    def of(self, kind):
        return [record for record in self.records if record.get("kind") == kind]

    def test_the_script_computes_the_same_as_without_a_recorder(self):
        self.assertEqual((self.result.returncode, self.result.stderr), (0, ""))
        self.assertEqual(self.result.stdout, self.plain.stdout)

    def test_a_script_goes_on_unrecorded_where_no_file_can_be_made(self):
        result, _, _ = run({"TIDEPOOL_RECORD_TORCH": "1", "TIDEPOOL_RAW": "/dev/null/raw"})
        self.assertEqual((result.returncode, result.stdout), (0, self.plain.stdout))
        self.assertEqual(result.stderr, "tidepool_torch: NotADirectoryError: [Errno 20] Not a directory: "
                                        "'/dev/null/raw'; PyTorch is not recorded\n")

    def test_the_process_has_one_file_and_it_begins_with_the_clocks(self):
        header = self.records[0]
        self.assertEqual(self.names, [f"{header['process']}.torch.jsonl"])
        self.assertEqual((header["tidepool_raw"], header["source"], header["clock"]), (1, "torch", "monotonic_raw"))
        self.assertEqual(header["time"], header["monotonic_raw"])
        self.assertGreaterEqual(len(self.of("clock")), 1)

    def test_two_iterations_are_recorded_and_nothing_after_them(self):
        ranges = [(record["action"], record["id"], record.get("name")) for record in self.of("range")]
        self.assertEqual(ranges, [("begin", 1, "0"), ("end", 1, None), ("begin", 2, "1"), ("end", 2, None)])
        names = [record["name"] for record in self.of("framework_op")]
        self.assertEqual(names[:len(names) // 2], names[len(names) // 2:])
        self.assertEqual(names[:2], ["aten::addmm", "aten::relu"])

    def test_every_use_is_of_a_whole_live_buffer(self):
        live = {}
        for record in self.records:
            if record.get("kind") == "framework_memory":
                if record["action"] == "free_completed":
                    self.assertEqual(live.pop(record["address"]), record["size"])
                else:
                    live[record["address"]] = record["size"]
            for access, address, size in record.get("uses", []):
                self.assertEqual(live[address], size)
                self.assertIn(access, ("read", "write", "read_write"))

    def test_ops_end_in_order_and_not_before_they_begin(self):
        last = 0
        for op in self.of("framework_op"):
            self.assertLessEqual(op["start"], op["end"])
            self.assertLessEqual(last, op["end"])
            last = op["end"]

    def test_kinds_names_modules_and_phases_are_those_of_the_model(self):
        known = {record.get("name"): record["category"] for record in self.of("framework_memory")
                 if record["action"] == "existing"}
        self.assertEqual(known["0.weight"], "parameter")
        self.assertEqual(known["2.bias.exp_avg"], "optimizer_state")
        self.assertEqual({(op.get("module", ""), op["phase"]) for op in self.of("framework_op")},
                         {("0", "forward"), ("1", "forward"), ("2", "forward"), ("", "forward"), ("", "backward"),
                          ("2", "backward"), ("1", "backward"), ("0", "backward"), ("", "optimizer")})

    def test_a_model_on_the_meta_device_does_not_make_the_job_one_on_a_gpu(self):
        script = SCRIPT.replace("x = ", "import copy\nshapes = copy.deepcopy(model).to('meta')\nx = ")
        result, _, records = run({"TIDEPOOL_RECORD_TORCH": "1", "TIDEPOOL_SKIP": "1", "TIDEPOOL_ITERATIONS": "2"}, script)
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", self.plain.stdout))

        def steps(records):
            return [(record["name"], [access for access, _, _ in record["uses"]]) for record in records
                    if record.get("kind") == "framework_op"]

        self.assertEqual(steps(records), steps(self.records))
        self.assertEqual(sum(record.get("action") == "existing" for record in records),
                         len([each for each in self.of("framework_memory") if each["action"] == "existing"]))

    def test_tensors_between_two_backward_passes_are_no_parameters(self):
        script = """
import torch
model, x = torch.nn.Linear(4, 4), torch.ones(2, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    out = model(x)
    out.sum().backward(retain_graph=True)
    noise = torch.zeros(4, 3)
    (out @ noise).cosh().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
        result, _, records = run({"TIDEPOOL_RECORD_TORCH": "1", "TIDEPOOL_ITERATIONS": "1"}, script)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        kinds = [(record["action"], record.get("category")) for record in records
                 if record.get("kind") == "framework_memory" and record["size"] == 48]
        self.assertIn(("existing", "workspace"), kinds)  # noise, which is still there at the end
        self.assertNotIn("parameter", [kind for _, kind in kinds])
        phases = {record["name"]: record["phase"] for record in records if record.get("kind") == "framework_op"}
        self.assertEqual(phases["aten::cosh"], "forward")

    def test_a_job_without_an_optimizer_has_an_iteration_for_each_backward_pass(self):
        update = "    for each in model.parameters(): each.data.add_(each.grad, alpha=-0.1); each.grad = None\n"
        script = SCRIPT.replace("optimizer = torch.optim.Adam(model.parameters(), foreach=True)\n", "")
        script = script.replace("    optimizer.step()\n", update).replace("    optimizer.zero_grad()\n", "")
        result, _, records = run({"TIDEPOOL_RECORD_TORCH": "1"}, script)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        begins = [record["name"] for record in records if record.get("kind") == "range" and record["action"] == "begin"]
        self.assertEqual(begins, ["0", "1", "2", "3", "4"])
        updates = [record for record in records if record.get("name") == "aten::add_"]
        self.assertEqual([record["phase"] for record in updates], ["optimizer"] * 4 * 5)
        kinds = {(record["category"], record["name"]) for record in records if "category" in record and "name" in record}
        self.assertLessEqual({("parameter", "0.weight"), ("gradient", "0.weight.grad")}, kinds)

    def test_optimizers_that_step_within_backward_passes_have_state_in_the_recording(self):
        script = SCRIPT.replace("    optimizer.step()\n", "").replace("for _ in", """
model[2].bias.register_post_accumulate_grad_hook(lambda _: optimizer.step())
for _ in""")
        result, _, records = run({"TIDEPOOL_RECORD_TORCH": "1"}, script)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        states = {record["name"] for record in records if record.get("category") == "optimizer_state"}
        self.assertLessEqual({"2.bias.exp_avg", "2.bias.exp_avg_sq"}, states)

    def test_a_job_ends_behind_its_last_wanted_step_with_all_that_was_recorded(self):
        script = SCRIPT.replace("for _ in", """
import atexit
atexit.register(print, "cleaned up")
for i in""").replace("    optimizer.zero_grad()\n", "    print(i)\n    optimizer.zero_grad()\n")
        result, _, records = run({"TIDEPOOL_RECORD_TORCH": "1", "TIDEPOOL_ITERATIONS": "1", "TIDEPOOL_STEPS": "4"}, script)
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", "0\n1\n2\n3\ncleaned up\n"))
        begins = [record["name"] for record in records if record.get("kind") == "range" and record["action"] == "begin"]
        self.assertEqual(begins, ["0"])

    def test_a_compiled_step_does_not_contain_the_recorder(self):
        script = SCRIPT.replace("for _ in", """
@torch.compile(backend="eager")
def step():
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
for _ in range(3): loss = step()
for _ in""").replace("range(6)", "range(0)")
        plain, _, _ = run({}, script)
        result, _, _ = run({"TIDEPOOL_RECORD_TORCH": "1"}, script)
        self.assertEqual((result.returncode, result.stdout), (0, plain.stdout))
        self.assertNotIn("Dynamo does not know", result.stderr)

    def test_operators_are_priced_for_a_device_that_is_named(self):
        self.assertNotIn("estimate", "".join(str(sorted(op)) for op in self.of("framework_op")))
        settings = {"TIDEPOOL_RECORD_TORCH": "1", "TIDEPOOL_ITERATIONS": "1", "TIDEPOOL_TIMES": "a100-80gb"}
        result, _, records = run(settings)
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", self.plain.stdout))
        infos = {record["key"]: record["value"] for record in records if record.get("kind") == "info"}
        self.assertEqual((infos["times"], infos["times_error"]), ("a100", "15 %"))
        ops = [record for record in records if record.get("kind") == "framework_op"]
        self.assertTrue(all(op["estimate"] >= 2000 for op in ops))
        result, _, _ = run({**settings, "TIDEPOOL_TIMES": "a1000"})
        self.assertIn("ValueError: no device named 'a1000'; known: a100, a100-40gb, a100-80gb, ", result.stderr)

    def test_ops_of_other_threads_are_counted_as_lost_and_this_is_said_once(self):
        plain, _, _ = run({}, THREADS)
        result, _, records = run({"TIDEPOOL_RECORD_TORCH": "1"}, THREADS)
        self.assertEqual((result.returncode, result.stdout), (0, plain.stdout))
        self.assertEqual(result.stderr, "tidepool: 6 ops of other threads are not recorded; only those of the thread that "
                                        "calls the optimizer's step() are\n")
        lost = [(record["loss"], record["count"]) for record in records if record.get("kind") == "loss"]
        self.assertEqual(lost, [("dropped_records", 2)] * 3)

    def test_a_job_of_two_optimizers_is_recorded_after_both_have_made_their_state(self):
        script = TWO.replace("STEPS", "4")
        plain, _, _ = run({}, script)
        result, _, records = run({"TIDEPOOL_RECORD_TORCH": "1", "TIDEPOOL_ITERATIONS": "1"}, script)
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", plain.stdout))
        ops = [record["name"] for record in records if record.get("kind") == "framework_op"]
        self.assertEqual((ops.count("aten::_foreach_addcdiv_"), ops.count("aten::zeros_like")), (2, 0))
        forward = next(at for at, name in enumerate(ops) if name.startswith("aten::addmm"))
        averages = [at for at, name in enumerate(ops) if name.startswith("aten::lerp_")]
        self.assertEqual([at < forward for at in averages], [True, True])  # the second optimizer's step ends an iteration
        known = [(record["category"], record["name"]) for record in records
                 if record.get("kind") == "framework_memory" and record["action"] == "existing" and "name" in record]
        models = ["0.", "Sequential2.0.", "Sequential3.0."]  # the first two are trained
        for kind, ending, holders in (("parameter", "", models), ("optimizer_state", ".exp_avg", models[:2])):
            for parameter in ("weight", "bias"):
                for holder in holders:
                    self.assertEqual(known.count((kind, holder + parameter + ending)), 1, holder + parameter + ending)
        self.assertEqual({record.get("module", "") for record in records if record.get("kind") == "framework_op"},
                         {"", "0", "Sequential2.0"})
        self.assertEqual([json.loads(record["value"]) for record in records if record.get("key") == "models"],
                         [["Sequential", "Sequential2", "Sequential3"]])

    def test_the_history_of_the_allocator_is_recorded_to_the_end_of_the_last_iteration(self):
        result, _, records = run({"TIDEPOOL_SKIP": "1", "TIDEPOOL_ITERATIONS": "2"}, HISTORY)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        made = [record["address"] for record in records if record.get("action") == "alloc" and record["address"] < 100]
        self.assertEqual(made, [1, 2, 3, 4])  # iterations 3 and 4 are recorded; the history begins with the job

    def test_an_optimizer_that_never_steps_delays_the_recording_by_one_step(self):
        script = SCRIPT.replace("for _", "other = torch.optim.Adam([torch.nn.Parameter(torch.ones(2))])\nfor _")
        result, _, records = run({"TIDEPOOL_RECORD_TORCH": "1"}, script)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual([record["id"] for record in records if record.get("action") == "end"], [1, 2, 3, 4])

    def test_what_the_job_has_let_go_of_ends_and_later_models_are_recorded(self):
        plain, _, _ = run({}, FOLDS)
        result, _, records = run({"TIDEPOOL_RECORD_TORCH": "1", "TIDEPOOL_ITERATIONS": "7"}, FOLDS)
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", plain.stdout))
        self.assertEqual(plain.stdout, "[False, False, False, False, False] 0\n" * 3)
        self.assertEqual([record["id"] for record in records if record.get("action") == "end"], [1, 2, 3, 4, 5, 6, 7])

    def test_a_job_that_trains_only_in_a_forked_process_is_told_so(self):
        forked = "import os, torch\nif os.fork(): os._exit(os.waitstatus_to_exitcode(os.wait()[1]))\n" + SCRIPT
        result, _, records = run({"TIDEPOOL_RECORD_TORCH": "1"}, forked)
        self.assertEqual((result.returncode, result.stdout), (0, self.plain.stdout))
        self.assertEqual(result.stderr, "tidepool_torch: RecordingError: the job trains in a process that it forked after it had "
                                        "imported torch; expected the import behind the fork, or the start method spawn; PyTorch "
                                        "is not recorded\n")
        self.assertEqual(len(records), 1)
        joined = SCRIPT + "if os.fork() == 0:\n    optimizer.step()\n    os._exit(0)\nos.wait()\n"
        result, _, _ = run({"TIDEPOOL_RECORD_TORCH": "1"}, "import os\n" + joined)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_job_that_fails_between_its_steps_leaves_no_part_of_a_step(self):
        script = SCRIPT.replace("    optimizer.step()\n", "    optimizer.step()\n    loss.item()\n    if _ == 2: raise OverflowError\n")
        result, _, records = run({"TIDEPOOL_RECORD_TORCH": "1", "TIDEPOOL_SKIP": "2"}, script)
        self.assertEqual(result.returncode, 1)
        self.assertNotIn("framework_op", [record.get("kind") for record in records])
        result, _, records = run({"TIDEPOOL_RECORD_TORCH": "1", "TIDEPOOL_SKIP": "1"}, script)
        self.assertEqual([record.get("action") for record in records if record.get("kind") == "range"], ["begin", "end"])

    @unittest.skipUnless(shutil.which("cc"), "no C compiler")
    def test_the_recorder_of_the_gpu_is_told_the_iterations_that_the_hook_records(self):
        with tempfile.TemporaryDirectory() as folder:
            source, library = os.path.join(folder, "other.c"), os.path.join(folder, "other.so")
            with open(source, "w", encoding="utf-8") as file:
                file.write('#include <stdio.h>\nvoid tidepool_iteration(int last) '
                           '{ fputs(last ? "last " : "next ", stderr); fflush(stderr); }\n')
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
            settings = {"TIDEPOOL_RECORD_TORCH": "1", "TIDEPOOL_SKIP": "1", "TIDEPOOL_ITERATIONS": "2",
                        "CUDA_INJECTION64_PATH": library}
            self.assertEqual(run(settings)[0].stderr, "")  # the stand-in is not loaded into the process
            result, _, _ = run({**settings, "LD_PRELOAD": library})
            # Steps 0 and 1 are skipped; recording begins after step 1 and ends after step 3.
            self.assertEqual(result.stderr, "next next next next last ")


if __name__ == "__main__":
    unittest.main()
