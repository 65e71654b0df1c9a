"""Devices by name: what their data sheets say, as far as times of kernels depend on it."""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Device:
    """Peak rates are dense (not sparse) floating-point operations per second by type, and bytes per second.
    `float32` is the rate without TF32.

    generation  the architecture, in lower case
    processors  streaming multiprocessors, as the data sheet counts them
    lanes       float32 units of a multiprocessor
    watts       power limit of the board
    cache       bytes of the L2 cache
    ecc_in_line whether the memory has no chips of its own for error correction, so that this takes some of its rate
    """

    name: str
    generation: str
    processors: int
    lanes: int
    watts: float
    float64: float
    float32: float
    float16: float
    bfloat16: float
    bandwidth: float
    cache: float
    source: str
    ecc_in_line: bool = False

    def peak(self, dtype):
        """Operations per second for a type; types without an entry (complex, integers) count as float32."""
        return getattr(self, str(dtype).removeprefix("torch."), self.float32)

    @property
    def error(self):
        """How far an estimated step is off, in the mean: where steps were measured (tests/recording/op_times_table.py, and the
        captures in traces/gpu), and, assumed, elsewhere."""
        return 0.1 if self.name in ("v100", "h100", "h200", "l4") else 0.15 if self.name in ("a100", "a100-40gb") else 0.2

    @property
    def facts_of_times(self):
        """What a trace says of op times that are estimated for this device."""
        return {"time": "estimated", "times": self.name, "times_error": f"{self.error:.0%}".replace("%", " %")}

    @property
    def tensorfloat32(self):
        """Operations per second of float32 products that are rounded to TF32; without such units, those of float32."""
        return self.float32 if self.generation in ("pascal", "volta", "turing") else self.float16 / 2


_MB = 2**20

DEVICES = {
    device.name: device
    for device in [
        Device("titan-x", "pascal", 28, 128, 250, 0.343e12, 10.97e12, 0.171e12, 0.171e12, 480e9, 3 * _MB,
               "TITAN X (Pascal), 3584 cores at 1531 MHz boost, float64 at 1/32, float16 at 1/64; bfloat16 as float16"),
        Device("v100", "volta", 80, 64, 300, 7.8e12, 15.7e12, 125e12, 15.7e12, 900e9, 6 * _MB,
               "NVIDIA V100 data sheet, SXM2; no bfloat16 units, counted as float32"),
        Device("a100-40gb", "ampere", 108, 64, 400, 9.7e12, 19.5e12, 312e12, 312e12, 1555e9, 40 * _MB,
               "NVIDIA A100 data sheet, SXM4 40 GB"),
        Device("a100", "ampere", 108, 64, 400, 9.7e12, 19.5e12, 312e12, 312e12, 2039e9, 40 * _MB,
               "NVIDIA A100 data sheet, SXM4 80 GB"),
        Device("h100", "hopper", 132, 128, 700, 34e12, 67e12, 989e12, 989e12, 3350e9, 50 * _MB,
               "NVIDIA H100 data sheet, SXM5, dense"),
        Device("h200", "hopper", 132, 128, 700, 34e12, 67e12, 989e12, 989e12, 4800e9, 60 * _MB,
               "NVIDIA H200 data sheet, SXM, dense"),
        Device("rtx-3090", "ampere", 82, 128, 350, 0.556e12, 35.6e12, 71e12, 71e12, 936e9, 6 * _MB,
               "NVIDIA GA102 white paper, tensor cores with 32-bit accumulation"),
        Device("rtx-4090", "ada", 128, 128, 450, 1.29e12, 82.6e12, 165e12, 165e12, 1008e9, 72 * _MB,
               "NVIDIA Ada white paper, tensor cores with 32-bit accumulation"),
        Device("rtx-4080", "ada", 76, 128, 320, 0.761e12, 48.7e12, 97.5e12, 97.5e12, 717e9, 64 * _MB,
               "NVIDIA Ada white paper, tensor cores with 32-bit accumulation"),
        Device("rtx-3060", "ampere", 28, 128, 170, 0.199e12, 12.7e12, 25.5e12, 25.5e12, 360e9, 3 * _MB,
               "NVIDIA GA102 white paper, its rates of the RTX 3090 by multiprocessors and clock"),
        Device("rtx-4060", "ada", 24, 128, 115, 0.236e12, 15.1e12, 30.2e12, 30.2e12, 272e9, 24 * _MB,
               "NVIDIA Ada white paper, its rates of the RTX 4080 by multiprocessors and clock"),
        Device("b200", "blackwell", 148, 128, 1000, 37e12, 75e12, 2250e12, 2250e12, 7700e9, 126 * _MB,
               "NVIDIA HGX B200 data sheet, an eighth of it, dense"),
        Device("rtx-pro-6000", "blackwell", 188, 128, 600, 1.95e12, 125e12, 503e12, 503e12, 1792e9, 128 * _MB,
               "NVIDIA RTX Blackwell PRO white paper, tensor cores with 32-bit accumulation"),
        Device("rtx-pro-5000", "blackwell", 110, 128, 300, 1.02e12, 65e12, 258e12, 258e12, 1344e9, 96 * _MB,
               "NVIDIA RTX PRO 5000 Blackwell data sheet; 16 bits: an eighth of its sparse 4-bit rate"),
        Device("rtx-5090", "blackwell", 170, 128, 575, 1.64e12, 104.8e12, 209e12, 209e12, 1792e9, 96 * _MB,
               "NVIDIA RTX Blackwell white paper, tensor cores with 32-bit accumulation"),
        Device("l40s", "ada", 142, 128, 350, 1.43e12, 91.6e12, 362e12, 362e12, 864e9, 96 * _MB,
               "NVIDIA L40S data sheet, dense", ecc_in_line=True),
        Device("l4", "ada", 58, 128, 72, 0.47e12, 30.3e12, 121e12, 121e12, 300e9, 48 * _MB,
               "NVIDIA L4 data sheet, dense", ecc_in_line=True),
        Device("t4", "turing", 40, 64, 70, 0.253e12, 8.1e12, 65e12, 8.1e12, 320e9, 4 * _MB,
               "NVIDIA T4 data sheet; no bfloat16 units, as float32", ecc_in_line=True),
    ]
}
_OTHER_NAMES = {"a100-80gb": "a100", "h100-80gb": "h100"}  # names in `tidepool record --device`


def find_device(name):
    """The device of that name. Raises ValueError with the known names."""
    found = DEVICES.get(_OTHER_NAMES.get(name, name))
    if found is None:
        raise ValueError(f"no device named {name!r}; known: {', '.join(sorted({*DEVICES, *_OTHER_NAMES}))}")
    return found
