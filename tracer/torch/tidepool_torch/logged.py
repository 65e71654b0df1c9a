"""Values in the log of the native core: those of the arguments and results of calls."""

import functools
import operator

import torch

from .schema import OpCall

# As in ../../native/log.hpp
_NONE, _INT, _BOOL, _DOUBLE, _LIST, _TENSOR = range(6)
_LAYOUTS = (torch.strided, torch.sparse_coo, torch.sparse_csr, torch._mkldnn, torch.sparse_csc, torch.sparse_bsr,
            torch.sparse_bsc, torch.jagged)


class LoggedTensor:
    """A tensor as it was at an op; also its storage."""

    __slots__ = ("_cdata", "bytes", "address", "shape", "strides", "layout", "device", "dtype", "itemsize")

    def untyped_storage(self):
        if self._cdata == 0:
            raise NotImplementedError
        return self

    def nbytes(self):
        return self.bytes

    def data_ptr(self):
        return self.address

    def dim(self):
        return len(self.shape)

    def stride(self):
        return self.strides

    def element_size(self):
        return self.itemsize

    def numel(self):
        return functools.reduce(operator.mul, self.shape, 1)


class LoggedCall(OpCall):
    """A call of the log. values: those of its arguments, in the order of the schema."""

    __slots__ = ("values",)

    def __init__(self, func, signature, values):
        super().__init__(func, None, None, signature)
        self.values = values

    def end(self, results):
        """The call has returned these values. A tensor that it was given has its new size now."""
        given = {}
        for _, tensor in self.tensors():
            given.setdefault(tensor._cdata, []).append(tensor)
        outputs = []
        for result in _tensors_of(results):
            same = given.get(result._cdata, ()) if result._cdata else ()
            for tensor in same:
                tensor.bytes, tensor.address = result.bytes, result.address
            alike = [tensor for tensor in same if tensor.shape == result.shape and tensor.strides == result.strides]
            outputs.append(alike[0] if alike else result)
        self.result, self._outputs = results, outputs

    def tensors(self):
        if self._tensors is None:
            self._tensors = [(argument, tensor) for argument in self.signature.tensors
                             for tensor in _tensors_of([self.values[argument.position]])]
        return self._tensors

    def priced(self):
        """Sets the values from which the count of operations is computed: of tensors, their shapes."""
        arguments = list(zip(self.signature.arguments, map(_shapes, self.values)))
        self.args = [value for argument, value in arguments if not argument.kwarg_only]
        self.kwargs = {argument.name: value for argument, value in arguments if argument.kwarg_only}
        self.result = _shapes(self.result[0] if len(self.result) == 1 else self.result)
        return self

    def _at(self, position):
        return self.values[position]


def _tensors_of(values):
    found = []
    for value in values:
        if type(value) is LoggedTensor:
            found.append(value)
        elif type(value) is list:
            found += _tensors_of(value)
    return found


def _shapes(value):
    if type(value) is LoggedTensor:
        return torch.Size(value.shape)
    return [_shapes(each) for each in value] if type(value) is list else value


class LogReader:
    """Values of the log's words."""

    def __init__(self, core):
        self._core = core
        self._devices = {}

    def values(self, words, at, end):
        found = []
        while at < end:
            value, at = self._value(words, at)
            found.append(value)
        return found

    def _value(self, words, at):
        kind = words[at]
        if kind == _TENSOR:
            return self._tensor(words, at + 1)
        if kind == _NONE:
            return None, at + 1
        if kind == _INT:
            return words[at + 1], at + 2
        if kind == _BOOL:
            return words[at + 1] != 0, at + 2
        if kind == _DOUBLE:
            return _double(words[at + 1]), at + 2
        length, at, found = words[at + 1], at + 2, []
        for _ in range(length):
            value, at = self._value(words, at)
            found.append(value)
        return found, at

    def _tensor(self, words, at):
        tensor = LoggedTensor()
        tensor._cdata, tensor.bytes, tensor.address, description = words[at:at + 4]
        place = description & 0xffff
        device = self._devices.get(place)
        if device is None:
            device = self._devices[place] = self._core.device(place & 0xff, (place >> 8) - 1)
        tensor.device = device
        tensor.dtype = self._core.element_types.get(description >> 16 & 0xff, torch.uint8)
        tensor.itemsize = description >> 24 & 0xff
        tensor.layout = _LAYOUTS[min(description >> 40, len(_LAYOUTS) - 1)]
        dimensions, at = description >> 32 & 0xff, at + 4
        tensor.shape = tuple(words[at:at + dimensions])
        tensor.strides = tuple(words[at + dimensions:at + 2 * dimensions])
        return tensor, at + 2 * dimensions


def _double(bits):
    return memoryview(bits.to_bytes(8, "little", signed=True)).cast("d")[0]
