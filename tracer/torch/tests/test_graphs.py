"""Graphs of compiled jobs, operator by operator. Nothing is compiled to machine code here."""

import unittest
from unittest import mock

from support import torch

from tidepool_torch import graphs


def trained(model, batch):
    """The loss and the gradients of one step."""
    loss = model(batch).square().mean()
    loss.backward()
    return [loss.detach(), *(parameter.grad for parameter in model.parameters())]


class GraphsTest(unittest.TestCase):
    def setUp(self):
        import torch._inductor.compile_fx as compiler

        for name in ("compile_fx", "compile_fx_inner", "min_cut_rematerialization_partition"):
            self.addCleanup(setattr, compiler, name, getattr(compiler, name))
        self.addCleanup(torch._dynamo.utils.counters.clear)
        self.addCleanup(torch._dynamo.reset)
        graphs._change(compiler)
        patch = mock.patch.object(graphs, "_count", 0)
        patch.start()
        self.addCleanup(patch.stop)

    def test_the_graphs_of_a_compiled_step_compute_the_step_and_tell_of_each_node(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 8))
        batch, told = torch.randn(4, 8), []
        plain = trained(model, batch)
        model.zero_grad(set_to_none=True)
        with mock.patch.object(graphs, "watcher", lambda node, _given, _result: told.append(graphs.name_of(node))):
            compiled = trained(torch.compile(model), batch)
        for one, other in zip(plain, compiled, strict=True):
            torch.testing.assert_close(one, other)
        self.assertEqual([name for name in told if "addmm" in name], ["graph0.addmm", "graph0.addmm_1"])  # nothing ran twice
        self.assertIn("graph0.erf", told)  # GELU has the operators of Inductor
        self.assertIsNone(graphs.running())

    def test_each_trained_graph_has_a_number_of_its_own(self):
        told = []
        with mock.patch.object(graphs, "watcher", lambda node, _given, _result: told.append(graphs.name_of(node))):
            for size in (3, 5):
                trained(torch.compile(torch.nn.Linear(size, size)), torch.ones(2, size))
        self.assertEqual([name for name in told if "addmm" in name], ["graph0.addmm", "graph1.addmm"])


if __name__ == "__main__":
    unittest.main()
