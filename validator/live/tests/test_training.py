"""Plans of the simulator on networks that really train. Every loss and weight has the same bits as without a plan.
The peak of memory is exactly the predicted one; under plans with copies it may be lower."""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import unittest

from support import HERE, PROGRAM, Follower, HostDevice, Planned, SavedTensors, check_numbers, models, tidepool, torch, train


class LazyDevice(HostDevice):
    """Copies start only when somebody waits for them. A copy that nobody waits for never runs."""

    def __init__(self):
        pass

    def copy(self, lane, target, source, after=None):
        return [after, target, source]

    def wait(self, event):
        if event:
            after, target, source = event
            event.clear()
            if after is not None:
                self.wait(after)
            target.copy_(source)


def dropped_for_good(program):
    """The versions that leave in an action and come back in none."""
    last = {version: verb for before in program.actions for verb, version in before if verb in ("discard", "swap_in")}
    return {version for version, verb in last.items() if verb == "discard"}


class Training(unittest.TestCase):
    def check(self, model, policy, capacity, device=None, verbs=()):
        planned = Planned(model, policy, capacity)
        self.addCleanup(planned.close)
        losses, state, _ = train(model, 5)
        followed, followed_state, report = train(model, 5, planned.program, device)
        self.assertEqual(followed, losses)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(followed_state, state)))
        self.assertEqual((report["iterations"], report["deviations"], report["left_out"]), (4, 0, {}))
        for verb in verbs:
            self.assertGreater(report["counts"][verb], 0)
        peak = planned.program.predicted["peak_bytes"]
        if "swap_out" in verbs:  # a copy takes no time here; the prediction counts its place until it ends
            self.assertLessEqual(report["peak_bytes"], peak)
            self.assertGreater(report["peak_bytes"], 0.95 * peak)
        else:
            self.assertEqual(report["peak_bytes"], peak)
        # Two kinds of versions are swapped out once each without an action of the plan: those that a planned step expects
        # on the host at its begin (in the step before it), and those that it drops for good (before they are dropped).
        further = sum(planned.program.sizes[planned.program.buffer_of[version]]
                      for version in dropped_for_good(planned.program) | planned.program.parked)
        self.assertLessEqual(report["each"][-1]["swap_out_bytes"], planned.program.predicted["swap_out_bytes"] + further)

    def test_an_mlp_under_recomputation(self):
        self.check("mlp", "dtr", "0.6x", verbs=("drop", "run"))

    def test_an_mlp_under_swapping(self):
        self.check("mlp", "lru-swap", "0.6x", verbs=("swap_out", "drop", "swap_in"))

    def test_a_cnn_under_recomputation(self):
        self.check("cnn", "dtr", "0.8x", verbs=("drop", "run"))

    def test_a_cnn_under_swapping(self):
        self.check("cnn", "lru-swap", "0.6x", verbs=("swap_out", "drop", "swap_in"))

    def test_a_cnn_whose_running_statistics_leave_before_it_is_recomputed(self):
        self.check("cnn", "pooch", "0.6x", verbs=("swap_out", "run", "swap_in"))

    def test_a_gpt_under_swapping_with_copies_as_late_as_they_may_be(self):
        self.check("gpt", "lru-swap", "0.8x", LazyDevice(), verbs=("swap_out", "drop", "swap_in"))

    def test_weights_updated_by_hand_come_back_after_the_backward_pass(self):
        def make():
            torch.manual_seed(0)
            network = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 8))

            def step():
                for each in network.parameters():
                    if each.grad is not None:
                        each.data.add_(each.grad, alpha=-0.1)
                network.zero_grad()
                loss = network(torch.randn(128, 256)).square().mean()
                loss.backward()
                return loss.detach()

            return network, (), step

        report, predicted = check_numbers(self, make, "lru-swap", "0.9x", lambda made: [made[2]() for _ in range(4)])
        self.assertEqual(report["deviations"], 0)
        self.assertGreater(report["counts"]["swap_in"], 0)
        self.assertLessEqual(report["peak_bytes"], predicted["limit_bytes"])

    def test_a_gpt_under_swapping_and_recomputation(self):
        self.check("gpt", "tide(effort=5)", "0.65x", verbs=("swap_out", "drop", "swap_in", "run"))


