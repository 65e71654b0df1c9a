"""Reads and writes of single ops, one behaviour each."""

import unittest

from support import accesses, impossible_steps, ops, record, short, the_op, torch
from torch import nn
from torch.nn import functional as F
from torch.testing._internal.two_tensor import TwoTensor


def forward(function, *modules):
    """Records one call of what function() returns. Buffers of modules, if any, have names."""

    def make():
        inner = function()
        return nn.ModuleList(modules), None, inner

    return record(make, warmup=0)


class InPlace(unittest.TestCase):
    def test_an_in_place_op_reads_and_writes_one_buffer(self):
        program = forward(lambda: (lambda t=torch.ones(4): t.relu_()))
        self.assertEqual(accesses(the_op(program, "relu_")), ["read_write"])

    def test_an_op_that_ignores_the_old_content_writes_it(self):
        for name, change in (("zero_", lambda t: t.zero_()), ("copy_", lambda t: t.copy_(torch.ones(4))),
                             ("normal_", lambda t: t.normal_())):
            with self.subTest(name):
                program = forward(lambda: (lambda t=torch.ones(4): change(t)))
                self.assertEqual([a for b, a in the_op(program, name).uses if b.kind == "input"], ["write"])

    def test_writing_a_part_of_a_buffer_keeps_the_rest(self):
        program = forward(lambda: (lambda t=torch.ones(4): t[:2].zero_()))
        self.assertEqual(accesses(the_op(program, "zero_")), ["read_write"])

    def test_a_result_argument_is_written(self):
        program = forward(lambda: (lambda a=torch.ones(4), out=torch.ones(4): torch.add(a, a, out=out)))
        self.assertEqual(accesses(the_op(program, "add")), ["read", "write"])

    def test_an_empty_result_argument_becomes_a_buffer_when_it_grows(self):
        program = forward(lambda: (lambda a=torch.ones(4), out=torch.empty(0): torch.add(a, a, out=out)))
        add = the_op(program, "add")
        self.assertEqual([(b.size, a) for b, a in add.uses], [(16, "read"), (16, "write")])
        self.assertEqual([s for w, s in program.steps if w == "alloc"], [add.uses[1][0]])


class Holders(unittest.TestCase):
    """Tensors that hold others, as DTensor does."""

    def test_ops_on_holders_are_recorded_as_ops_on_the_held_tensors(self):
        program = forward(lambda: (lambda both=TwoTensor(torch.ones(4), torch.ones(4)): both.exp()))
        self.assertEqual(ops(program), ["exp", "exp"])
        self.assertEqual([op.uses[0] for op in program.ops()], [(held, "read") for held in program.existing])

    def test_tensors_that_a_parameter_holds_have_its_name_and_kind(self):
        def make():
            model = nn.Module()
            model.weight = nn.Parameter(TwoTensor(torch.ones(4), torch.ones(4)))
            return model, None, model.weight.exp

        program = record(make, warmup=0)
        self.assertEqual([(held.name, held.kind) for held in program.existing], [("weight", "parameter")] * 2)


class Content(unittest.TestCase):
    def test_views_are_no_ops_and_reads_through_them_are_reads_of_the_storage(self):
        program = forward(lambda: (lambda t=torch.ones(4, 6): t.t()[1:3].reshape(2, 2, 2).exp()))
        self.assertEqual(ops(program), ["exp"])
        self.assertEqual(the_op(program, "exp").uses[0], (program.existing[0], "read"))

    def test_an_op_that_takes_only_a_shape_reads_nothing(self):
        program = forward(lambda: (lambda t=torch.ones(4): (torch.zeros_like(t), t.new_ones(3))))
        self.assertEqual(accesses(the_op(program, "zeros_like")), ["write"])
        self.assertEqual(accesses(the_op(program, "new_ones")), ["write"])

    def test_an_empty_tensor_that_is_then_overwritten_is_only_an_allocation(self):
        program = forward(lambda: (lambda t=torch.ones(4): torch.empty(4).copy_(t)))
        self.assertEqual(ops(program), ["copy_"])

    def test_an_empty_tensor_that_is_filled_in_parts_gets_an_op_that_makes_it(self):
        program = forward(lambda: (lambda t=torch.ones(2): torch.empty(4)[:2].copy_(t)))
        self.assertEqual(ops(program), ["empty", "copy_"])
        self.assertEqual(the_op(program, "empty").duration_ns, 0)
        self.assertEqual(impossible_steps(program), [])

    def test_a_number_that_becomes_a_tensor_stays_on_the_host_and_a_list_of_numbers_is_a_source(self):
        program = forward(lambda: (lambda: (torch.tensor(1.0) + 1, torch.tensor([1.0, 2.0]).exp())))
        self.assertEqual(ops(program), ["lift_fresh", "exp"])
        self.assertEqual(the_op(program, "lift_fresh").kind, "source")


