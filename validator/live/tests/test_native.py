"""The native follower: Python is called only where the plan acts. What the others test of it, they test without TIDEPOOL_NATIVE=off."""

import os
import shutil
import unittest
from unittest import mock

from support import Follower, HostDevice, Planned, SavedTensors, models, torch

from tidepool_live.native_follower import _BRING, _ISSUE
from tidepool_torch import native
from tidepool_torch.errors import RecordingError
from torch._subclasses.fake_tensor import FakeTensorMode


class Native(unittest.TestCase):
    def setUp(self):
        if shutil.which("g++") is None:
            self.skipTest("there is no C++ compiler")
        patch = mock.patch.dict(os.environ, TIDEPOOL_NATIVE="on")
        patch.start()
        self.addCleanup(patch.stop)

    def planned(self, *arguments):
        planned = Planned(*arguments)
        self.addCleanup(planned.close)
        return planned.program

    def test_without_actions_only_the_first_op_and_the_end_of_a_step_call_python(self):
        program = self.planned("gpt", "none", "2x")
        network, optimizer, step = models.make("gpt")
        step()
        asked = []
        with Follower(program, network, optimizer, HostDevice()) as follower:
            for _ in range(3):
                step()
            answer = follower._answer
            with mock.patch.object(follower, "_answer", lambda what, words: (asked.append(what), answer(what, words))):
                step()
        self.assertEqual(follower.report.content()["iterations"], 4)
        self.assertLess(len(program.actions), 2 * len(program.ops))
        self.assertLessEqual(len(asked), 8)
        self.assertGreater(len(program.ops), 100)

    def test_the_core_executes_the_actions_that_python_executes_and_seldom_calls_it(self):
        class Pythons(HostDevice):
            """The core leaves the actions on such a device to Python."""

        for model, policy, capacity, verb in (("gpt", "lru-swap", "0.7x", "swap_in"), ("mlp", "dtr", "0.6x", "run"),
                                              ("cnn", "tide", "0.7x", "discard")):
            program = self.planned(model, policy, capacity)
            planned = sum(done == verb for actions in program.actions for done, _ in actions)
            self.assertGreater(planned, 5)
            results, calls = [], []
            for device in (HostDevice(), Pythons()):
                network, optimizer, step = models.make(model)
                losses, asked = [step()], []
                with Follower(program, network, optimizer, device) as follower:
                    losses += [step() for _ in range(3)]
                    answer = follower._answer
                    with mock.patch.object(follower, "_answer", lambda what, words: (asked.append(what), answer(what, words))):
                        losses.append(step())
                report = follower.report.content()
                calls.append(asked.count(_ISSUE) + asked.count(_BRING))
                results.append((losses, report["counts"], report["left_out"], report["peak_bytes"],
                                [{key: value for key, value in each.items() if "time" not in key} for each in report["each"]]))
            self.assertEqual(results[0], results[1], policy)
            self.assertLess(calls[0], calls[1] / 2, policy)

    def test_an_op_whose_argument_would_have_no_content_raises_an_error(self):
        """As if the plan's content were forgotten: a kernel would read at no address."""
        program = self.planned("mlp", "lru-swap", "0.6x")
        network, optimizer, step = models.make("mlp")
        step()
        with Follower(program, network, optimizer, HostDevice()), \
                mock.patch("tidepool_live.native_parts.NativeContents.swap_in", lambda *_: True), \
                self.assertRaisesRegex(RuntimeError, "an argument of aten::[a-z_]* has no content; please report"):
            step()
            step()

    def test_gradients_are_added_in_place_as_without_a_plan(self):
        program = self.planned("gpt", "lru-swap", "0.7x")
        names = [op.name for op in program.ops]
        self.assertIn("aten::add_", names)
        network, optimizer, step = models.make("gpt")
        step()
        with Follower(program, network, optimizer, HostDevice()) as follower:
            for _ in range(4):
                step()
        report = follower.report.content()
        self.assertEqual((report["iterations"], report["deviations"]), (4, 0))

    def test_ops_of_a_loader_are_no_others_beside_the_step(self):
        """With more than 16 of those, a step is not measured."""

        def make():
            torch.manual_seed(0)
            network = torch.nn.Linear(8, 8)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
            loader = torch.utils.data.DataLoader(range(1000), batch_size=20, collate_fn=lambda numbers: torch.stack(
                [torch.full((8,), float(number)) for number in numbers]))
            batches = iter(loader)

            def step():
                optimizer.zero_grad()
                with torch.no_grad():
                    network.weight.mul_(0.99)  # the first op of the step is before those of the loader
                network(next(batches)).square().mean().backward()
                optimizer.step()

            return network, optimizer, step

        program = self.planned(make, "none", "1GiB")
        network, optimizer, step = make()
        step()
        with Follower(program, network, optimizer, HostDevice()) as follower:
            for _ in range(6):
                step()
        report = follower.report.content()
        self.assertEqual((report["iterations"], report["measured"], report["deviations"]), (6, 4, 0))

    def test_fake_tensors_transforms_and_errors_between_steps_do_not_disturb_the_plan(self):
        program = self.planned("mlp", "dtr", "0.6x")
        network, optimizer, step = models.make("mlp")
        values = [step()]
        with Follower(program, network, optimizer, HostDevice()) as follower, SavedTensors(follower):
            for _ in range(4):
                values.append(step())
                with FakeTensorMode():
                    fake = torch.ones(8, 8)
                    (fake @ fake).relu_().sum()
                self.assertEqual(torch.func.grad(lambda x: x.square().sum())(torch.ones(3)).tolist(), [2, 2, 2])
                self.assertEqual(torch.vmap(lambda x: x * 2)(torch.ones(2, 1)).tolist(), [[2], [2]])
                with self.assertRaisesRegex(RuntimeError, "must match"):
                    torch.ones(3) + torch.ones(4)
        report = follower.report.content()
        _, _, step = models.make("mlp")
        self.assertEqual(values, [step() for _ in range(5)])
        self.assertEqual((report["iterations"], report["deviations"], report["left_out"]), (4, 0, {}))
        self.assertNotIn("stopped", report)

    def test_a_plan_that_needs_the_core_is_refused_without_it(self):
        program = self.planned("mlp", "dtr", "0.6x")
        with mock.patch.object(native, "core", side_effect=native.NativeError("there is no C++ compiler (g++)")), \
                self.assertRaisesRegex(RecordingError, "cannot be used here: there is no C.. compiler .g...; expected a trace"):
            Follower(program, torch.nn.Linear(1, 1), [], HostDevice())


if __name__ == "__main__":
    unittest.main()
