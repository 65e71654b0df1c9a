"""Two ranks compute sizes from what they exchange, and overwrite or free it before they read the result."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", rank)
torch.cuda.set_device(device)
dist.init_process_group("nccl")


def exchanged():
    size = torch.tensor([rank + 1], device=device)
    dist.all_reduce(size)
    return size


def check_overwritten(overwrite, expected):
    """`overwrite` gets the exchanged size and its sum with 10. `expected` is what the size is afterwards."""
    size = exchanged()
    total = size + 10
    overwrite(size, total)
    assert (total.item(), size.item()) == (13, expected), (total, size)


check_overwritten(lambda size, _: size.zero_(), 0)
check_overwritten(lambda size, _: size.copy_(torch.tensor([5])), 5)
check_overwritten(lambda size, _: dist.all_reduce(size), 6)
check_overwritten(lambda size, total: torch.add(total, 1, out=size), 14)


def check_freed(make, expected):
    """`make` gets the sum of the exchanged size with 10, and makes a tensor where the size was."""
    size = exchanged()
    total, place = size + 10, size.data_ptr()
    del size
    made = make(total)
    assert made.data_ptr() == place
    assert (total.item(), made.item()) == (13, expected), (total, made)


check_freed(torch.empty_like, 0)
check_freed(lambda total: total + 1, 14)

pairs = torch.tensor([[1, 10], [2, 20], [3, 30]], device=device)
assert (pairs[:, 0].sum().item(), pairs.sum().item()) == (6, 66)
assert pairs[:, :1].expand(3, 2).sum().item() == 12 and (pairs[:, 0] > 1).nonzero().flatten().tolist() == [1, 2]
numbers = torch.arange(1, 9).to(device)
assert (numbers[::2].sum().item(), numbers[::2].amax().item(), numbers[1:4].amin().item()) == (16, 7, 2)
dist.destroy_process_group()
