"""Weights in the pages of a file, which PyTorch's allocator did not give."""

import ctypes
import os
import tempfile
import unittest

try:
    import numpy
except ImportError:
    numpy = None

from support import Follower, HostDevice, Planned, models, torch

from tidepool_live import arrays

NATIVE = os.environ.get("TIDEPOOL_NATIVE") != "off"


class Mapped(unittest.TestCase):
    def follow(self, give):
        """Trains with a plan, and compares the losses with those without. give: gives the weights of a network other memory. Returns
        the report, the plan's limit, the network and what give() returned."""

        def make():
            network, _, _ = models.make("mlp")
            kept = give(network)
            optimizer, x = torch.optim.SGD(network.parameters(), lr=0.1), torch.ones(256, next(network.parameters()).shape[1])

            def step():
                optimizer.zero_grad()
                loss = network(x).square().mean()
                loss.backward()
                optimizer.step()
                return loss.item()

            step.kept = kept
            return network, optimizer, step

        planned = Planned(make, "lru-swap", "0.6x")
        self.addCleanup(planned.close)
        network, optimizer, step = make()
        losses = [step()]
        with Follower(planned.program, network, optimizer, HostDevice()) as follower:
            losses += [step() for _ in range(4)]
        _, _, alone = make()
        self.assertEqual(losses, [alone() for _ in range(5)])
        return follower.report.content(), planned.program.limit, network, step.kept

    @unittest.skipUnless(NATIVE, "a dispatch mode cannot give a storage other memory")
    def test_weights_in_the_pages_of_a_file_leave_and_come_back(self):
        def give(network):
            with tempfile.TemporaryDirectory() as folder:
                torch.save(network.state_dict(), f"{folder}/weights.pt")
                network.load_state_dict(torch.load(f"{folder}/weights.pt", mmap=True), assign=True)
            self.assertFalse(any(each.untyped_storage().resizable() for each in network.parameters()))

        report, limit, network, _ = self.follow(give)
        self.assertNotIn("stays", report["counts"])
        self.assertLessEqual(report["peak_bytes"], limit)

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_memory_that_numpy_knows_stays(self):
        def give(network):
            arrays = []
            with tempfile.TemporaryDirectory() as folder:
                for each in network.parameters():
                    each.detach().numpy().tofile(f"{folder}/weight")
                    arrays.append(numpy.memmap(f"{folder}/weight", "float32", mode="c", shape=tuple(each.shape)))
                    os.remove(f"{folder}/weight")
                    each.data = torch.from_numpy(arrays[-1])
            return arrays

        report, _, network, arrays = self.follow(give)
        self.assertGreater(report["counts"]["stays"], 0)
        for each, array in zip(network.parameters(), arrays):
            self.assertEqual(each.data_ptr(), array.ctypes.data)

    @unittest.skipUnless(NATIVE, "a dispatch mode cannot give a storage other memory")
    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_arrays_that_only_a_tensor_has_leave_and_come_back(self):
        makers = {name: getattr(torch, name) for name in arrays._MAKERS}
        self.addCleanup(lambda: [setattr(torch, name, make) for name, make in makers.items()])
        arrays.watch_arrays()

        def give(network):
            for number, each in enumerate(network.parameters()):
                array = each.detach().numpy().copy()
                each.data = torch.from_numpy(array) if number % 2 else torch.as_tensor(array.reshape(-1)).view(each.shape)

        report, limit, _, _ = self.follow(give)
        self.assertNotIn("stays", report["counts"])
        self.assertLessEqual(report["peak_bytes"], limit)

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_an_array_is_a_tensors_own_if_nothing_else_has_its_memory(self):
        makers = {name: getattr(torch, name) for name in arrays._MAKERS}
        self.addCleanup(lambda: [setattr(torch, name, make) for name, make in makers.items()])
        arrays.watch_arrays()

        def only(make, keep=None):
            array = make()
            tensor, kept = torch.from_numpy(array), keep and keep(array)
            del array
            return arrays.is_only_in_storage(tensor.untyped_storage().data_ptr()), kept

        def borrowed():
            class Lent:  # as an extension that keeps the memory
                memory = (ctypes.c_float * 8)()
                __array_interface__ = {"shape": (8,), "typestr": "<f4", "version": 3, "data": (ctypes.addressof(memory), False)}

            return numpy.asarray(Lent())

        self.assertTrue(only(lambda: numpy.ones(8))[0])
        self.assertTrue(only(lambda: numpy.ones((2, 4)).reshape(8))[0])
        self.assertFalse(only(lambda: numpy.ones(8), keep=lambda array: array)[0])
        self.assertFalse(only(lambda: numpy.ones(8), keep=lambda array: array[2:])[0])
        self.assertFalse(only(lambda: numpy.frombuffer(bytearray(64)))[0])
        self.assertFalse(only(borrowed)[0])


if __name__ == "__main__":
    unittest.main()
