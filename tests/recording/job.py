"""A small training script, with one feature of real scripts at a time: job.py VARIANT [PORT]. Prints each step's loss
with all its bits and, after each epoch, the sum of the outputs of an evaluation."""

import os
import resource
import signal
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

EPOCHS, STEPS, BATCH = 2, 4, 8


class Images(Dataset):
    """Each sample is computed from its number: the same in every process."""

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 8, 8, generator=generator), torch.randint(0, 10, (), generator=generator)


class Net(nn.Module):
    def __init__(self, checkpoints=False):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Dropout(0.1))
        self.last = nn.Linear(8 * 64, 10)
        self.checkpoints = checkpoints

    def forward(self, x):
        x = self.first(x)
        if self.checkpoints:
            x = torch.utils.checkpoint.checkpoint(self.second, x, use_reentrant=False)
        else:
            x = x + self.second(x)
        return self.last(x.flatten(1))


def loader(variant):
    settings = {}
    if "workers" in variant:
        start = "spawn" if "spawn" in variant else "fork"
        settings = {"num_workers": 2, "multiprocessing_context": start, "persistent_workers": "persistent" in variant}
    return DataLoader(Images(), batch_size=BATCH, shuffle=True, **settings)


def end(variant, step):
    """Ends the job early, or fills its disk, in the variants that do so."""
    if variant == "disk-full" and step == 3:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
    if step < 6:
        return
    if variant == "crash":
        raise ValueError("the data of step 6 is bad")
    if variant == "out-of-memory":
        torch.empty(1 << 60)
    if variant == "missing-module":
        import no_such_module  # noqa: F401
    if variant == "exit":
        os._exit(3)
    if variant in ("sigkill", "sigterm"):
        os.kill(os.getpid(), signal.SIGKILL if variant == "sigkill" else signal.SIGTERM)
        signal.pause()


def train(variant, rank=0):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = net = Net("checkpointing" in variant).to(device)
    if "ddp" in variant:
        model = nn.parallel.DistributedDataParallel(net)
    if variant == "compile":
        model = torch.compile(net, backend="aot_eager")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    scaler = torch.amp.GradScaler(device, enabled="amp" in variant)
    accumulated = 2 if "accumulate" in variant else 1
    step = 0
    data = loader(variant)
    for epoch in range(EPOCHS):
        if variant == "late-compile" and epoch == 1:
            model = torch.compile(net, backend="aot_eager")
        for number, (images, labels) in enumerate(data):
            with torch.autocast(device, torch.bfloat16, enabled="amp" in variant):
                output = model(images.to(device))
                loss = F.cross_entropy(output, labels.to(device)) / accumulated
            del output
            scaler.scale(loss).backward()
            if (number + 1) % accumulated == 0:
                scaler.step(optimizer)
                scaler.update()
                schedule.step()
                optimizer.zero_grad()
            if rank == 0:
                print(step, loss.item().hex(), flush=True)
            step += 1
            end(variant, step)
        with torch.no_grad():
            model.eval()
            if rank == 0:
                print("test", net(images.to(device)).sum().item().hex(), flush=True)
            model.train()
        if rank == 0 and "CHECKPOINT" in os.environ:
            torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, os.environ["CHECKPOINT"])


def rank_of_two(rank, variant, port):
    torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    train(variant, rank)
    torch.distributed.barrier()  # neither rank ends its group while the other is at work
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    chosen = sys.argv[1]
    if "ddp" in chosen:
        torch.multiprocessing.spawn(rank_of_two, (chosen, int(sys.argv[2])), nprocs=2)
    else:
        train(chosen)
