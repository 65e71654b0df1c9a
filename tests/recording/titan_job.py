"""One rank of torchtitan's trainer, in a world of as many ranks as WORLD_SIZE says. The other ranks are not started: PyTorch's
process group "fake" takes their place, whose collectives allocate as others do and move nothing. All ranks are alike.

    WORLD_SIZE=8 titan_job.py TRAIN.py LAYERS ARGUMENTS...

LAYERS takes the place of the number of layers of every model. Each step prints its metrics, so that the peak of each is known.
"""

import os
import runpy
import sys

import torch
from torch.testing._internal.distributed.fake_pg import FakeStore


def alone(*_, **__):
    world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ.get("RANK", "0"))
    started(backend="fake", store=FakeStore(), rank=rank, world_size=world)


script, layers = os.path.abspath(sys.argv[1]), int(sys.argv[2])
sys.argv = [script, *sys.argv[3:]]
sys.path.insert(0, os.path.dirname(script))
started, torch.distributed.init_process_group = torch.distributed.init_process_group, alone

from torchtitan.models import models_config  # noqa: E402

for configuration in models_config["llama3"].values():
    configuration.n_layers = layers
runpy.run_path(script, run_name="__main__")
