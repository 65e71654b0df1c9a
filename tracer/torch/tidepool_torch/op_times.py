"""Estimated op times: which kernels an op launches on a named device, and how long they take (kernel_times.py).

Products of matrices, convolutions, attention and recurrent layers are computed; every other op moves bytes.
"""

import functools
import logging
from math import ceil, inf, prod

import torch

from .devices import Device
from .kernel_times import LAUNCH, attention_seconds, moving_seconds, product_seconds
from .schema import SHAPE_ONLY, distinct_bytes

_product = functools.lru_cache(maxsize=None)(product_seconds)


def estimate_ns(device: Device, call):
    """Nanoseconds of one op (an OpCall) on a device."""
    func = call.func
    kind = _kinds.get(func)
    if kind is None:
        name, product = call.short_name, call.short_name in _PRODUCTS
        by_values = name in _BY_VALUES or (not product and func._overloadpacket in _counted_operators())
        kind = _kinds[func] = by_values, product, name in _FILLED, any(each.written for each in call.signature.tensors)
    by_values, product, filled, writes = kind
    if by_values:
        return _estimate_ns(device, call)
    key = [device, func, filled and torch.are_deterministic_algorithms_enabled(),
           product and _on_tensor_cores(device, call.outputs[0].dtype)]
    for _, tensor in call.tensors():
        key += tensor.dtype, tensor.shape, tensor.stride()
        if writes:  # all of the storage, or a part
            key.append(tensor.untyped_storage().nbytes())
    for tensor in call.outputs:
        key += tensor.dtype, tensor.shape, tensor.stride()
    key = tuple(key)
    found = _known.get(key)
    if found is None:
        found = _known[key] = _estimate_ns(device, call)
    return found


_kinds = {}  # op -> whether its time depends on values, whether it is a product, fills, and writes what it is given
_known = {}  # times of ops that depend on the layouts of their tensors alone; a step has few different ones


def _estimate_ns(device, call):
    form = _FORMS.get(call.short_name)
    empty = any(0 in tensor.shape and tensor.dtype.is_floating_point for _, tensor in call.tensors())
    seconds = None if form is None or empty else form(device, call)
    if seconds is None:
        seconds = _counted(device, call)
    if call.short_name in _FILLED and torch.are_deterministic_algorithms_enabled():
        seconds += _filling(device, call)
    return round((LAUNCH + seconds) * 1e9)


def _filling(device, call):
    """Deterministic jobs fill memory that is allocated without content."""
    if not torch.utils.deterministic.fill_uninitialized_memory:
        return 0.0
    return LAUNCH + moving_seconds(device, sum(distinct_bytes(tensor) for tensor in call.outputs))


def _products(first, second):
    """The form of an op that multiplies two of its arguments: matrices, or batches of matrices."""

    def seconds(device, call):
        a, b = call.value(first), call.value(second)
        if len(a.shape) < 2 or len(b.shape) < 2:
            return None
        batch = a.shape[0] if len(a.shape) == 3 else 1
        return _multiply(device, a.dtype, batch, a.shape[-2], b.shape[-1], a.shape[-1],
                         a.stride()[-1] != 1 and b.stride()[-1] == 1)

    return seconds


def _multiply(device, dtype, batch, m, n, k, outer=False, convolution=False, slower=1.0):
    """A product by cuBLAS or, of a `convolution` or a recurrent layer, by cuDNN: the two have settings of their own."""
    tensor_cores = _on_tensor_cores(device, dtype, convolution)
    rate = device.tensorfloat32 if tensor_cores and dtype == torch.float32 else device.peak(dtype)
    return _product(device, rate / slower, dtype.itemsize, batch, m, n, k, tensor_cores, outer)


def _on_tensor_cores(device, dtype, convolution=False):
    if dtype == torch.float32:
        return device.tensorfloat32 > device.float32 and _rounds_to_tf32(convolution)
    return dtype in (torch.float16, torch.bfloat16) and device.peak(dtype) > 1.5 * device.float32


