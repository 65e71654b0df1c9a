"""Updates in backward, as `tidepool advise` prints them: the changed job computes the same bits as the job, and has the
advised peak, both recorded and while it runs."""

import copy
import os
import runpy
import tempfile
import unittest

try:
    import torch
    from torch.utils.checkpoint import checkpoint
except ImportError:
    if "TIDEPOOL_REQUIRE_TORCH" in os.environ:
        raise
    raise unittest.SkipTest("PyTorch is not installed; the tests of early updates need it") from None

from early_updates_table import row

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get("TIDEPOOL_PROGRAM", os.path.join(HERE, "../../build/tidepool"))


class Momentum(torch.optim.SGD):
    """An optimizer with an attribute of its own."""

    def __init__(self, parameters):
        super().__init__(parameters, lr=0.1, momentum=0.9)
        self.scale = 0.5

    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.mul_(self.scale)
        return super().step(closure)


def trained(change, saved=None, steps=4):
    """The losses of a job that loads a saved state after change(model, optimizer), and its state at the end."""
    torch.manual_seed(0)
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)), torch.randn(16, 8)
    optimizer = Momentum(model.parameters())
    change(model, optimizer)
    if saved:
        model.load_state_dict(saved[0])
        optimizer.load_state_dict(copy.deepcopy(saved[1]))  # it takes over tensors
    scheduler, losses = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) - x[:, :2]).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses, copy.deepcopy((model.state_dict(), optimizer.state_dict()))


class EarlyUpdates(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.found = row(PROGRAM, "mlp/sgd", folder)
            cls.apply = staticmethod(runpy.run_path(f"{folder}/change.py")["apply"])

    def test_an_mlp_under_sgd_has_the_advised_peak_and_the_same_losses(self):
        found = self.found
        self.assertTrue(found["same"])
        self.assertEqual(found["measured_plain"], found["peak"])
        self.assertLess(found["predicted"], 0.8 * found["peak"])
        for measured in (found["again"], found["measured"]):
            self.assertLess(abs(found["predicted"] / measured - 1), 0.001)

    def test_a_job_that_loads_the_state_of_its_optimizer_after_the_change_goes_on_as_without_it(self):
        nothing = lambda *_: None  # noqa: E731
        _, saved = trained(nothing)
        self.assertEqual(trained(self.apply, saved)[0], trained(nothing, saved)[0])

    def test_a_gradient_that_comes_in_parts_ends_the_job(self):
        layer = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        self.apply(layer, optimizer)
        for reentrant in (False, True):
            x = torch.ones(2, 4, requires_grad=True)
            for _ in range(2):
                x = checkpoint(layer, x, use_reentrant=reentrant)
            if reentrant:
                with self.assertRaisesRegex(RuntimeError, "^a parameter has a second gradient before optimizer.step"):
                    x.sum().backward()
            else:
                x.sum().backward()
                optimizer.step()


if __name__ == "__main__":
    unittest.main()
