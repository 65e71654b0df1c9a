"""Estimated op times: a roofline of a named device.

    time = max(floating-point operations / peak rate of the type, bytes read and written / memory bandwidth) + floor

Operations are counted for matrix products, convolutions, attention and recurrent layers (torch.utils.flop_counter and
the formulas below); every other op is bound by its bytes. These times are the best that the device could reach:
caches, launch gaps, and kernels that miss the peak are left out. Relative times of ops are more trustworthy than the sum.
"""

import functools
import logging
from dataclasses import dataclass

import torch

from .schema import SHAPE_ONLY, distinct_bytes

FLOOR_NS = 2_000  # the least time of a kernel on its stream; an assumption, the same for all devices


@dataclass(frozen=True)
class Device:
    """Peak rates of a device: dense (not sparse) floating-point operations per second by type, bytes per second.
    `float32` is the rate without TF32, which PyTorch does not use for matrix products unless asked."""

    name: str
    float64: float
    float32: float
    float16: float
    bfloat16: float
    bandwidth: float
    source: str

    def peak(self, dtype):
        """Operations per second for a type; types without an entry (complex, integers) count as float32."""
        return getattr(self, str(dtype).removeprefix("torch."), self.float32)


DEVICES = {
    device.name: device
    for device in [
        Device("titan-x", 0.343e12, 10.97e12, 0.171e12, 0.171e12, 480e9,
               "TITAN X (Pascal), 3584 cores at 1531 MHz boost, float64 at 1/32, float16 at 1/64; bfloat16 as float16"),
        Device("v100", 7.8e12, 15.7e12, 125e12, 15.7e12, 900e9,
               "NVIDIA V100 data sheet, SXM2; no bfloat16 units, counted as float32"),
        Device("a100-40gb", 9.7e12, 19.5e12, 312e12, 312e12, 1555e9, "NVIDIA A100 data sheet, SXM4 40 GB"),
        Device("a100", 9.7e12, 19.5e12, 312e12, 312e12, 2039e9, "NVIDIA A100 data sheet, SXM4 80 GB"),
        Device("h100", 34e12, 67e12, 989e12, 989e12, 3350e9, "NVIDIA H100 data sheet, SXM5, dense"),
        Device("h200", 34e12, 67e12, 989e12, 989e12, 4800e9, "NVIDIA H200 data sheet, SXM, dense"),
        Device("rtx-3090", 0.556e12, 35.6e12, 71e12, 71e12, 936e9,
               "NVIDIA GA102 white paper, tensor cores with 32-bit accumulation"),
        Device("rtx-4090", 1.29e12, 82.6e12, 165e12, 165e12, 1008e9,
               "NVIDIA Ada white paper, tensor cores with 32-bit accumulation"),
        Device("rtx-4080", 0.761e12, 48.7e12, 97.5e12, 97.5e12, 717e9,
               "NVIDIA Ada white paper, tensor cores with 32-bit accumulation"),
        Device("rtx-3060", 0.199e12, 12.7e12, 25.5e12, 25.5e12, 360e9,
               "NVIDIA GA102 white paper, its rates of the RTX 3090 by multiprocessors and clock"),
        Device("rtx-4060", 0.236e12, 15.1e12, 30.2e12, 30.2e12, 272e9,
               "NVIDIA Ada white paper, its rates of the RTX 4080 by multiprocessors and clock"),
        Device("b200", 37e12, 75e12, 2250e12, 2250e12, 7700e9, "NVIDIA HGX B200 data sheet, an eighth of it, dense"),
        Device("rtx-pro-6000", 1.95e12, 125e12, 503e12, 503e12, 1792e9,
               "NVIDIA RTX Blackwell PRO white paper, tensor cores with 32-bit accumulation"),
        Device("rtx-pro-5000", 1.02e12, 65e12, 258e12, 258e12, 1344e9,
               "NVIDIA RTX PRO 5000 Blackwell data sheet; 16 bits: an eighth of its sparse 4-bit rate"),
        Device("rtx-5090", 1.64e12, 104.8e12, 209e12, 209e12, 1792e9,
               "NVIDIA RTX Blackwell white paper, tensor cores with 32-bit accumulation"),
        Device("l40s", 1.43e12, 91.6e12, 362e12, 362e12, 864e9, "NVIDIA L40S data sheet, dense"),
        Device("l4", 0.47e12, 30.3e12, 121e12, 121e12, 300e9, "NVIDIA L4 data sheet, dense"),
        Device("t4", 0.253e12, 8.1e12, 65e12, 8.1e12, 320e9, "NVIDIA T4 data sheet; no bfloat16 units, as float32"),
    ]
}
_OTHER_NAMES = {"a100-80gb": "a100", "h100-80gb": "h100"}  # names in `tidepool record --device`


