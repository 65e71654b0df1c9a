"""How long a kernel takes on a device.

A product of matrices is computed in tiles. Each multiprocessor computes its tiles one after the other, at the peak rate
of its units times a share that grows with the tile: a tile of m x n values reads (1/m + 1/n) operands for each operation.
If the tiles are no multiple of the multiprocessors, some of these wait. The reduction may be split among more tiles, whose
parts are then added. The library's choice is taken for the fastest one. The board cannot spend more power than its limit.
Everything else moves bytes, at a share of the memory's rate, or at that of the cache if all of them fit there.

The constants are fitted by tests/recording/op_times_table.py, which prints the errors. Where nothing else is said, they
are from NeuSight's training rows (sitar-lab/NeuSight 6945927: P4, P100, T4, V100 and A100 with 40 GB; PyTorch 2.1).
"""

from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True)
class Units:
    """Constants of products that one kind of units computes.

    share      of the peak rate that a tile without traffic of operands reaches
    traffic    what operands cost: the share is divided by 1 + traffic x (1/m + 1/n)
    round_up   how much of the last, incomplete wave of tiles counts as a whole one
    prologue   steps of the reduction that the begin and the end of a tile take
    pieces     bytes moved for each byte of a split reduction's parts
    split      seconds that the kernel takes which adds the parts
    outer      share of the traffic's cost that is left where both operands have the reduction as their outer dimension, as
               for gradients of weights: tiles are loaded as they lie
    memory     share of the memory's rate
    overlap    exponent p of (computing^p + moving^p)^(1/p): how well the two overlap
    """

    share: float
    traffic: float
    round_up: float
    prologue: float
    pieces: float
    split: float
    outer: float
    memory: float
    overlap: float


# From NeuSight's training rows and, each with a weight of 4, the 30 shapes of products in the H200's captures of GPT-2 and of the
# Llama-like model: `outer`, `pieces`, `split`, _ALONE and _LATE are known from these alone. op_times_table.py --fit has no captures.
CORES = Units(share=1.03, traffic=9.1, round_up=0.27, prologue=0.06, pieces=0.44, split=1.3e-6, outer=0.87, memory=0.66,
              overlap=3.0)
# From the tables of ai-dynamo/aiconfigurator 095f58a for A100, H100, H200, B200 and L40S, bfloat16.
TENSOR_CORES = Units(share=0.99, traffic=18, round_up=0.29, prologue=182, pieces=0.08, split=3.9e-6, outer=1,
                     memory=0.8, overlap=2.65)

_TILES = ((128, 128), (128, 64), (64, 128), (64, 64), (128, 32), (32, 128), (32, 32))
_TENSOR_TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (64, 256), (256, 64))
# Batches of float32 products: the tiles for which the library of this generation has kernels. Others have all.
_BATCH_TILES = {"pascal": ((128, 64),), "ampere": ((128, 128),), "ada": ((128, 128),),
                "volta": ((128, 128), (128, 64), (64, 64), (128, 32), (32, 128)),
                "turing": ((128, 128), (128, 64), (64, 64), (128, 32), (32, 128))}
_LEAST_PART, _MOST_PARTS, _MOST_WAVES = 512, 16, 16  # of a reduction that is split: steps of a part, parts, waves of tiles

# Rows that are no multiple of so many bytes are loaded value by value, which takes tensor cores so much longer. From TF32 products
# of a DLRM on an A100.
_ALIGNMENT, _UNALIGNED = 16, 1.7

# Joules that the board spends for an operation of its float32 units and of its tensor cores (16 bits), by generation. float32:
# Pascal and Turing as Volta; later than Ampere: assumed, a little less than half of Ampere's, 4 nm instead of 7 nm. Tensor
# cores: the rate that long products of aiconfigurator's tables reach, and for Turing 24 TFLOP/s of a T4 that was reported.
ENERGY = {"pascal": 17e-12, "volta": 17e-12, "turing": 17e-12, "ampere": 15.4e-12, "ada": 7.4e-12, "hopper": 7.4e-12,
          "blackwell": 7.4e-12}
TENSOR_ENERGY = {"pascal": 17e-12, "volta": 2.9e-12, "turing": 2.9e-12, "ampere": 1.6e-12, "ada": 1.8e-12, "hopper": 1.0e-12,
                 "blackwell": 0.7e-12}
