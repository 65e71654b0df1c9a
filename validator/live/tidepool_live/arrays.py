"""NumPy arrays that tensors share the memory of: whether anything but the tensor's storage can see it."""

import functools
import sys
import weakref

import torch

_MAKERS = "from_numpy", "as_tensor", "asarray"
_HELD = 3  # references to an array: that of its storage or of the array that is a view of it, and two of is_only_in_storage()
_arrays = {}  # address of the memory -> weak reference to the array


def watch_arrays():
    """From now on, arrays are known that become tensors."""
    for name in _MAKERS:
        _watch(name)


def _watch(name):
    make = getattr(torch, name)

    @functools.wraps(make)
    def made(data, *args, **kwargs):
        tensor = make(data, *args, **kwargs)
        if "numpy" in sys.modules and isinstance(data, sys.modules["numpy"].ndarray) and type(tensor) is torch.Tensor:
            address = tensor.untyped_storage().data_ptr()
            if data.size and address == data.ctypes.data:
                _arrays[address] = weakref.ref(data, lambda gone: _arrays.get(address) is gone and _arrays.pop(address))
        return tensor

    setattr(torch, name, made)


def is_only_in_storage(address):
    """Whether the memory at an address is that of an array which nothing but a storage refers to."""
    known = _arrays.get(address)
    array = known() if known is not None else None
    if array is None:
        return False
    kind = type(array)
    while type(array) is kind and sys.getrefcount(array) <= _HELD:
        if array.base is None:
            return array.flags.owndata  # an extension may have given it memory of its own
        array = array.base
    return False
