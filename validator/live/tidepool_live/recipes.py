"""Recorded calls of ops, without their tensors, for running them again."""

import torch
from torch.utils._pytree import tree_leaves, tree_map


class _Kept:
    """A tensor argument that the trace does not name: a scalar, or a tensor of which only the shape matters. Of a
    normalisation's running statistics in training, only the shape matters: a second run must not change them again."""

    def __init__(self, make):
        self.make = make


class _Version:
    """A tensor argument: its offset, shape and strides in the storage of a version."""

    def __init__(self, tensor, use):
        self.use = use
        self.shape, self.strides, self.offset = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        self.dtype, self.device = tensor.dtype, tensor.device

    def over(self, storage):
        tensor = torch.empty(0, dtype=self.dtype, device=self.device)
        return tensor.set_(storage, self.offset, self.shape, self.strides)


class Recipe:
    """A call of an op.

    call      an OpCall of tidepool_torch
    use_of    function that gives the Use of a tensor argument, None if the trace does not name it
    expected  the op in the trace; its last uses are the storages that it created
    state     state of the generator before the call, None if the op draws no random numbers
    """

    def __init__(self, call, use_of, expected, state):
        self._func, self.state, self._expected = call.func, state, expected
        self._records = torch.is_grad_enabled()  # if not, layers of oneDNN's LSTM make no workspace for backward
        self.generator = call.value("generator")  # None: the default one

        def keep(leaf):
            if not isinstance(leaf, torch.Tensor):
                return leaf
            use = use_of(leaf)
            if use is not None:
                return _Version(leaf, use)
            if leaf.dim() == 0 and leaf.untyped_storage().nbytes() > 0:  # else only its shape matters
                value = leaf.clone()
                return _Kept(lambda: value)
            shape, strides, dtype, device = tuple(leaf.shape), leaf.stride(), leaf.dtype, leaf.device
            return _Kept(lambda: torch.empty_strided(shape, strides, dtype=dtype, device=device))

        self._args, self._kwargs = tree_map(keep, call.args), tree_map(keep, call.kwargs)
        named = {leaf.use for leaf in tree_leaves((self._args, self._kwargs)) if isinstance(leaf, _Version)}
        self.arguments = [use for use in expected.uses if use in named]
        self.made = [use for use in expected.uses if use not in named]

    def run(self, place):
        """Runs the op with the storages that place(use) gives. Returns the storages that it creates, in order."""
        given = []

        def fill(leaf):
            if isinstance(leaf, _Kept):
                return leaf.make()
            if isinstance(leaf, _Version):
                storage = place(leaf.use)
                given.append(storage._cdata)
                return leaf.over(storage)
            return leaf

        with torch.set_grad_enabled(self._records):
            result = self._func(*tree_map(fill, self._args), **tree_map(fill, self._kwargs))
        made = {}
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                if storage._cdata not in given and storage.nbytes() > 0:
                    made.setdefault(storage._cdata, storage)
        if len(made) != len(self.made):
            raise RuntimeError(f"tidepool_live: {self._func} made {len(made)} storages when it ran again; expected "
                               f"{len(self.made)}; please report the plan and the trace")
        return list(made.values())


class EmptyRecipe:
    """The trace's op for the creation of an empty storage: its content is arbitrary."""

    state = generator = None

    def __init__(self, storage, expected, make):
        self._size, self._make = storage.nbytes(), make
        self.arguments, self.made = [], list(expected.uses)

    def run(self, place):
        return [self._make(self._size)]