def _rounds_to_tf32(convolution):
    backend = torch.backends.cudnn if convolution else torch.backends.cuda.matmul
    try:
        return backend.allow_tf32
    except RuntimeError:  # the job uses the newer settings
        return (torch.backends.cudnn.conv if convolution else backend).fp32_precision == "tf32"


def _convolution(device, call):
    """One product: each value of the result, of each group of channels."""
    image, weight, result = call.value("input"), call.value("weight"), call.outputs[0]
    if call.value("transposed", False):
        image, result = result, image
    groups = call.value("groups", 1)
    m, n, k = result.shape[0] * prod(result.shape[2:]), weight.shape[0] // groups, prod(weight.shape[1:])
    if n == 1:
        return _DEPTHWISE * _moving(device, call)
    seconds = _convolve(device, image, groups, m, n, k)
    if _may_be_winograd(device, call, image):
        seconds = min(seconds, _winograd(device, result.shape, weight.shape[1], weight.shape[0]))
    return seconds + _reordering(device, call, image, image, result)


def _may_be_winograd(device, call, image):
    """Whether cuDNN may compute float32 filters of 3 x 3 in fewer products."""
    return (image.dtype == torch.float32 and len(image.shape) == 4
            and call.value("groups", 1) == 1 and list(call.value("weight").shape[2:]) == [3, 3]
            and max(*call.value("stride"), *call.value("dilation")) == 1
            and not _on_tensor_cores(device, torch.float32, convolution=True))


def _winograd(device, shape, channels, filters):
    """Squares of 2 or 4 results each way are products of transformed squares that are two larger each way."""
    images, _, height, width = shape
    least = inf
    for side in (2, 4):
        points, squares = (side + 2) ** 2, images * ceil(height / side) * ceil(width / side)
        products = _product(device, device.float32, 4, points, squares, filters, channels)
        moved = [4 * (points * squares + images * height * width) * count for count in (channels, filters)]
        moved.append(4 * (points + 9) * channels * filters)
        least = min(least, _WINOGRAD * products + sum(LAUNCH + moving_seconds(device, each) for each in moved))
    return least


def _convolve(device, image, groups, m, n, k, of_weight=False):
    tensor_cores = _on_tensor_cores(device, image.dtype, convolution=True)
    slower = CONVOLUTION[tensor_cores] * (_WEIGHT_GRADIENT if of_weight and tensor_cores else 1.0)
    return _multiply(device, image.dtype, groups, m, n, k, convolution=True, slower=slower)


def _reordering(device, call, image, *tensors):
    """Convolutions on tensor cores take channels last and copy other tensors there and back; those that are products of
    the channels alone do not, if the values of a channel are aligned."""
    weight, strides = call.value("weight"), call.value("stride")
    if image.stride()[1] == 1 or not _on_tensor_cores(device, image.dtype, convolution=True):
        return 0.0
    if prod(weight.shape[2:]) == 1 and max(strides, default=1) == 1 and prod(image.shape[2:]) % _ALIGNED == 0:
        return 0.0
    return sum(LAUNCH + moving_seconds(device, 2 * distinct_bytes(tensor)) for tensor in tensors)


