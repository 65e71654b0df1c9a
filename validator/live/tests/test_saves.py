"""Checkpoints of jobs that follow a plan."""

import contextlib
import copy
import ctypes
import io
import types
import unittest
from unittest import mock

from support import Planned, torch

from tidepool_live.session import Session


class Saves(unittest.TestCase):
    """Checkpoints are saved while parameters of the plan are on the host."""

    def make(self):
        torch.manual_seed(0)
        x = torch.randn(512, 64)
        network = torch.nn.ModuleList([torch.nn.Linear(64, 8), *(torch.nn.Linear(64, 512) for _ in range(4))])
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

        def step(between=lambda: None):
            scale = (x[:1] * 2).mean()
            between()
            large = x.repeat(1, 8)  # 1 MiB, for which layers of 128 KiB must go
            scale = scale + large.square().mean()
            del large
            loss = network[0](x).square().mean() + sum(layer(x[:8]).square().mean() for layer in network[1:]) * scale
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.item()

        return network, optimizer, step

    @staticmethod
    def file(network):
        file = io.BytesIO()
        torch.save(network.state_dict(), file)
        return file.getvalue()

    def check(self, save, stopped=None, snapshot=None):
        """@param stopped  why the plan is given up; the job has the same values and checkpoints all the same"""
        planned = Planned(self.make, "tide", "0.9x")
        self.addCleanup(planned.close)
        self.assertTrue(planned.program.parked)

        def run(plan):
            network, optimizer, step = self.make()
            values, saved = [step()], []

            def checkpoint():
                saved.append((snapshot or self.file)(network))

            report = None
            with mock.patch.object(torch, "save", save), contextlib.ExitStack() as scope:
                for name in ("__deepcopy__", "data_ptr", "numpy", "tolist", "__dlpack__"):
                    scope.enter_context(mock.patch.object(torch.Tensor, name, getattr(torch.Tensor, name)))
                if plan is not None:
                    session = Session(plan)
                    session._discovery.stop()
                    with mock.patch("tidepool_live.session.outermost_modules", return_value=[network]):
                        session._follow([optimizer])
                    scope.enter_context(contextlib.closing(types.SimpleNamespace(close=lambda: (
                        session._saved.__exit__(None, None, None), session._follower.__exit__(None, None, None)))))
                for _ in range(3):
                    values += [step(), step(checkpoint)]
                    checkpoint()
                values.append(step())
                report = session.report() if plan is not None else None
            return values, saved, report

        values, saved, report = run(planned.program)
        self.assertEqual((values, saved), run(None)[:2])
        if stopped is not None:
            self.assertEqual(report["stopped"], stopped)
            return
        self.assertEqual((report["iterations"], report["deviations"], report["left_out"]), (7, 0, {}))
        self.assertLessEqual(report["peak_bytes"], planned.program.predicted["peak_bytes"])

    def test_content_that_a_checkpoint_within_a_step_brings_back_leaves_again(self):
        self.check(torch.save)

    def test_a_checkpoint_that_copies_storages_as_on_a_gpu_has_all_content(self):
        def save(state, file):
            for tensor in state.values():
                storage = tensor.untyped_storage()
                copy = torch.UntypedStorage(storage.nbytes()).copy_(storage)
                file.write(ctypes.string_at(copy.data_ptr(), copy.nbytes()))

        self.check(save)

    def test_a_deep_copy_of_the_state_has_all_content(self):
        self.check(torch.save, snapshot=lambda network: [
            hash(tensor.numpy().tobytes()) for tensor in copy.deepcopy(network.state_dict()).values()])

    def test_code_that_reads_tensors_at_their_addresses_finds_their_content(self):
        self.check(torch.save, snapshot=lambda network: [
            ctypes.string_at(tensor.data_ptr(), tensor.nbytes) for tensor in network.parameters()])

    def test_a_tensor_without_a_storage_can_be_copied(self):
        sparse = torch.eye(3).to_sparse()
        self.check(torch.save, snapshot=lambda network: copy.deepcopy(sparse).shape,
                   stopped="a tensor of layout torch.sparse_coo has no single storage; record strided tensors")

    def test_a_checkpoint_is_complete_if_its_content_cannot_be_lent(self):
        with mock.patch("tidepool_live.actions.Actions.lend", side_effect=ValueError("no room")):
            self.check(torch.save, stopped="ValueError: no room")


if __name__ == "__main__":
    unittest.main()
