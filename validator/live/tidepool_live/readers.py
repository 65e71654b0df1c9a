"""Code that reads the memory of tensors without ops: there, their content must be in it."""

import functools

import torch

_BY_ADDRESS = "data_ptr", "tolist"  # of tensors: the job, or Triton, reads memory at an address
_SHARING = "numpy", "__dlpack__"  # of tensors: the job gets another view of their memory
# Functions that PyTorch makes of other ops. They read lengths and places themselves, which are on the CPU for all devices.
_OF_LENGTHS = [(torch, "ctc_loss"), (torch, "tensor_split"), (torch.Tensor, "tensor_split"),
               *((torch._VF, name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu", "_pad_packed_sequence"))]


def lend_to_readers(follower):
    """Replaces functions of PyTorch by ones for which the follower brings content back."""
    save, deepcopy = torch.save, torch.Tensor.__deepcopy__

    @functools.wraps(save)
    def save_lent(*args, **kwargs):
        with follower.lent():
            return save(*args, **kwargs)

    torch.save = save_lent  # torch.save reads storages by address, without ops

    @functools.wraps(deepcopy)
    def deepcopy_lent(tensor, memo):
        with follower.lent(tensor):
            return deepcopy(tensor, memo)

    torch.Tensor.__deepcopy__ = deepcopy_lent  # copies a storage by its size, without the tensor's op
    for name in _BY_ADDRESS:
        _replace(torch.Tensor, name, lambda tensor, *_, **__: follower.keep(tensor))
    for name in _SHARING:
        _replace(torch.Tensor, name, lambda tensor, *_, **__: follower.pin(tensor))
    for holder, name in _OF_LENGTHS:
        _replace(holder, name, lambda *args, **kwargs: _pin_lengths(follower, (*args, *kwargs.values())))


def _replace(holder, name, before):
    function = getattr(holder, name)

    @functools.wraps(function)
    def lent(*args, **kwargs):
        before(*args, **kwargs)
        return function(*args, **kwargs)

    setattr(holder, name, lent)


def _pin_lengths(follower, values):
    for value in values:
        if isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.dtype in (torch.int64, torch.int32):
            follower.pin(value)
