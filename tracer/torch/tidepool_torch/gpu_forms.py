"""Fake tensors, and GPU forms of ops that PyTorch splits differently on the CPU.

Fake tensors have sizes and no bytes. They stay on the CPU device: if PyTorch is built with CUDA, autograd on fake CUDA
tensors needs a driver. With these forms the ops, and the tensors that they keep for backward, are still those of a GPU:

* dropout is one kernel with a boolean mask (native_dropout), not a random mask of floats and a product;
* scaled dot product attention is one fused kernel that keeps its inputs, its output and a logarithm for each row:
  flash for 16-bit types without a mask, memory-efficient otherwise. The CPU has such a kernel only without dropout;
* an LSTM is one op for each layer and direction (recurrent.py).
"""

import copy
import itertools
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from .recurrent import lstm


@contextmanager
def fake_tensors():
    """Context in which new tensors have sizes and no bytes, and ops have their GPU forms. Build the model inside, or
    copy it in with fake_copy."""
    with FakeTensorMode(), GpuForms():
        yield


def fake_copy(model):
    """A copy of a real model with fake tensors; tied parameters stay tied. Call it inside fake_tensors(). Models
    that read values while they are built, as torch.nn.init.trunc_normal_ does, need it."""
    fakes = {}
    for tensor in itertools.chain(model.parameters(), model.buffers()):
        fake = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        fakes[id(tensor)] = torch.nn.Parameter(fake, tensor.requires_grad) if is_parameter else fake
    return copy.deepcopy(model, fakes)


class GpuForms(TorchFunctionMode):
    """Calls the GPU's forms of ops. Only for fake tensors: most of these forms have no kernel on the CPU."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        form = _FORMS.get(func, func)
        return form(*args, **(kwargs or {}))


def _dropout(input, p=0.5, training=True, inplace=False):
    if inplace or not training or not 0 < p < 1:
        return F.dropout(input, p, training, inplace)
    return torch.native_dropout(input, p, True)[0]


def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if query.dim() != 4:
        return F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                                              enable_gqa=enable_gqa)
    if enable_gqa:
        key, value = (x.repeat_interleave(query.size(1) // x.size(1), 1) for x in (key, value))
    if attn_mask is None and query.dtype in (torch.float16, torch.bfloat16):
        return torch.ops.aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, scale=scale)[0]
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(~attn_mask, float("-inf"))
        attn_mask = attn_mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))
    differentiated = torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value))
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, differentiated, dropout_p, is_causal, scale=scale)[0]


def _lstm(*args, **kwargs):
    input, state, weights, has_biases, *_ = args
    padded = isinstance(weights, (list, tuple)) and input.dim() == 3  # not torch.lstm(data, batch_sizes, ...)
    if kwargs or not padded or len(weights) % (4 if has_biases else 2) or state[0].shape[-1] != state[1].shape[-1]:
        return torch.lstm(*args, **kwargs)
    return lstm(*args)


_FORMS = {
    F.dropout: _dropout,
    torch.dropout: lambda input, p, train: _dropout(input, p, train),
    F.scaled_dot_product_attention: _attention,
    torch.lstm: _lstm,
}
