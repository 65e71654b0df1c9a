"""Jobs whose numbers a plan could change: each runs with a plan and without one, and all values are the same."""

import unittest
from unittest import mock

from support import check_numbers, models, torch
from torch.utils.checkpoint import checkpoint

from tidepool_live.recipes import Recipe

functional = torch.nn.functional


def layers(layer=torch.nn.Linear):
    """Layers whose activations are not overwritten."""
    return torch.nn.Sequential(*[each for _ in range(4) for each in (layer(64, 64), torch.nn.ReLU())])


class Numbers(unittest.TestCase):
    @staticmethod
    def noisy(generator=None):
        """A step whose first op draws random numbers."""

        def make():
            torch.manual_seed(0)
            network, x = layers(), torch.randn(512, 64)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
            numbers = generator and torch.Generator().manual_seed(5)

            def step(update=True):
                optimizer.zero_grad()
                noise = torch.randn(512, 64, generator=numbers)
                loss = functional.mse_loss(network(x + noise), noise)
                if update:
                    loss.backward()
                    optimizer.step()
                return loss.item()

            return network, optimizer, step

        return make

    def test_random_numbers_are_drawn_again_as_before_after_a_step_without_update(self):
        report, _ = check_numbers(self, self.noisy(), "dtr", "0.6x",
                            lambda made: [made[2](update) for update in (True, True, True, False, True, True)])
        self.assertGreater(report["counts"]["run"], 0)

    def test_random_numbers_of_a_generator_of_the_job_are_drawn_again_as_before(self):
        report, _ = check_numbers(self, self.noisy(generator=True), "dtr", "0.6x", lambda made: [made[2]() for _ in range(5)])
        self.assertEqual((report["iterations"], report["deviations"]), (5, 0))

    def test_ops_outside_of_autocast_are_recomputed_outside_of_it(self):
        def make():
            torch.manual_seed(0)
            network = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(6))
            optimizer, x = torch.optim.SGD(network.parameters(), lr=0.1), torch.randn(512, 64)

            def step():
                optimizer.zero_grad()
                with torch.autocast("cpu", torch.bfloat16):
                    hidden = x
                    for number, layer in enumerate(network):
                        with torch.autocast("cpu", enabled=number % 2 == 1):
                            hidden = torch.relu(layer(hidden if number % 2 else hidden.float()))
                    loss = hidden.float().square().mean()
                    loss.backward()
                optimizer.step()
                return loss.item()

            return network, optimizer, step

        report, _ = check_numbers(self, make, "dtr", "0.7x", lambda made: [made[2]() for _ in range(5)])
        self.assertGreater(report["counts"]["run"], 0)

    def test_an_input_that_the_step_overwrites_can_be_read_by_another_op_just_before(self):
        def make():
            torch.manual_seed(0)
            network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
            optimizer, batch = torch.optim.SGD(network.parameters(), lr=0.1), torch.zeros(512, 64)
            data = [torch.randn(512, 64) for _ in range(4)]
            steps = iter(range(100))

            def step(look=False):
                number = next(steps)
                optimizer.zero_grad()
                batch.copy_(data[number % 4])
                first = network(batch[:8]).square().mean()
                first.backward()
                large = data[0].repeat(1, 3)  # for which the batch must go
                large.add_(1)
                seen = large.sum().item()
                del large
                if look:
                    seen += torch.empty_like(batch).copy_(batch).sum().item()
                batch.copy_(data[(number + 1) % 4])
                second = network(batch).square().mean()
                second.backward()
                optimizer.step()
                return first.item() + second.item() + seen

            return network, optimizer, step

        check_numbers(self, make, "lru-swap", "0.7x", lambda made: [made[2](number % 5 == 4) for number in range(15)])

    def test_a_job_that_catches_out_of_memory_and_tries_again_goes_on_as_planned(self):
        run, fails = Recipe.run, []

        def failing(recipe, place):
            if fails:
                raise torch.cuda.OutOfMemoryError("no room")
            return run(recipe, place)

        def drive(made):
            network, optimizer, step = made
            values = [step() for _ in range(3)]
            state = torch.get_rng_state()
            fails.append(True)
            try:
                values.append(step())
            except torch.cuda.OutOfMemoryError:  # with a plan
                fails.clear()
                torch.set_rng_state(state)
                optimizer.zero_grad()
                values.append(step())
            fails.clear()
            return values + [step(), step()]

        with mock.patch.object(Recipe, "run", failing):
            check_numbers(self, self.noisy(), "dtr", "0.6x", drive)

    def test_what_comes_from_a_constant_is_recomputed_and_the_constant_is_not(self):
        """aten::lift_fresh brings the constant to the device. It cannot run again."""

        def make():
            torch.manual_seed(0)
            network, x = layers(), torch.randn(512, 64)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

            def step():
                optimizer.zero_grad()
                weight = torch.tensor([[0.1 * column for column in range(64)]])
                loss = network(x * weight).square().mean()
                loss.backward()
                optimizer.step()
                return loss.item()

            return network, optimizer, step

        report, predicted = check_numbers(self, make, "dtr", "0.7x", lambda made: [made[2]() for _ in range(5)])
        self.assertEqual((report["iterations"], report["deviations"], report["left_out"]), (5, 0, {}))
        self.assertGreater(report["counts"]["run"], 0)
        self.assertEqual(report["peak_bytes"], predicted["peak_bytes"])

    def test_running_statistics_that_another_op_updates_are_kept(self):
        def make():
            torch.manual_seed(0)
            network = torch.nn.ModuleDict({"norm": torch.nn.BatchNorm1d(16384, affine=False), "layer": torch.nn.Linear(64, 8)})
            x, wide = torch.randn(512, 64), torch.randn(2, 1).expand(2, 16384)
            optimizer = torch.optim.SGD(network["layer"].parameters(), lr=0.1)

            def step():
                scale = x.repeat(1, 4).square().mean()  # for which the statistics must go
                with torch.no_grad():
                    small = network["norm"](wide).sum() * 1e-9
                loss = network["layer"](x).square().mean() * scale + small
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                return loss.item()

            return network, optimizer, step, wide

        def drive(made):
            network, _, step, wide = made
            norm, values = network["norm"], []
            for number in range(5):
                values.append(step())
                torch.empty(8)  # the plan's first actions come with this allocation
                with torch.no_grad():
                    normalised = functional.batch_norm(wide + number, norm.running_mean, norm.running_var, training=True)
                values += [normalised.double().sum().item(), step()]
                values += [norm.running_mean.double().sum().item(), norm.running_var.double().sum().item()]
            return values

        check_numbers(self, make, "tide", "0.95x", drive)

    def test_a_recomputed_layer_of_an_lstm_has_its_workspace_for_backward(self):
        def make():
            torch.manual_seed(0)
            network, x = torch.nn.LSTM(32, 32, 2), torch.randn(12, 8, 32)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

            def step():
                optimizer.zero_grad()
                loss = network(x)[0].square().mean()
                loss.backward()
                optimizer.step()
                return loss.item()

            return network, optimizer, step

        report, _ = check_numbers(self, make, "tide", "0.7x", lambda made: [made[2]() for _ in range(4)])
        self.assertGreater(report["counts"]["run"], 0)

    def test_a_version_recomputed_twice_leaves_with_the_last_tensor_of_the_job(self):
        """Attention's saved tensors are views of the storage of the first recomputation."""

        def make():
            torch.manual_seed(0)
            layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
            network = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
            optimizer, x = torch.optim.SGD(network.parameters(), lr=0.1), torch.randn(6, 20, 32)

            def step():
                optimizer.zero_grad()
                loss = network(x).square().mean()
                loss.backward()
                optimizer.step()
                return loss.item()

            return network, optimizer, step

        report, predicted = check_numbers(self, make, "dtr", "0.4x", lambda made: [made[2]() for _ in range(4)])
        self.assertEqual((report["iterations"], report["deviations"]), (4, 0))
        self.assertEqual(report["peak_bytes"], predicted["peak_bytes"])

    def test_hooks_on_saved_tensors_bring_nothing_back_before_it_is_needed(self):
        report, predicted = check_numbers(self, self.noisy(), "dtr", "0.6x", lambda made: [made[2]() for _ in range(6)])
        self.assertEqual(report["peak_bytes"], predicted["peak_bytes"])
        self.assertEqual(report["counts"].get("on demand", 0), 0)


