"""Eight steps of a small network. At the end, all modules of Tidepool in this process must be in the given folder."""

import ctypes
import os
import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*[layer for _ in range(6) for layer in (torch.nn.Linear(256, 256), torch.nn.GELU())])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
data = torch.randn(512, 256)
for _ in range(8):
    optimizer.zero_grad()
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item())

folder, want = sys.argv[1:]
ctypes.CDLL(os.path.join(folder, "share/tidepool/python/libtidepool_allocator.so"))
used = {module.__file__ for name, module in sys.modules.items() if name.startswith("tidepool_") and module.__file__}
assert any(f"/{want}/" in file for file in used), (want, used)
with open("/proc/self/maps") as maps:
    mapped = {line.split()[-1] for line in maps}
used |= {file for file in mapped if any(name in os.path.basename(file) for name in ("tidepool", "libfmt", "libsimdjson"))}
outside = {file for file in used if "/" in file and not os.path.realpath(file).startswith(os.path.realpath(folder) + "/")}
assert not outside, outside
