"""Evaluations in jobs that follow a plan: they call the same layers as a step, and record no gradients."""

import unittest

from support import Follower, HostDevice, Planned, check_numbers, torch

from tidepool_live.device import bytes_of


class Reading:
    """A reading of a device's clock, in ms."""

    def __init__(self, at):
        self._at = at

    def query(self):
        return True

    def synchronize(self):
        pass

    def elapsed_time(self, other):
        return other._at - self._at


class ClockedDevice(HostDevice):
    """1 ms passes between two readings of its clock."""

    readings = 0

    def clock(self):
        self.readings += 1
        return Reading(self.readings)


class Evaluations(unittest.TestCase):
    def make(self):
        torch.manual_seed(0)
        layers = [layer for _ in range(4) for layer in (torch.nn.Linear(64, 64), torch.nn.ReLU())]
        network, x = torch.nn.Sequential(*layers), torch.randn(512, 64)
        average = [parameter.detach().clone() for parameter in network.parameters()]
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

        def step(evaluate=lambda network, x: None, late=False, record=False):
            """The average of the weights belongs to the step that follows an update, as it does in a recording."""
            with torch.set_grad_enabled(record):
                for mean, parameter in zip(average, network.parameters()):
                    mean.lerp_(parameter.detach(), 0.1)
            values = [] if late else [evaluate(network, x)]
            optimizer.zero_grad()
            hidden = network[:4](x)
            values += [evaluate(network, x)] if late else []
            loss = network[4:](hidden).square().mean()
            loss.backward()
            optimizer.step()
            return [*values, loss.item(), sum(mean.sum().item() for mean in average)]

        return network, optimizer, step

    def check(self, steps, device=None):
        """Trains with these calls of step(), and compares all values with those of a job without a plan. Returns the report."""
        report, self.predicted = check_numbers(
            self, self.make, "tide", "0.7x", lambda made: [take(made[2]) for take in steps], device)
        return report

    @staticmethod
    def plain(step):
        return step()

    def test_an_evaluation_of_any_length_after_the_steps_first_ops_is_no_deviation(self):
        def evaluate(network, x):
            with torch.no_grad():
                return sum(network(x).square().mean().item() for _ in range(20))

        report = self.check([self.plain] * 3 + [lambda step: step(evaluate), self.plain] * 3)
        self.assertEqual((report["iterations"], report["deviations"], report["left_out"]), (9, 0, {}))
        self.assertEqual(report["measured"], 4)  # without the first two, and without those with an evaluation
        self.assertLessEqual(report["peak_bytes"], self.predicted["peak_bytes"])
        self.assertEqual(report["between_op"], "aten::addmm")

    def test_an_evaluation_in_the_middle_of_the_forward_is_no_deviation(self):
        def evaluate(network, x):
            with torch.inference_mode():
                return sum(network(x).square().mean().item() for _ in range(20))

        report = self.check([self.plain] * 3 + [lambda step: step(evaluate, late=True), self.plain] * 3)
        self.assertEqual((report["iterations"], report["deviations"], report["left_out"]), (9, 0, {}))
        self.assertLessEqual(report["peak_bytes"], self.predicted["peak_bytes"])

    def test_any_thread_and_mode_can_write_the_bytes_of_an_inference_mode(self):
        device, storage = HostDevice(), torch.ones(1 << 20, dtype=torch.uint8).untyped_storage()
        with torch.inference_mode():
            host, there = bytes_of(device.host_bytes(1 << 20)), bytes_of(storage)
            device.copy("out", host, there).result()
        there.zero_()
        device.copy("in", there, host).result()
        self.assertEqual(there.sum().item(), 1 << 20)

    def test_a_step_after_other_ops_is_timed_by_the_devices_clock_too(self):
        def after_others(step):
            torch.ones(3).sum().item()
            return step()

        report = self.check([self.plain] * 3 + [after_others, self.plain] * 2, ClockedDevice())
        self.assertEqual([each["time_ns"] for each in report["each"]], [1_000_000] * 7)

    def test_a_tensor_beside_the_step_may_change_its_size(self):
        def evaluate(network, x):
            return torch.zeros(8).resize_(16).fill_(1).sum().item()

        report = self.check([self.plain] * 3 + [lambda step: step(evaluate)] * 2)
        self.assertNotIn("stopped", report)
        self.assertEqual((report["iterations"], report["deviations"]), (5, 0))

    def test_an_evaluation_that_records_gradients_loses_its_step_only(self):
        def evaluate(network, x):
            return sum(network(x).square().mean().item() for _ in range(20))

        report = self.check([self.plain] * 3 + [lambda step: step(evaluate), self.plain, self.plain] * 2)
        self.assertEqual((report["iterations"], report["deviations"]), (7, 2))

    def test_after_a_smaller_batch_an_evaluation_does_not_end_the_plan(self):
        """The step's first op is the same for every batch. The evaluation calls it twelve times."""

        class Scaled(torch.nn.Linear):
            def forward(self, x):
                return torch.nn.functional.linear(x, self.weight * 0.9, self.bias)

        def make():
            torch.manual_seed(0)
            network = torch.nn.Sequential(*[layer for _ in range(4) for layer in (Scaled(64, 64), torch.nn.ReLU())])
            optimizer, x = torch.optim.SGD(network.parameters(), lr=0.1), torch.randn(512, 64)

            def step(rows=512):
                loss = network(x[:rows]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                return loss.item()

            return network, optimizer, step

        def drive(made):
            network, _, step = made
            values = []
            for _ in range(3):
                values += [*(step() for _ in range(5)), step(100)]
                with torch.no_grad():
                    values += [network(torch.ones(512, 64)).sum().item() for _ in range(12)]
            return values

        report, _ = check_numbers(self, make, "dtr", "0.8x", drive)
        self.assertEqual((report["iterations"], report["gave_up"]), (15, False))
        self.assertEqual(report["measured"], 13)  # a deviation does not forget which tensors outlive a step

    def test_a_deviation_names_the_op_that_ran_in_place_of_the_expected_one(self):
        planned = Planned(self.make, "tide", "0.7x")
        self.addCleanup(planned.close)
        network, optimizer, step = self.make()
        halved = []

        def halve(*_):
            if halved:
                network[0].weight.grad.mul_(0.5)

        optimizer.register_step_pre_hook(halve)
        step()
        with Follower(planned.program, network, optimizer, HostDevice()) as follower:
            step()
            step()
            halved.append(True)
            step(lambda network, x: x[:8].sum().item())  # no deviation
        report = follower.report.content()
        self.assertEqual(report["deviations"], 1)
        self.assertEqual(report["lost"][0]["saw"], "aten::mul_")

    def test_steps_that_record_gradients_elsewhere_are_followed_again(self):
        """From the fourth step on, the average of the weights is computed where gradients are recorded. For two steps, these
        ops may be an evaluation."""
        report = self.check([self.plain] * 3 + [lambda step: step(record=True)] * 7)
        self.assertEqual((report["iterations"], report["deviations"], report["unlike_steps"]), (3 + 5, 2, [5, 6]))


if __name__ == "__main__":
    unittest.main()