class Deviations(unittest.TestCase):
    """The job deviates from the recorded step while some versions are not resident."""

    def test_an_evaluation_within_a_step_and_steps_without_update_change_nothing(self):
        planned = Planned("mlp", "tide", "0.6x")
        self.addCleanup(planned.close)

        def run(plan):
            network, optimizer, step = models.make("mlp")
            x = torch.randn(512, 64)
            values = [step()]

            def detours():
                for number in range(3):
                    values.extend([step(), step()])
                    loss = network(x).square().mean()
                    if number == 1:
                        with torch.no_grad():
                            values.append(network(x[:7]).sum().item())  # while activations are not resident
                    loss.backward()
                    if number == 2:
                        optimizer.zero_grad()  # a step that is skipped
                    optimizer.step()
                values.extend([step(), step()])

            if plan is None:
                detours()
                return values, None
            with Follower(plan, network, optimizer, HostDevice()) as follower:
                detours()
            return values, follower.report.content()

        plain, _ = run(None)
        followed, report = run(planned.program)
        self.assertEqual(followed, plain)
        self.assertGreaterEqual(report["iterations"], 6)
        self.assertGreater(report["deviations"], 0)

    def test_content_that_no_op_of_the_step_reads_again_is_there_for_other_code(self):
        """The plan drops content that it does not bring back. Then an update overwrites the weights that made this content."""

        def make():
            torch.manual_seed(0)
            network, x = torch.nn.Linear(64, 64), torch.randn(512, 64)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

            def step(look=False):
                hidden = network(x)  # 128 KiB, which the step keeps to its end
                loss = hidden.square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                large = x.repeat(1, 4)  # 512 KiB, for which `hidden` must go
                large.add_(1)
                return hidden.sum().item() if look else loss.item()

            return network, optimizer, step

        planned = Planned(make, "tide", "0.9x")
        self.addCleanup(planned.close)
        self.assertTrue(dropped_for_good(planned.program))

        def run(plan):
            network, optimizer, step = make()
            values = [step()]
            if plan is None:
                return values + [step(look) for look in (False, False, False, True, False)], None
            with Follower(plan, network, optimizer, HostDevice()) as follower:
                values += [step(look) for look in (False, False, False, True, False)]
            return values, follower.report.content()

        followed, report = run(planned.program)
        self.assertEqual(followed, run(None)[0])
        self.assertGreater(report["counts"]["drop"], 0)

    def test_an_op_that_asks_for_a_shape_brings_no_content_back(self):
        """`hidden` must leave the device for `large`. Then an op makes zeros in the shape of `hidden`."""

        def make():
            torch.manual_seed(0)
            network, x = torch.nn.Linear(64, 64), torch.randn(512, 64)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

            def step():
                hidden = network(x)  # 128 KiB, which the step keeps to its end
                loss = hidden.square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                large = x.repeat(1, 4)  # 512 KiB
                large.add_(torch.zeros_like(hidden)[:1, :1])
                large.add_(torch.ones_like(loss))
                return large.sum().item()

            return network, optimizer, step

        planned = Planned(make, "tide", "0.9x")
        self.addCleanup(planned.close)
        network, optimizer, step = make()
        with Follower(planned.program, network, optimizer, HostDevice()) as follower:
            values = [step() for _ in range(5)]
        report = follower.report.content()
        _, _, step = make()
        self.assertEqual(values, [step() for _ in range(5)])
        self.assertEqual((report["deviations"], report["counts"].get("on demand", 0)), (0, 0))
        self.assertGreater(report["counts"]["drop"], 0)
        self.assertAlmostEqual(report["peak_bytes"], planned.program.predicted["peak_bytes"], delta=64)  # a few scalars

    def test_content_that_an_evaluation_between_two_steps_brings_back_leaves_again_before_the_next_step(self):
        def make():
            torch.manual_seed(0)
            network, x = torch.nn.ModuleList([torch.nn.Linear(64, 512), torch.nn.Linear(64, 8)]), torch.randn(512, 64)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

            def step():
                large = x.repeat(1, 4)  # 512 KiB, for which the first layer's 128 KiB must go
                scale = large.square().mean()
                del large
                loss = network[1](x).square().mean() + network[0](x[:8]).square().mean() * scale
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                return loss.item()

            def evaluate():
                place = torch.empty(8, 512)  # the plan's first actions come with this allocation
                with torch.no_grad():
                    return torch.mm(x[:8], network[0].weight.t(), out=place).sum().item()

            return network, optimizer, step, evaluate

        planned = Planned(lambda: make()[:3], "tide", "0.9x")
        self.addCleanup(planned.close)
        self.assertTrue(planned.program.parked)
        network, optimizer, step, evaluate = make()
        values = [step()]
        with Follower(planned.program, network, optimizer, HostDevice()) as follower:
            for _ in range(6):
                values += [step(), evaluate()]
        report = follower.report.content()
        _, _, step, evaluate = make()
        plain = [step()]
        for _ in range(6):
            plain += [step(), evaluate()]
        self.assertEqual(values, plain)
        self.assertEqual((report["iterations"], report["deviations"]), (6, 0))
        self.assertGreater(report["counts"]["on demand"], 0)
        self.assertLessEqual(report["peak_bytes"], planned.program.predicted["peak_bytes"])

    def test_gradients_that_only_wait_for_zero_grad_leave_as_planned(self):
        """No op of the step uses the gradients of the step before: they are recognized by the point where they end. Buffers of
        an update itself have the same sizes, and end at the end of the step."""

        def make(optimizer_of):
            torch.manual_seed(0)
            network, x = torch.nn.Linear(64, 512), torch.randn(512, 64)
            optimizer = optimizer_of(network.parameters())

            def step():
                large = x.repeat(1, 4).square()  # 512 KiB, for which the gradients' 130 KiB must go
                optimizer.zero_grad()
                loss = network(x[:8]).square().mean() * large.mean()
                loss.backward()
                optimizer.step()
                return loss.detach()  # the update is the last op

            return network, optimizer, step

        for optimizer_of in (lambda each: torch.optim.SGD(each, lr=0.1), lambda each: torch.optim.Adam(each, foreach=True)):
            report, predicted = check_numbers(
                self, lambda: make(optimizer_of), "tide", "0.9x", lambda made: [made[2]().item() for _ in range(6)])  # noqa: B023
            self.assertEqual((report["iterations"], report["deviations"], report["left_out"]), (6, 0, {}))
            self.assertLessEqual(report["peak_bytes"], predicted["peak_bytes"])

    def test_parameters_that_no_op_of_the_step_uses_leave_as_planned(self):
        """They are known by their names: no op shows them."""

        def make():
            torch.manual_seed(0)
            network = torch.nn.ModuleDict({"used": torch.nn.Linear(64, 512), "rests": torch.nn.Linear(256, 512)})
            optimizer, x = torch.optim.SGD(network.parameters(), lr=0.1), torch.randn(512, 64)

            def step():
                loss = network["used"](x).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                return loss.item()

            return network, optimizer, step

        planned = Planned(make, "lru-swap", "0.9x")
        self.addCleanup(planned.close)
        network, optimizer, step = make()
        before = network["rests"].weight.detach().clone()
        values = [step()]
        with Follower(planned.program, network, optimizer, HostDevice()) as follower:
            values += [step() for _ in range(3)]
            asked = network["rests"](torch.ones(1, 256)).sum().item()  # between two steps
            values += [step() for _ in range(3)]
        report = follower.report.content()
        self.assertTrue(torch.equal(before, network["rests"].weight))
        network, _, step = make()
        self.assertEqual(values, [step() for _ in range(7)])
        self.assertEqual(asked, network["rests"](torch.ones(1, 256)).sum().item())
        self.assertEqual((report["iterations"], report["deviations"], report["left_out"]), (6, 0, {}))
        self.assertGreater(report["counts"]["swap_in"], 0)
        self.assertLessEqual(report["peak_bytes"], planned.program.predicted["peak_bytes"])

    def test_state_that_leaves_at_a_false_begin_of_the_step_is_back_for_its_update(self):
        """A step that deviates calls the recorded step's first operator before the update. At that call, optimizer state
        leaves the device. The update of this state is not in the plan."""
        planned = Planned("gpt", "tide(effort=5)", "0.65x")
        self.addCleanup(planned.close)
        self.assertTrue(planned.program.parked)

        def run(plan):
            network, optimizer, step = models.make("gpt")
            text = torch.randint(0, 128, (4, 33))

            def strange_step():
                optimizer.zero_grad()
                network(text[:, :-1]).abs().mean().backward()
                network.embed(text[:1])
                optimizer.step()

            values = [step()]
            if plan is None:
                for _ in range(3):
                    values += [step(), step(), step()]
                    strange_step()
                return values + [step(), step()], None
            with Follower(plan, network, optimizer, HostDevice()) as follower:
                for _ in range(3):
                    values += [step(), step(), step()]
                    strange_step()
                values += [step(), step()]
            return values, follower.report.content()

        followed, report = run(planned.program)
        self.assertEqual(followed, run(None)[0])
        self.assertEqual(report["deviations"], 3)

    def test_a_deviation_names_an_op_of_other_sizes_as_such(self):
        planned = Planned("mlp", "dtr", "0.6x")
        self.addCleanup(planned.close)
        network, optimizer, step = models.make("mlp")
        x, small = torch.randn(512, 64), torch.ones(5, 64)
        step()
        with Follower(planned.program, network, optimizer, HostDevice()) as follower:
            step()
            step()
            optimizer.zero_grad()
            hidden = network[0](x)
            network[1](small)
            hidden.abs().mean().backward()
            optimizer.step()
        lost = follower.report.content()["lost"]
        self.assertEqual([(each["expected"], each["saw"]) for each in lost], [("aten::relu_", "aten::relu_ of other sizes")])

    def test_after_eight_strange_iterations_the_plan_is_not_followed_any_more(self):
        planned = Planned("mlp", "dtr", "0.6x")
        self.addCleanup(planned.close)
        network, optimizer, _ = models.make("mlp")
        x = torch.randn(512, 64)

        def step():
            optimizer.zero_grad()
            loss = network(x).abs().mean()  # not the square that was recorded
            loss.backward()
            optimizer.step()

        step()
        with Follower(planned.program, network, optimizer, HostDevice()) as follower:
            for _ in range(10):
                step()
        report = follower.report.content()
        self.assertEqual((report["iterations"], report["deviations"], report["gave_up"]), (0, 8, True))
        self.assertEqual((report["lost"][0]["expected"], report["lost"][0]["saw"]), ("aten::pow", "aten::abs"))