def find_device(name):
    """The device of that name. Raises ValueError with the known names."""
    found = DEVICES.get(_OTHER_NAMES.get(name, name))
    if found is None:
        raise ValueError(f"no device named {name!r}; known: {', '.join(sorted({*DEVICES, *_OTHER_NAMES}))}")
    return found


def estimate_ns(device, call):
    """Nanoseconds of one op (an OpCall) on a device."""
    seconds = max(flops(call) / device.peak(_dtype(call.outputs)), moved_bytes(call) / device.bandwidth)
    return FLOOR_NS + round(seconds * 1e9)


def flops(call):
    """Floating-point operations of an op; 0 for ops that are bound by their bytes."""
    packet = call.func._overloadpacket
    counted = _counted_operators()
    if packet in counted:
        return counted[packet](*call.args, **call.kwargs, out_val=call.result)
    if call.short_name == "lstm_layer":
        return _recurrent_flops(call)
    if call.short_name == "lstm_layer_backward":
        return 2 * _recurrent_flops(call)  # for the input and for the weights
    return 0


@functools.cache
def _counted_operators():
    log = logging.getLogger("torch.utils.flop_counter")
    disabled, log.disabled = log.disabled, True  # its import prints a warning if PyTorch has no Triton
    from torch.utils.flop_counter import flop_registry

    log.disabled = disabled
    return flop_registry


def _recurrent_flops(call):
    """Two matrix products each time step: gates by input and gates by hidden state. input: [time, batch, features]."""
    steps, batch = call.value("input").shape[:2]
    return 2 * steps * batch * sum(weight.numel() for weight in call.value("weights")[:2])


def moved_bytes(call):
    """Bytes read and written: each tensor once, but one that is read and written, or that a normalisation is given, twice.
    A table look-up reads only the rows that it returns."""
    if call.short_name in SHAPE_ONLY:
        return sum(distinct_bytes(tensor) for tensor in call.outputs)
    made = sum(distinct_bytes(tensor) for tensor in call.outputs if not _is_argument(call, tensor))
    total = made
    for argument, tensor in call.tensors():
        access = call.access(argument, tensor)
        size = distinct_bytes(tensor)
        if argument.name in _TABLES.get(call.short_name, ()):
            size = min(size, made)
        if access is not None:
            total += 2 * size if access == "read_write" or call.short_name in TWO_PASSES else size
    return total


# Normalisations and their backward: one pass over all elements for sums, then another one.
TWO_PASSES = frozenset("native_batch_norm cudnn_batch_norm miopen_batch_norm batch_norm_with_update native_layer_norm "
                       "native_group_norm native_batch_norm_backward cudnn_batch_norm_backward miopen_batch_norm_backward "
                       "batch_norm_backward native_layer_norm_backward native_group_norm_backward".split())

_TABLES = {"embedding": ("weight",), "index_select": ("self",), "gather": ("self",), "index": ("self",)}


def _is_argument(call, tensor):
    return any(given is tensor for _, given in call.tensors())


def _dtype(outputs):
    for tensor in outputs:
        if tensor.dtype.is_floating_point:
            return tensor.dtype
    return torch.float32
