"""A step that can be checked by hand, line by line, and the order of its allocations."""

import json
import os
import tempfile
import unittest

from support import impossible_steps, ops, record, torch

import tidepool_torch
from tidepool_torch.program import Buffer, Op, Program


def two_layers():
    """Batch 16: 4 -> 8 -> 2 without biases, ReLU in place, SGD without momentum.
    Sizes in bytes: weights 8 x 4 x 4 = 128 and 2 x 8 x 4 = 64, x 256, hidden 512, y 128, loss 4."""
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8, bias=False), torch.nn.ReLU(inplace=True), torch.nn.Linear(8, 2, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
    x = torch.randn(16, 4)

    def step():
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, step


class HandChecked(unittest.TestCase):
    def setUp(self):
        self.program = record(two_layers)

    def test_every_line_of_a_small_step_is_as_worked_out_by_hand(self):
        lines = [
            {k: v for k, v in line.items() if k not in ("duration_ns", "meta", "line")} for line in self.program.lines()]
        for line in lines:
            if "uses" in line:
                line["uses"] = " ".join(f"{access}:{number}" for number, access, _ in line["uses"])

        def alloc(number, size, kind, **more):
            return {"alloc": number, "size_bytes": size, "kind": kind, **more}

        def run(name, uses, phase, **more):
            return {"run": "aten::" + name, "uses": uses, "phase": phase, **more}

        self.assertEqual(lines, [
            {"tidepool": 1},
            {"buffer": 0, "born_before": True, "size_bytes": 128, "kind": "parameter", "name": "0.weight"},
            {"buffer": 1, "born_before": True, "size_bytes": 64, "kind": "parameter", "name": "2.weight"},
            {"buffer": 2, "born_before": True, "size_bytes": 256, "kind": "input"},
            {"mark": "iteration", "name": "0"},
            {"mark": "phase", "name": "forward"},
            alloc(3, 512, "activation"),
            run("mm", "read:2 read:0 write:3", "forward", module="0"),
            run("relu_", "read_write:3", "forward", module="1"),
            alloc(4, 128, "activation"),
            run("mm", "read:3 read:1 write:4", "forward", module="2"),
            alloc(5, 4, "activation"),
            run("sum", "read:4 write:5", "forward"),
            {"free": 4},  # no reference to y is left: sum keeps only its shape
            {"mark": "phase", "name": "backward"},
            alloc(6, 4, "gradient"),
            run("ones_like", "write:6", "backward"),  # uses the shape of the loss, not its value
            # the gradient of y is buffer 6 expanded to 16 x 2: a view
            alloc(7, 64, "gradient", name="2.weight.grad"),
            run("mm", "read:6 read:3 write:7", "backward", module="2"),
            alloc(8, 512, "gradient"),
            run("mm", "read:6 read:1 write:8", "backward", module="2"),
            alloc(9, 512, "gradient"),
            run("threshold_backward", "read:8 read:3 write:9", "backward", module="1"),
            {"free": 8},
            {"free": 3},
            alloc(10, 128, "gradient", name="0.weight.grad"),
            run("mm", "read:9 read:2 write:10", "backward", module="0"),
            {"free": 9},
            {"free": 6},
            {"free": 5},
            {"mark": "phase", "name": "optimizer"},
            run("_foreach_add_", "read_write:0 read_write:1 read:10 read:7", "optimizer"),
            {"free": 10},
            {"free": 7},
        ])

    def test_the_peak_is_the_sum_worked_out_by_hand(self):
        # at threshold_backward: weights and x 448, hidden 512, gradients: loss 4 + seed 4, weight 64, hidden 2 x 512
        self.assertEqual(self.program.peak_bytes(), 448 + 512 + 4 + 4 + 64 + 2 * 512)

    def test_no_op_uses_a_buffer_that_does_not_exist_or_has_no_content(self):
        self.assertEqual(impossible_steps(self.program), [])


class Iterations(unittest.TestCase):
    def test_each_recorded_step_is_one_iteration_with_the_same_ops(self):
        once, twice = record(two_layers), record(two_layers, steps=2)
        marks = [subject for what, subject in twice.steps if what == "mark"]
        self.assertEqual(marks, [("iteration", "0"), ("iteration", "1")])
        self.assertEqual(ops(twice), 2 * ops(once))
        self.assertEqual(impossible_steps(twice), [])

    def test_gradients_from_before_the_step_exist_at_its_start_and_end_within(self):
        def make():
            model, optimizer, _ = two_layers()
            x = torch.randn(16, 4)

            def step():
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()

            return model, optimizer, step

        program = record(make)
        old = [buffer for buffer in program.existing if buffer.kind == "gradient"]
        self.assertEqual([buffer.name for buffer in old], ["0.weight.grad", "2.weight.grad"])
        freed = [subject for what, subject in program.steps if what == "free"]
        self.assertEqual(freed[:2], old)

    def test_gradients_of_parameters_of_no_model_exist_before_the_step_too(self):
        def make():
            points = torch.nn.Parameter(torch.randn(16, 3))
            optimizer = torch.optim.SGD([points], lr=0.1)

            def step():
                loss = points.exp().sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

            return [], optimizer, step

        program = record(make)
        old = [buffer for buffer in program.existing if buffer.kind == "gradient"]
        self.assertEqual([(buffer.size, buffer.name) for buffer in old], [(192, "")])
        self.assertEqual([subject for what, subject in program.steps if what == "free"][:1], old)


class Files(unittest.TestCase):
    def test_the_same_step_gives_the_same_bytes_plain_and_compressed(self):
        with tempfile.TemporaryDirectory() as folder:
            for ending in ("jsonl", "jsonl.gz"):
                contents = []
                for index in range(2):
                    path = os.path.join(folder, f"{index}.{ending}")
                    record(two_layers, name="two layers").save(path)
                    with open(path, "rb") as file:
                        contents.append(file.read())
                self.assertEqual(contents[0], contents[1])
            self.assertEqual(len(os.listdir(folder)), 4)  # no partial file remains

    def test_a_phase_mark_stands_before_the_allocations_of_its_first_op(self):
        program, buffer = Program(), Buffer(8)
        program.alloc(buffer)
        program.run(Op("aten::a", [(buffer, "write")], phase="forward"))
        keys = [next(iter(line)) for line in program.lines()]
        self.assertEqual(keys, ["tidepool", "mark", "alloc", "run"])

    def test_metadata_names_model_device_and_version_and_says_that_times_are_estimated(self):
        meta = json.loads(json.dumps(next(record(two_layers, device="h200", name="m").lines())))["meta"]
        self.assertEqual(meta["source"], "torch")
        self.assertEqual(meta["model"], "m")
        self.assertEqual(meta["device"], "h200")
        self.assertEqual((meta["time"], meta["times"], meta["times_error"]), ("estimated", "h200", "10 %"))
        self.assertEqual(meta["torch"], torch.__version__.split("+")[0])
        self.assertEqual(meta["capture"], "dispatch mode, fake tensors")


class Messages(unittest.TestCase):
    def test_an_unknown_device_is_refused_with_the_known_ones(self):
        with self.assertRaises(ValueError) as caught:
            tidepool_torch.Recorder(torch.nn.Linear(1, 1), device="a10")
        self.assertEqual(str(caught.exception),
                         "no device named 'a10'; known: a100, a100-40gb, a100-80gb, b200, h100, h100-80gb, h200, l4, l40s, "
                         "rtx-3060, rtx-3090, rtx-4060, rtx-4080, rtx-4090, rtx-5090, rtx-pro-5000, rtx-pro-6000, t4, titan-x, v100")

    def test_measured_times_need_real_tensors(self):
        with self.assertRaises(tidepool_torch.RecordingError) as caught:
            record(two_layers, device=None)
        self.assertEqual(str(caught.exception),
                         "measured times need real tensors on the CPU; name a device to have them estimated")

    def test_a_buffer_that_changes_its_size_is_refused_with_op_and_sizes(self):
        model = torch.nn.Linear(1, 1)
        x = torch.zeros(4)
        with self.assertRaises(tidepool_torch.RecordingError) as caught, tidepool_torch.Recorder(model):
            x.add_(1)
            x.resize_(100)
        self.assertEqual(str(caught.exception), "aten::resize_ changes the size of a buffer from 16 to 400 bytes; "
                                                "a trace holds buffers of one size")

    def test_a_sparse_tensor_is_refused(self):
        model = torch.nn.Linear(1, 1)
        x = torch.eye(4).to_sparse()
        with self.assertRaises(tidepool_torch.RecordingError) as caught, tidepool_torch.Recorder(model):
            x * 2
        self.assertEqual(str(caught.exception),
                         "a tensor of layout torch.sparse_coo has no single storage; record strided tensors")


if __name__ == "__main__":
    unittest.main()
