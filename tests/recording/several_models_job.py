"""A job of two models, whose modules have the same names, each with its optimizer: several_models_job.py [CHANGE [only]].
Prints each loss with all its bits. CHANGE is a file that `tidepool advise --apply pytorch` prints. Its apply() gets both
models, or with `only` just the first one."""

import runpy
import sys

import torch
from torch import nn


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(*(nn.Sequential(nn.Linear(128, 512), nn.Tanh(), nn.Linear(512, 128)) for _ in range(4)))

    def forward(self, x):
        return self.main(x)


class Decoder(Coder):
    pass


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    models = [Coder(), Decoder()]
    if len(sys.argv) > 1:
        runpy.run_path(sys.argv[1])["apply"](*models[:1 if "only" in sys.argv else 2])
    optimizers = [torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9) for model in models]
    batch = torch.randn(2048, 128)
    for _ in range(6):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = nn.functional.mse_loss(models[1](models[0](batch)), batch)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        print(loss.item().hex())


if __name__ == "__main__":
    main()