class CustomFunctions(unittest.TestCase):
    @staticmethod
    def make():
        torch.manual_seed(0)
        blocks = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(6))
        optimizer, x = torch.optim.SGD(blocks.parameters(), lr=0.1), torch.randn(512, 64)

        def step():
            optimizer.zero_grad()
            hidden = x
            for number, block in enumerate(blocks):
                run = lambda value, block=block: value + models.Gelu.apply(models.Gelu.apply(block(value)))  # noqa: E731
                hidden = run(hidden) if number % 2 else checkpoint(run, hidden, use_reentrant=False)
            loss = hidden.square().mean()
            loss.backward()
            optimizer.step()
            return loss.item()

        return blocks, optimizer, step

    def test_tensors_on_the_way_to_a_saved_one_leave_again(self):
        report, predicted = check_numbers(self, self.make, "dtr", "0.6x", lambda made: [made[2]() for _ in range(5)])
        self.assertEqual((report["iterations"], report["deviations"]), (5, 0))
        self.assertGreater(report["counts"]["on demand"], 0)
        self.assertLessEqual(report["peak_bytes"], predicted["peak_bytes"])

    def test_a_copy_to_the_host_does_not_keep_what_the_job_frees(self):
        report, predicted = check_numbers(self, self.make, "pooch", "0.7x", lambda made: [made[2]() for _ in range(5)])
        self.assertGreater(report["counts"]["swap_out"], 0)
        self.assertLessEqual(report["peak_bytes"], predicted["peak_bytes"])


if __name__ == "__main__":
    unittest.main()