class _Foreign(torch.autograd.Function):
    """x * x. Its backward reads the bytes of x by their address, like a kernel that is no op of PyTorch."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        copied = bytearray(ctypes.string_at(x.data_ptr(), x.numel() * x.element_size()))
        return 2 * torch.frombuffer(copied, dtype=x.dtype).view(x.shape) * gradient


class SavedForForeignCode(unittest.TestCase):
    def make(self):
        torch.manual_seed(0)
        layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(5))
        optimizer, x = torch.optim.SGD(layers.parameters(), lr=0.1, foreach=True), torch.randn(256, 32)

        def step():
            optimizer.zero_grad()
            y = x
            for layer in layers:
                y = _Foreign.apply(layer(y))
            loss = y.mean()
            loss.backward()
            optimizer.step()
            return loss.item()

        return layers, optimizer, step

    def test_saved_tensors_have_their_content_when_code_reads_them_without_ops(self):
        planned = Planned(self.make, "lru-swap", "0.6x")
        self.addCleanup(planned.close)
        _, _, step = self.make()
        losses = [step() for _ in range(6)]
        network, optimizer, step = self.make()
        followed = [step()]
        with Follower(planned.program, network, optimizer, HostDevice()) as follower, SavedTensors(follower):
            followed += [step() for _ in range(5)]
        self.assertEqual(followed, losses)
        report = follower.report.content()
        self.assertEqual((report["iterations"], report["deviations"]), (5, 0))
        self.assertGreater(report["counts"]["swap_in"], 0)


def losses(text):
    """The lines that are hexadecimal numbers; libraries may print other lines."""
    found = []
    for line in text.splitlines():
        try:
            float.fromhex(line)
        except ValueError:
            continue
        found.append(line)
    return found


class Script(unittest.TestCase):
    """The commands alone, on a script that knows nothing of plans: record, plan, run."""

    def test_a_recorded_script_prints_the_same_losses_under_a_plan_of_its_recording(self):
        with tempfile.TemporaryDirectory() as folder:
            trace, plan = os.path.join(folder, "step.tide"), os.path.join(folder, "step.plan")
            script = [sys.executable, os.path.join(HERE, "train.py"), "cnn"]
            tidepool("record", "--torch", "--no-gpu", "--skip", "1", "--iterations", "1", "-o", trace, "--", *script, "3")
            tidepool("simulate", trace, "--first", "--policy", "lru-swap", "--capacity", "0.7x", "--overhead-limit", "none",
                     "--plan-out", plan)
            plain = subprocess.run([*script, "6"], capture_output=True, text=True, check=True)
            result = subprocess.run([PROGRAM, "run", "--json", "--plan", plan, "--trace", trace, "--", *script, "6"],
                                    capture_output=True, text=True)
        self.assertEqual(losses(result.stderr), losses(plain.stdout))
        self.assertEqual(len(losses(plain.stdout)), 6)
        report = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0)
        self.assertEqual((report["iterations"], report["deviations"]), (5, 0))
        self.assertLessEqual(report["measured_peak_bytes"], report["predicted_peak_bytes"])
        self.assertGreater(report["measured_ns"], 0)
        self.assertGreater(report["counts"]["swap_in"], 0)


if __name__ == "__main__":
    unittest.main()
