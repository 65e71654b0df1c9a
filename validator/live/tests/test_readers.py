"""Code that reads memory without ops: functions of PyTorch that read lengths and places, which a plan may have dropped since no
op needs them, and views of other libraries."""

import contextlib
import unittest
from unittest import mock

from support import Follower, HostDevice, Planned, models, torch

from tidepool_live.readers import _BY_ADDRESS, _OF_LENGTHS, _SHARING, lend_to_readers
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Replaced(unittest.TestCase):
    """Functions of PyTorch are replaced within a test."""

    def setUp(self):
        scope = contextlib.ExitStack()
        self.addCleanup(scope.close)
        replaced = [(torch, "save"), *((torch.Tensor, name) for name in ("__deepcopy__", *_BY_ADDRESS, *_SHARING)), *_OF_LENGTHS]
        for holder, name in replaced:
            scope.enter_context(mock.patch.object(holder, name, getattr(holder, name)))


class Readers(Replaced):
    def setUp(self):
        super().setUp()
        self.follower = mock.Mock()
        lend_to_readers(self.follower)

    def kept(self, function, *arguments):
        self.follower.reset_mock()
        function(*arguments)
        return [call.args[0] for call in self.follower.pin.mock_calls]

    def check(self, expected, function, *arguments):
        kept = self.kept(function, *arguments)
        self.assertTrue(any(each is expected for each in kept), kept)
        self.assertFalse(any(each.is_floating_point() for each in kept))

    def test_ctc(self):
        steps, words, labels = torch.full((2,), 6), torch.full((2,), 1), torch.ones(2, 1, dtype=torch.long)
        for lengths in (steps, words):
            self.check(lengths, torch.nn.functional.ctc_loss, torch.randn(6, 2, 4).log_softmax(2), labels, steps, words)

    def test_places_of_a_split(self):
        places = torch.tensor([1, 2])
        self.check(places, torch.tensor_split, torch.ones(3), places)
        self.check(places, torch.ones(3).tensor_split, places)

    def test_packed_sequences(self):
        packed = pack_padded_sequence(torch.ones(3, 2, 4), torch.full((2,), 3))
        for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
            self.check(packed.batch_sizes, kind(4, 4), packed)
        self.check(packed.batch_sizes, pad_packed_sequence, packed)


class Exporting:
    """A tensor that another library takes over."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **options):
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


class Shared(Replaced):
    def make(self):
        """A step that keeps another library's views of its activations, and reads them when the plan has used their memory."""
        network, optimizer, _ = models.make("mlp")
        x = torch.ones(256, next(network.parameters()).shape[1])

        def step():
            optimizer.zero_grad()
            hidden, views = x, []
            for layer in network:
                hidden = layer(hidden)
                views.append(torch.from_dlpack(Exporting(hidden.detach())))
            loss = hidden.square().mean()
            loss.backward()
            optimizer.step()
            return [loss.item(), *(view.sum().item() for view in views)]

        return network, optimizer, step

    def test_a_view_of_another_library_has_the_content_as_long_as_it_lives(self):
        planned = Planned(self.make, "lru-swap", "0.6x")
        self.addCleanup(planned.close)
        _, _, alone = self.make()
        expected = [alone() for _ in range(5)]
        network, optimizer, step = self.make()
        values = [step()]
        with Follower(planned.program, network, optimizer, HostDevice()) as follower:
            lend_to_readers(follower)
            values += [step() for _ in range(4)]
        self.assertEqual(values, expected)
        self.assertEqual(follower.report.content()["iterations"], 4)


if __name__ == "__main__":
    unittest.main()