class Normalisation(unittest.TestCase):
    def make(self, training):
        def inner():
            model = nn.BatchNorm2d(3).train(training)
            x = torch.randn(2, 3, 4, 4)
            return model, None, lambda: model(x).sum().backward()
        return record(inner)

    def test_running_statistics_are_updated_by_an_op_of_their_own(self):
        program = self.make(training=True)
        main, update = the_op(program, "native_batch_norm"), the_op(program, "native_batch_norm.running_stats")
        self.assertEqual([(b.name or b.kind, a) for b, a in main.uses], [
            ("input", "read"), ("weight", "read"), ("bias", "read"),
            ("activation", "write"), ("activation", "write"), ("activation", "write")])
        named = {buffer.name: buffer for buffer in program.existing}
        self.assertEqual(update.uses, [
            (main.uses[4][0], "read"), (main.uses[5][0], "read"),
            (named["running_mean"], "read_write"), (named["running_var"], "read_write")])
        self.assertEqual(update.duration_ns, 0)
        self.assertGreater(main.duration_ns, 0)

    def test_backward_in_training_mode_does_not_read_the_running_statistics(self):
        names = [b.name for b, _ in the_op(self.make(training=True), "native_batch_norm_backward").uses]
        self.assertNotIn("running_mean", names)

    def test_in_evaluation_mode_running_statistics_are_read_and_not_updated(self):
        program = self.make(training=False)
        self.assertIn("running_mean", [b.name for b, a in the_op(program, "native_batch_norm").uses if a == "read"])
        self.assertEqual([name for name in ops(program) if "running_stats" in name], [])
        self.assertIn("running_mean", [b.name for b, _ in the_op(program, "native_batch_norm_backward").uses])


class Randomness(unittest.TestCase):
    def test_dropout_is_one_random_op_with_a_mask_of_bytes(self):
        program = forward(lambda: (lambda t=torch.ones(100): F.dropout(t, 0.5)))
        op = the_op(program, "native_dropout")
        self.assertTrue(op.random)
        self.assertEqual([(b.size, a) for b, a in op.uses], [(400, "read"), (400, "write"), (100, "write")])

    def test_dropout_that_is_off_makes_no_op(self):
        self.assertEqual(ops(forward(lambda: (lambda t=torch.ones(4): F.dropout(t, 0.5, training=False)))), [])

    def test_attention_is_random_only_with_dropout_and_makes_no_matrix_of_scores(self):
        for p in (0.0, 0.1):
            with self.subTest(p):
                def inner():
                    q, k, v = (torch.ones(2, 4, 256, 64, requires_grad=True) for _ in range(3))
                    return lambda: F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True).sum().backward()

                program = forward(inner)
                self.assertEqual(the_op(program, "_scaled_dot_product_efficient_attention").random, p > 0)
                self.assertFalse(the_op(program, "_scaled_dot_product_efficient_attention_backward").random)
                self.assertEqual(max(b.size for b in program.buffers()), 2 * 4 * 256 * 64 * 4)

    def test_sixteen_bit_attention_is_flash(self):
        def inner():
            q = torch.ones(2, 4, 256, 64, dtype=torch.bfloat16)
            return lambda: F.scaled_dot_product_attention(q, q, q)

        self.assertEqual(ops(forward(inner)), ["_scaled_dot_product_flash_attention"])

    def test_ops_that_draw_random_numbers_are_random_and_constants_are_not(self):
        program = forward(lambda: (lambda: (torch.rand(4), torch.ones(4))))
        self.assertEqual([(short(op.name), op.random) for op in program.ops()], [("rand", True), ("ones", False)])