def _convolution_backward(device, call):
    """One product for the input's gradient, which has fewer steps if the filter has a stride, and one for the weight's."""
    gradient, image, weight = call.value("grad_output"), call.value("input"), call.value("weight")
    if call.value("transposed", False):
        gradient, image = image, gradient
    groups = call.value("groups", 1)
    of_input, of_weight, *_ = call.value("output_mask", (True, True, False))
    outputs, inputs = gradient.shape[0] * prod(gradient.shape[2:]), image.shape[0] * prod(image.shape[2:])
    filters, steps = weight.shape[0] // groups, prod(weight.shape[1:])
    if filters == 1:
        return _DEPTHWISE * _moving(device, call)
    seconds = 0.0
    if of_input:
        channels = weight.shape[1]
        products = _convolve(device, image, groups, inputs, channels, max(1, filters * steps // channels * outputs // inputs))
        if _may_be_winograd(device, call, image):
            products = min(products, _winograd(device, image.shape, weight.shape[0], channels))
        seconds += products
    if of_weight:
        products = _convolve(device, image, groups, filters, steps, outputs, of_weight=True)
        if _may_be_winograd(device, call, image):
            products = min(products, _winograd(device, gradient.shape, weight.shape[1], filters))
        seconds += LAUNCH + products
    return seconds + _reordering(device, call, image, gradient, *[image] * (of_input + of_weight))


def _attention(device, call):
    return _attention_products(device, call, 2)


def _attention_backward(device, call):
    return _attention_products(device, call, 5)


def _attention_products(device, call, products):
    """So many products of queries by keys, of which a causal mask leaves out a half."""
    query, key = call.value("query"), call.value("key")
    if query is None or len(query.shape) != 4:
        return None
    batch, heads, length, width = query.shape
    half = 0.5 if call.value("is_causal", False) else 1.0
    tensor_cores = query.dtype != torch.float32 and _on_tensor_cores(device, query.dtype)
    operations = products * half * 2 * batch * heads * length * key.shape[-2] * width
    return max(attention_seconds(device, device.peak(query.dtype), operations, key.shape[-2], tensor_cores), _moving(device, call))


def _recurrent(products):
    """Gates by input for all time steps at once, gates by hidden state step by step. input: [time, batch, features]."""

    def seconds(device, call):
        given, weights = call.value("input"), call.value("weights")
        steps, batch, features = given.shape
        gates, hidden = weights[1].shape
        at_once = _multiply(device, given.dtype, 1, steps * batch, gates, features)
        each = LAUNCH + _multiply(device, given.dtype, 1, batch, gates, hidden)
        return products * (at_once + steps * each)

    return seconds


def _cudnn_recurrent(products):
    """All layers and directions of an LSTM or another recurrent network."""

    def seconds(device, call):
        given, weights = call.value("input"), call.value("weight")
        if len(given.shape) != 3:
            return None  # packed: how many steps each sequence has is not known
        steps, batch = given.shape[:2] if not call.value("batch_first", False) else given.shape[1::-1]
        total = 0.0
        for first in range(0, len(weights), call.value("weight_stride0")):
            (gates, features), hidden = weights[first].shape, weights[first + 1].shape[1]
            at_once = _multiply(device, given.dtype, 1, steps * batch, gates, features, convolution=True)
            each = _multiply(device, given.dtype, 1, batch, gates, hidden, convolution=True)
            total += at_once + steps * (LAUNCH + each)
        return products * total

    return seconds


def _rows(reads, shortest, at_once, slower=1.0):
    """The form of an op that reads a row `reads` times, if registers cannot hold it: from the `shortest` on. Rows come from
    memory once, if the cache holds those that all multiprocessors work at, each at so many `at_once`."""

    def seconds(device, call):
        result = call.outputs[0]
        row = result.shape[-1] if result.shape else 1
        if row < shortest:
            return slower * _moving(device, call)
        missed = min(1.0, at_once * device.processors * row * result.element_size() / device.cache)
        return slower * _moving(device, call, reads=1 + (reads - 1) * missed)

    return seconds


def _passes(reads, slower=1.0):
    """The form of an op that reads all `reads` times, and is `slower` than the memory."""
    return lambda device, call: slower * _moving(device, call, reads)


def _later(launches, form):
    """A form whose kernels wait: each row for its sum, or one kernel for the other."""
    return lambda device, call: launches * LAUNCH + form(device, call)


def _batch_normalisation(device, call):
    """One pass for sums, then another one; a multiprocessor has a channel, which its own rate may limit."""
    channels = call.value("input").shape[1]
    of_processor = min(device.bandwidth / device.processors, _CHANNEL_RATES[call.short_name.endswith("backward")])
    return max(BATCH_NORMALISATION * _moving(device, call, reads=2), moved_bytes(call, 2) / (channels * of_processor))


def _sum(device, call):
    """Two kernels: the second adds what the multiprocessors have."""
    return 2 * LAUNCH + _SUM * moved_bytes(call) / device.bandwidth


def _look_up_backward(device, call):
    """Equal indices are sorted and their rows summed."""
    return _moving(device, call) + _SUMMED_ROW * prod(call.value("indices").shape)


def _moving(device, call, reads=1):
    return moving_seconds(device, moved_bytes(call, reads))


def _elements(device, call):
    """An op on elements. Where a tensor is repeated, or read in another order than written, a thread takes one element."""
    seconds = _moving(device, call)
    if call.short_name.startswith("_foreach_"):
        return _FOREACH * seconds
    result = call.outputs[0] if call.outputs else None
    if result is None or len(result.shape) < 2 or call.short_name in _TABLES:
        return seconds
    count, order = prod(result.shape), None
    slower = 0.0
    for _, tensor in call.tensors():
        shape, strides = tensor.shape, tensor.stride()
        if prod(shape) != count or 0 in strides:
            slower = max(slower, 1.0 if _repeats(shape, result.shape) else 0.0)
        elif len(shape) > 1:
            order = order or _order(result.shape, result.stride())
            slower = max(slower, _STRIDED if _order(shape, strides) != order else 0.0)
    return max(seconds * slower, seconds, count / (_ONE_BY_ONE * device.processors) if slower else 0.0)


def _repeats(shape, whole):
    return len(shape) <= len(whole) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(whole)))