# Share of its limit that a board has for the products of a step: in the time of other kernels, assumed to be a third of the
# step, it takes less, assumed 0.6 of the limit. For a product that runs again and again, this is 1.
BUDGET = 1.18
# From the captures of an H200 in traces/gpu: how much longer a multiprocessor with 128 float32 units takes for a tile that it
# computes alone, and steps of the reduction that Hopper takes besides, which runs kernels of the generation before.
_ALONE = 0.31
_LATE = {"hopper": 44}
# Share of the peak rate that fused attention reaches in long rows: with float32 units, with tensor cores; PyTorch's kernels
# are made for Ampere. A row of so many keys reaches a half of it.
ATTENTION, TENSOR_ATTENTION, LATE_ATTENTION = 0.5, 0.65, 0.4
HALF_ROW = 600

LAUNCH = 2e-6  # the least time of a kernel on its stream
REACH = 0.89  # share of the memory's rate that reading and writing a large tensor reaches
REACH_IN_LINE = 0.77  # the same where error correction is in line, and of Pascal
CACHE = {"ampere": 0.7, "hopper": 0.7}  # share of the cache that keeps what a kernel moves; 1 for other generations
CACHE_RATE = 40e9  # bytes per second of the cache for each multiprocessor


def product_seconds(device, rate, size, batch, m, n, k, tensor_cores=False, outer=False):
    """Seconds of `batch` products of m x k by k x n values of `size` bytes, at a peak of `rate` operations per second. The
    reduction may be the `outer` dimension of both operands."""
    units = TENSOR_CORES if tensor_cores else CORES
    moving = size * batch * (m * k + k * n + m * n) / (device.bandwidth * units.memory)
    if min(m, n) == 1:
        return moving  # with a vector: no tiles
    of_processor = rate / device.processors * units.share
    if tensor_cores and (n * size % _ALIGNMENT or k * size % _ALIGNMENT):
        of_processor /= _UNALIGNED
    lanes = 1.0 if tensor_cores else device.lanes / 64
    alone = _ALONE if lanes > 1 else 0.0
    traffic = units.traffic * lanes * (units.outer if outer else 1.0)
    tiles = _TENSOR_TILES if tensor_cores else _TILES
    if batch > 1 and not tensor_cores:
        tiles = _BATCH_TILES.get(device.generation, tiles)
    prologue = units.prologue + (0 if tensor_cores else _LATE.get(device.generation, 0))
    least = None
    for rows, columns in tiles:
        count = batch * ceil(m / rows) * ceil(n / columns)
        slowness = 2 * rows * columns * (1 + traffic * (1 / rows + 1 / columns)) / of_processor
        for parts in range(1, max(1, min(_MOST_PARTS, k // _LEAST_PART)) + 1):
            waves = count * parts / device.processors
            if parts > 1 and waves > _MOST_WAVES:
                break
            whole = max(waves, 1.0)
            waves = units.round_up * ceil(waves) + (1 - units.round_up) * whole
            seconds = waves * (1 + alone / whole) * slowness * (k / parts + prologue)
            if parts > 1:
                seconds += units.split + units.pieces * parts * batch * m * n * 8 / device.bandwidth
            if least is None or seconds < least:
                least = seconds
    energy = TENSOR_ENERGY[device.generation] * size / 2 if tensor_cores else ENERGY[device.generation]
    least = max(least, 2 * batch * m * n * k * energy / (device.watts * BUDGET))
    return (least**units.overlap + moving**units.overlap) ** (1 / units.overlap)


def attention_seconds(device, rate, operations, keys, tensor_cores=False):
    """Seconds of so many operations of fused attention, with rows of so many keys."""
    share = ATTENTION
    if tensor_cores:
        share = LATE_ATTENTION if device.generation in ("hopper", "blackwell") else TENSOR_ATTENTION
    energy = (TENSOR_ENERGY if tensor_cores else ENERGY)[device.generation]
    return max(operations * (1 + HALF_ROW / keys) / (rate * share), operations * energy / (device.watts * BUDGET))


def moving_seconds(device, moved):
    """Seconds in which a kernel reads and writes so many bytes, one after the other."""
    reach = REACH_IN_LINE if device.ecc_in_line or device.generation == "pascal" else REACH
    room = CACHE.get(device.generation, 1.0) * device.cache
    kept = min(1.0, max(0.0, 5 - 4 * moved / room))  # all of it, and nothing of 5/4 of the room
    rate = device.bandwidth * reach
    return moved * ((1 - kept) / rate + kept / max(rate, CACHE_RATE * device.processors))
