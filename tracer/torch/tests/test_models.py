"""Tests of names, phases and kinds in whole steps, and that recording changes nothing."""

import unittest

from support import impossible_steps, ops, record, short, the_op, torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import tidepool_torch


class Tied(nn.Module):
    """Embedding and output layer share their weight."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, words):
        return self.head(self.embedding(words))


class Branches(nn.Module):
    """Two branches whose results are multiplied."""

    def __init__(self):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(4, 4), nn.GELU())
        self.right = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x):
        return self.left(x) * self.right(x)


def training(model_type, optimizer_type, inputs, **options):
    def make():
        model = model_type()
        optimizer = optimizer_type(model.parameters(), lr=0.1, foreach=True, **options)
        x = inputs()

        def step():
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        return model, optimizer, step
    return make


WORDS = lambda: torch.zeros(3, 5, dtype=torch.int64)
VECTORS = lambda: torch.randn(3, 4)


class Names(unittest.TestCase):
    def test_tied_weights_are_one_buffer_with_one_gradient(self):
        program = record(training(Tied, torch.optim.SGD, WORDS))
        self.assertEqual([b.name for b in program.buffers() if b.kind == "parameter"], ["embedding.weight"])
        self.assertEqual([b.name for b in program.buffers() if b.name.endswith(".grad")], ["embedding.weight.grad"])

    def test_forward_and_backward_ops_know_their_modules(self):
        program = record(training(Branches, torch.optim.SGD, VECTORS))
        found = {(short(op.name), op.phase): op.module for op in program.ops()}
        self.assertEqual(found[("gelu", "forward")], "left.1")
        self.assertEqual(found[("tanh", "forward")], "right.1")
        self.assertEqual(found[("gelu_backward", "backward")], "left.1")
        self.assertEqual(found[("tanh_backward", "backward")], "right.1")
        linear = [op.module for op in program.ops() if op.phase == "backward" and short(op.name) == "mm"]
        self.assertEqual(sorted(set(linear)), ["left.0", "right.0"])
        self.assertEqual({op.module for op in program.ops() if op.phase == "optimizer"}, {""})

    def test_every_parameter_has_a_gradient_that_is_written_in_backward(self):
        program = record(training(Branches, torch.optim.Adam, VECTORS))
        written = {b.name for op in program.ops() if op.phase == "backward" for b, a in op.uses if a != "read"}
        parameters = [b.name for b in program.existing if b.kind == "parameter"]
        self.assertEqual(len(parameters), 4)
        self.assertLessEqual({name + ".grad" for name in parameters}, written)

    def test_phases_follow_each_other(self):
        phases = [op.phase for op in record(training(Branches, torch.optim.Adam, VECTORS)).ops()]
        self.assertEqual([p for i, p in enumerate(phases) if i == 0 or phases[i - 1] != p],
                         ["forward", "backward", "optimizer"])


class Optimizers(unittest.TestCase):
    def test_the_state_of_adam_exists_before_and_outlives_the_step(self):
        program = record(training(Branches, torch.optim.Adam, VECTORS))
        state = [b for b in program.existing if b.kind == "optimizer_state"]
        self.assertEqual(len(state), 2 * 4)
        self.assertIn("left.0.weight.exp_avg_sq", [b.name for b in state])
        self.assertFalse({s for w, s in program.steps if w == "free"} & set(state))

    def test_state_made_in_the_recorded_step_is_known_as_such(self):
        program = record(training(Branches, torch.optim.Adam, VECTORS), warmup=0)
        born = [s for w, s in program.steps if w == "alloc" and s.kind == "optimizer_state"]
        self.assertEqual(len(born), 2 * 4)

    def test_step_counters_on_the_host_are_left_out(self):
        program = record(training(Branches, torch.optim.Adam, VECTORS))
        self.assertEqual([b.name for b in program.buffers() if b.name.endswith(".step")], [])
        self.assertNotIn("_local_scalar_dense", ops(program))

    def test_lists_of_an_optimizer_have_one_length_with_a_parameter_without_dimensions(self):
        def make():
            model, scale = nn.Linear(4, 2), nn.Parameter(torch.tensor(2.0))
            optimizer = torch.optim.AdamW([*model.parameters(), scale], foreach=True)
            x = torch.randn(3, 4)

            def step():
                optimizer.zero_grad()
                (scale.exp() * model(x)).sum().backward()
                optimizer.step()

            return model, optimizer, step

        uses = the_op(record(make), "_foreach_lerp_").uses
        self.assertEqual([access for _, access in uses], 3 * ["read_write"] + 3 * ["read"])

    def test_a_fused_optimizer_is_one_op_and_reads_its_gradients(self):
        def make():
            model = nn.Linear(4, 2)
            optimizer = torch.optim.Adam(model.parameters(), fused=True)
            x = torch.randn(3, 4)

            def step():
                model(x).sum().backward()
                optimizer.step()
                optimizer.zero_grad()

            return model, optimizer, step

        uses = the_op(record(make), "_fused_adam_").uses
        self.assertEqual({(b.kind, a) for b, a in uses if not b.name.endswith(".step")}, {
            ("parameter", "read_write"), ("optimizer_state", "read_write"), ("gradient", "read")})


class Checkpoints(unittest.TestCase):
    def test_a_recomputed_forward_keeps_its_module_and_makes_activations(self):
        def make():
            model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
            x = torch.randn(3, 4)
            return model, None, lambda: model[2](checkpoint(model[:2], x, use_reentrant=False)).sum().backward()

        program = record(make)
        tanh = [op for op in program.ops() if short(op.name) == "tanh"]
        self.assertEqual([(op.module, op.phase) for op in tanh], 2 * [("1", "forward")])
        self.assertEqual([op.module for op in program.ops() if short(op.name) == "tanh_backward"], ["1"])
        self.assertEqual(impossible_steps(program), [])


class FakeCopies(unittest.TestCase):
    def test_a_fake_copy_of_a_real_model_is_recorded_like_one_that_was_made_fake(self):
        real = Tied()

        def copied():
            model = tidepool_torch.fake_copy(real)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
            x = WORDS()

            def step():
                model(x).sum().backward()
                optimizer.step()
                optimizer.zero_grad()

            return model, optimizer, step

        def without_lines_of_code(program):
            return [{key: value for key, value in line.items() if key != "line"} for line in program.lines()]

        made = record(training(Tied, torch.optim.SGD, WORDS))
        self.assertEqual(without_lines_of_code(record(copied)), without_lines_of_code(made))


class RealTensors(unittest.TestCase):
    def train(self, recorded):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten(),
                              nn.Dropout(0.5), nn.Linear(4 * 36, 3))
        optimizer = torch.optim.Adam(model.parameters())
        x, y = torch.randn(5, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1])

        def step():
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()

        program = None
        if recorded:
            program = tidepool_torch.record_steps(step, model, optimizer, device=None).program
        else:
            step(), step()
        return program, [tensor.clone() for tensor in model.state_dict().values()]

    def test_recording_changes_no_result(self):
        _, expected = self.train(recorded=False)
        _, found = self.train(recorded=True)
        for a, b in zip(expected, found):
            self.assertTrue(torch.equal(a, b))

    def test_times_are_measured_and_the_program_is_possible(self):
        program, _ = self.train(recorded=True)
        self.assertEqual(impossible_steps(program), [])
        self.assertEqual((program.meta["time"], program.meta["device"]), ("measured", "cpu"))
        self.assertTrue(all(op.duration_ns > 0 for op in program.ops() if not op.name.endswith(".running_stats")))

    def test_fake_and_real_tensors_give_the_same_buffers(self):
        def make():
            model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.LayerNorm(8), nn.Linear(8, 2))
            optimizer = torch.optim.Adam(model.parameters(), foreach=True)
            x = torch.randn(16, 4)

            def step():
                model(x).sum().backward()
                optimizer.step()
                optimizer.zero_grad()

            return model, optimizer, step

        model, optimizer, step = make()
        real = tidepool_torch.record_steps(step, model, optimizer, device="a100").program
        keep = lambda program: [line for line in program.lines() if "tidepool" not in line]
        self.assertEqual(keep(real), keep(record(make)))


if __name__ == "__main__":
    unittest.main()
