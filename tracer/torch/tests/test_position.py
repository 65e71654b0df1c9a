"""The position of ops over many iterations: which nodes of autograd have a module, and how many are remembered."""

import unittest

from support import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tidepool_torch.position import Position, names_of, prefixes_of


class Places(TorchDispatchMode):
    """Asks for the position of each op, and keeps the modules of ops of the backward pass."""

    def __init__(self, position):
        super().__init__()
        self.position, self.backward, self.phases = position, set(), []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        module, phase, _ = self.position.now()
        if phase == "backward":
            self.backward.add(module)
        self.phases.append((func.overloadpacket.__name__, phase))
        return func(*args, **(kwargs or {}))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.second(self.first(x).relu())


class Nodes(unittest.TestCase):
    def setUp(self):
        self.model, self.x = Net(), torch.randn(3, 2)
        self.position = Position([self.model])
        self.places = Places(self.position)

    def iterate(self, further=lambda: 0):
        self.position.start_iteration()
        self.places.backward.clear()
        (self.model(self.x).sum() + further()).backward(retain_graph=True)
        return set(self.places.backward)

    def remembered(self):
        return len(self.position._node_place)

    def test_a_long_recording_remembers_as_many_nodes_as_a_short_one(self):
        with self.position, self.places:
            sizes = [(self.iterate(), self.remembered())[1] for _ in range(50)]
        self.assertEqual(len(set(sizes[4:])), 1)
        # The nodes of the running iteration and of the two before it, and one entry for all forgotten nodes.
        self.assertEqual(sizes[-1], 3 * sizes[0] + 1)

    def test_ops_that_autograd_records_after_a_backward_pass_are_forward_ones(self):
        x = self.x.clone().requires_grad_()
        with self.position, self.places:
            for _ in range(2):
                self.position.start_iteration()
                self.places.phases.clear()
                gradient, = torch.autograd.grad(self.model(x).sum(), x, create_graph=True)
                torch.ones(3).neg()
                penalty = (gradient.cosh() - 1).square().sum()
                penalty.backward()
                with torch.no_grad():
                    self.x.tan()
        self.assertEqual([(name, phase) for name, phase in self.places.phases if name in ("neg", "cosh", "tan")],
                         [("neg", "optimizer"), ("cosh", "forward"), ("tan", "optimizer")])
        self.assertNotIn(("pow", "optimizer"), self.places.phases)

    def test_backward_has_modules_in_every_iteration(self):
        with self.position, self.places:
            for _ in range(5):
                self.assertGreaterEqual(self.iterate(), {"first", "second"})

    def test_a_graph_that_each_iteration_reads_keeps_its_modules(self):
        other = torch.nn.Linear(2, 2)
        self.position._names.add(other, "kept")
        with self.position, self.places:
            kept = other(self.x).sum()
            found = [self.iterate(lambda: kept) for _ in range(20)]
            self.assertTrue(all("kept" in modules for modules in found))
            self.assertLessEqual(self.remembered(), 40)

    def test_nodes_that_no_iteration_reads_for_long_are_in_no_module(self):
        other = torch.nn.Linear(2, 2)
        self.position._names.add(other, "old")
        with self.position, self.places:
            self.position.start_iteration()
            old = other(self.x).sum()
            for _ in range(4):
                self.iterate()
            found = self.iterate(lambda: old)
        self.assertNotIn("old", found)
        self.assertGreaterEqual(found, {"", "first", "second"})


class Generator(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.main = torch.nn.Linear(2, 2)


class Generator2(Generator):
    pass


class Prefixes(unittest.TestCase):
    def check(self, models, expected):
        """Checks the prefixes, and that no two modules inside models, parameters or buffers have the same path."""
        prefixes = prefixes_of(models)
        self.assertEqual(prefixes, expected)
        for named in ("named_modules", "named_parameters", "named_buffers"):
            paths = [path for model, prefix in zip(models, prefixes) for path, _ in getattr(model, named)(prefix=prefix) if path]
            self.assertEqual(sorted(paths), sorted(set(paths)))

    def test_further_models_have_the_names_of_their_classes_and_numbers(self):
        self.check([Net(), Generator(), Net(), Generator()], ["", "Generator", "Net2", "Generator2"])

    def test_a_module_in_the_first_model_that_is_named_as_a_class_keeps_its_path(self):
        first = Net()
        first.Generator = Generator()
        self.check([first, Generator()], ["", "Generator2"])

    def test_models_that_have_only_buffers_have_paths_of_their_own(self):
        statistics = [torch.nn.BatchNorm1d(2, affine=False) for _ in range(3)]
        self.check(statistics, ["", "BatchNorm1d2", "BatchNorm1d3"])

    def test_a_class_whose_name_ends_in_a_number_is_told_from_the_second_model_of_another_class(self):
        self.check([Net(), Generator(), Generator(), Generator2()], ["", "Generator", "Generator2", "Generator22"])
        self.check([Net(), Generator2(), Generator(), Generator()], ["", "Generator2", "Generator", "Generator3"])
        self.check([Generator(), Generator(), Generator2()], ["", "Generator2", "Generator22"])

    def test_a_first_model_without_parameters_has_the_name_of_its_class(self):
        self.assertEqual(names_of([Generator2(), Net()])[0], "Generator2")
        self.assertEqual(names_of([torch.nn.Identity(), Net()]), ["Identity", "Net"])

    def test_a_loss_has_a_prefix_only_if_its_modules_would_have_paths_of_others(self):
        loss, other = torch.nn.Module(), torch.nn.Module()
        loss.squares, other.first = torch.nn.MSELoss(), torch.nn.MSELoss()
        self.check([Net(), torch.nn.MSELoss(), torch.nn.MSELoss(), loss, other], ["", "", "", "", "Module"])


if __name__ == "__main__":
    unittest.main()