class HostMemory(unittest.TestCase):
    def test_with_a_model_on_a_gpu_host_tensors_are_left_out_and_copies_cross(self):
        def make():
            try:
                model = nn.Linear(4, 2, device="cuda")
            except (RuntimeError, AssertionError) as error:
                raise unittest.SkipTest(f"this PyTorch makes no fake CUDA tensors: {error}")
            batch = torch.randn(3, 4)

            def step():
                with torch.no_grad():
                    (model((batch + 1).to("cuda")) * torch.tensor(2.0)).to("cpu").add_(1)

            return model, None, step

        program = record(make)
        self.assertEqual([(short(op.name), op.kind, accesses(op)) for op in program.ops()], [
            ("_to_copy", "source", ["write"]),
            ("addmm", "kernel", ["read", "read", "read", "write"]),
            ("mul", "kernel", ["read", "write"]),
            ("_to_copy", "copy", ["read"])])
        self.assertEqual([b.kind for b in program.existing], ["parameter", "parameter"])
        self.assertEqual([b.kind for b in program.buffers() if b not in program.existing],
                         ["input", "activation", "activation"])

    def test_with_an_optimizer_of_tensors_on_a_gpu_host_tensors_are_left_out_without_a_model_too(self):
        def make():
            try:
                weight = nn.Parameter(torch.ones(4, 2, device="cuda"))
            except (RuntimeError, AssertionError) as error:
                raise unittest.SkipTest(f"this PyTorch makes no fake CUDA tensors: {error}")
            batch = torch.randn(3, 4)

            def step():
                with torch.no_grad():
                    (batch + 1).to("cuda") @ weight

            return [], torch.optim.SGD([weight]), step

        program = record(make)
        self.assertEqual([(short(op.name), op.kind, accesses(op)) for op in program.ops()],
                         [("_to_copy", "source", ["write"]), ("mm", "kernel", ["read", "read", "write"])])

    def test_tensors_of_the_meta_device_take_no_memory_and_their_ops_are_left_out(self):
        def make():
            model, shapes = nn.Linear(4, 2), nn.Linear(4, 2, device="meta")  # as torch.func.functional_call takes them
            batch, like = torch.randn(3, 4), torch.empty(3, 4, device="meta")

            def step():
                with torch.no_grad():
                    shapes(like + 1)
                    model(batch)

            return [model, shapes], None, step

        program = record(make)
        self.assertEqual(ops(program), ["addmm"])
        self.assertEqual([b.kind for b in program.buffers()], ["parameter", "parameter", "input", "activation"])


class Recurrence(unittest.TestCase):
    def test_an_lstm_layer_is_one_op_and_keeps_gates_and_cells_for_backward(self):
        # Four gates and one cell of 5 floats each, for 7 steps of 3 sequences: 7 x 3 x (4 + 1) x 5 x 4 B = 2100 B
        def make():
            model = nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True)
            x = torch.randn(3, 7, 4)
            return model, None, lambda: model(x)[0].sum().backward()

        program = record(make, warmup=0)
        self.assertEqual(ops(program).count("tidepool::lstm_layer"), 4)
        self.assertEqual(ops(program).count("tidepool::lstm_layer_backward"), 4)
        self.assertEqual(sum(b.size == 2100 for b in program.buffers()), 4)
        self.assertEqual(sum(b.kind == "gradient" and b.name.startswith("weight_ih") for b in program.buffers()), 4)
        self.assertEqual(impossible_steps(program), [])

    def test_the_fake_lstm_has_the_shapes_of_the_real_one(self):
        for batch_first in (False, True):
            real = nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=batch_first, dropout=0.1)
            expected = real(torch.randn(3, 7, 4))
            shapes = []

            def make():
                model = nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=batch_first, dropout=0.1)
                x = torch.randn(3, 7, 4)

                def step():
                    output, (hidden, cell) = model(x)
                    shapes.append([output.shape, hidden.shape, cell.shape])

                return model, None, step

            record(make, warmup=0)
            self.assertEqual(shapes, [[expected[0].shape, expected[1][0].shape, expected[1][1].shape]])


if __name__ == "__main__":
    unittest.main()