def _order(shape, strides):
    """Strides of the dimensions that have several elements."""
    return [stride for size, stride in zip(shape, strides) if size != 1]


def _counted(device, call):
    """Of an op that is no product: operations that PyTorch counts, if it does, or bytes."""
    operations = flops(call)
    moving = _elements(device, call)
    if operations == 0:
        return moving
    return max(attention_seconds(device, device.peak(_dtype(call.outputs)), operations, inf), moving)


_DEPTHWISE = 3  # passes over memory that a convolution takes in which each channel has its own filter
_WINOGRAD = 1.5  # how much slower its products are; from NeuSight's training rows
# How much slower than a copy of the same bytes. From the captures of an H200 in traces/gpu.
_STRIDED = 1.7  # elements that are read in another order than written
_ONE_BY_ONE = 2.4e9  # such elements a second, or repeated ones, of a multiprocessor
_FOREACH = 1.1
_SUM = 1.7
BATCH_NORMALISATION = 1.2
_CHANNEL_RATES = {False: 20e9, True: 14e9}  # bytes per second that a multiprocessor moves for one channel; backward
# On tensor cores or not; how much slower it computes than a product of matrices of the same sizes. Without: from a V100.
CONVOLUTION = {False: 1.45, True: 1.1}
_WEIGHT_GRADIENT = 2.0  # the same of the gradient of weights, on tensor cores, than of the others
_ALIGNED = 8  # values
_RANDOM = 1.3
_SUMMED_ROW = 30e-9  # seconds for each row that a look-up's backward sums

# Ops whose time depends on arguments that are no tensors, besides those whose operations PyTorch counts.
_BY_VALUES = frozenset("cudnn_convolution lstm_layer lstm_layer_backward _cudnn_rnn _cudnn_rnn_backward".split())
_PRODUCTS = frozenset("mm bmm addmm _addmm_activation baddbmm".split())  # PyTorch counts their operations; shapes decide
_FILLED = frozenset("native_dropout native_layer_norm native_layer_norm_backward clone embedding_dense_backward".split())

