"""Steps of a stack of blocks: blocks.py DEVICE [CHANGE [STEPS]]. CHANGE is a Python file that `tidepool advise --apply
pytorch` prints, or "" for no change. STEPS is 3 unless given. Prints the peak on CUDA, and the gradients' sum of squares
on other devices."""
import runpy
import sys

import torch

nn = torch.nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(256), nn.Linear(256, 2048), nn.Linear(2048, 256)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def main():
    device = sys.argv[1]
    torch.manual_seed(1)
    model = nn.Sequential(*[Block() for _ in range(6)], nn.Linear(256, 16)).to(device)
    change = runpy.run_path(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2] else {}
    if "apply" in change:
        change["apply"](model)
    micro_batches = change.get("micro_batches", lambda batch: [batch])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    inputs, labels = torch.randn(1024, 256).to(device), torch.randint(0, 16, (1024,)).to(device)
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 3):
        optimizer.zero_grad()
        pieces = micro_batches((inputs, labels))
        for part, target in pieces:
            (nn.functional.cross_entropy(model(part), target) / len(pieces)).backward()
        optimizer.step()
    if device == "cuda":
        print("peak", torch.cuda.max_memory_allocated())
    else:
        print("gradients", sum(float((parameter.grad**2).sum()) for parameter in model.parameters()))


if __name__ == "__main__":
    main()