_FORMS = {
    "mm": _products("self", "mat2"), "bmm": _products("self", "mat2"), "addmm": _products("mat1", "mat2"),
    "_addmm_activation": _products("mat1", "mat2"), "baddbmm": _products("batch1", "batch2"),
    "convolution": _convolution, "cudnn_convolution": _convolution, "convolution_backward": _convolution_backward,
    "_scaled_dot_product_flash_attention": _attention, "_scaled_dot_product_efficient_attention": _attention,
    "_scaled_dot_product_cudnn_attention": _attention,
    "_scaled_dot_product_flash_attention_backward": _attention_backward,
    "_scaled_dot_product_efficient_attention_backward": _attention_backward,
    "_scaled_dot_product_cudnn_attention_backward": _attention_backward,
    "lstm_layer": _recurrent(1), "lstm_layer_backward": _recurrent(2),
    "_cudnn_rnn": _cudnn_recurrent(1), "_cudnn_rnn_backward": _cudnn_recurrent(2),
    "_softmax": _rows(3, 1025, 2.5), "_log_softmax": _rows(3, 1025, 2.5), "_safe_softmax": _passes(1, 3.7),
    "_softmax_backward_data": _rows(2, 1025, 2.5, 1.9), "_log_softmax_backward_data": _rows(2, 1025, 2.5),
    "native_layer_norm": _later(3, _rows(2, 0, 8)), "native_group_norm": _later(3, _rows(2, 0, 8)),
    "native_layer_norm_backward": _later(5, _rows(2, 0, 8, 1.8)), "native_group_norm_backward": _later(5, _rows(2, 0, 8, 1.8)),
    "sum": _sum, "cat": _passes(1, 2.1), "slice_backward": _passes(1, 1.7),
    "native_dropout": _passes(1, _RANDOM), "native_dropout_backward": _passes(1, _RANDOM),
    "max_pool2d_with_indices": _passes(1, 2.2), "max_pool2d_with_indices_backward": _passes(1, 4.5),
    "embedding_dense_backward": _look_up_backward,
    **dict.fromkeys("native_batch_norm cudnn_batch_norm miopen_batch_norm batch_norm_with_update native_batch_norm_backward "
                    "cudnn_batch_norm_backward miopen_batch_norm_backward batch_norm_backward".split(), _batch_normalisation),
}


def flops(call):
    """Floating-point operations of an op that PyTorch counts; 0 for others."""
    counted = _counted_operators().get(call.func._overloadpacket)
    return 0 if counted is None else counted(*call.args, **call.kwargs, out_val=call.result)


@functools.cache
def _counted_operators():
    log = logging.getLogger("torch.utils.flop_counter")
    disabled, log.disabled = log.disabled, True  # its import prints a warning if PyTorch has no Triton
    from torch.utils.flop_counter import flop_registry

    log.disabled = disabled
    return flop_registry


def moved_bytes(call, reads=1):
    """Bytes read and written: each tensor once, but one that is only read `reads` times, and one that is read and written
    twice. A table look-up reads only the rows that it returns."""
    if call.short_name in SHAPE_ONLY:
        return sum(distinct_bytes(tensor) for tensor in call.outputs)
    made = sum(distinct_bytes(tensor) for tensor in call.outputs if not _is_argument(call, tensor))
    total = made
    for argument, tensor in call.tensors():
        access = call.access(argument, tensor)
        size = distinct_bytes(tensor)
        if argument.name in _TABLES.get(call.short_name, ()):
            size = min(size, made)
        if access is not None and argument.name not in _SHAPES.get(call.short_name, ()):
            total += size * max(2 if access == "read_write" else 1, reads)
    return total


_TABLES = {"embedding": ("weight",), "index_select": ("self",), "gather": ("self",), "index": ("self",),
           "nll_loss_forward": ("self",)}
_SHAPES = {"nll_loss_backward": ("self",)}  # arguments whose shape counts alone


def _is_argument(call, tensor):
    return any(given is tensor for _, given in call.tensors())


def _dtype(outputs):
    for tensor in outputs:
        if tensor.dtype.is_floating_point:
            return tensor.dtype
    return torch.float32
