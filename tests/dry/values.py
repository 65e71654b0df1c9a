"""Jobs whose sizes, loops and branches follow from values of tensors.

known     values that the script made on the host, or numbers of it: asserts that they are right
generate  a loop that a flag on the device ends
edges     a mask that compares indices, as in removing self-loops of a graph; prints how many stay
masked    a mask that compares floats; prints how many elements it selects
checked   training that ends if boxes of the model are no boxes
kernel    another library's op, whose kernel writes a mask; prints how many elements it selects
experts   tokens choose experts, and those that were hit run; prints how many tokens each has
gates     a mask of a parameter that is zero until the first update; prints how many elements it selects
once FILE experts, but the second run does nothing: FILE is made by the first
heads     an accuracy, and a gradient scaler's state, which decide no size
"""

import os
import sys

import torch
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
kind = sys.argv[1]


def known():
    numbers = torch.arange(10, device=device)
    assert (numbers > 4).sum().item() == 5 and numbers[numbers > 6].tolist() == [7, 8, 9]
    assert torch.full((3,), True, device=device).all()
    assert (numbers % 2 == 0).nonzero().tolist() == [[0], [2], [4], [6], [8]]
    host = torch.tensor([3, 1, 3, 7]).to(device)
    values, inverse, counts = torch.unique(host, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 3, 7] and inverse.tolist() == [1, 0, 1, 2] and counts.tolist() == [1, 2, 1]
    assert host.sort()[0].tolist() == [1, 3, 3, 7] and host.bincount().tolist() == [0, 1, 0, 2, 0, 0, 0, 1]
    places = torch.zeros(4, dtype=torch.long, device=device)
    places[1:3] = 5
    places.add_(1)[numbers[:2]] = 9
    assert places.tolist() == [9, 9, 6, 1] and torch.cat([places, host]).cumsum(0)[-1].item() == 39
    assert torch.repeat_interleave(torch.tensor([1, 2]).to(device)).tolist() == [0, 1, 1]
    assert F.one_hot(host, 8).sum(0).tolist() == [0, 1, 0, 2, 0, 0, 0, 1]
    assert (F.one_hot(host, 8).float().cumsum(0).gather(1, host[:, None]) <= 1).flatten().tolist() == [True, True, False, True]
    assert torch.where(host > 2, host, -host).tolist() == [3, -1, 3, 7] and torch.equal(host, host.clone())
    assert host.gather(0, torch.randperm(4, device=device)).sum() == 14
    sparse = torch.sparse_coo_tensor(torch.stack([host, host]), torch.ones(4, 2, device=device), (9, 9, 2)).coalesce()
    assert sparse.indices().tolist() == [[1, 3, 7], [1, 3, 7]] and sparse.values().shape == (3, 2)
    # Memory that had known values is used again.
    for _ in range(3):
        unknown = (torch.randn(512, device=device) @ torch.randn(512, 4, device=device)).argsort()
        assert sorted(unknown.tolist()) == [0, 1, 2, 3]
    # Memory that had unknown ones is used for numbers of the script.
    unknown = [(torch.randn(4, device=device) * 9).long() for _ in range(16)]
    del unknown
    for again in [torch.tensor([1, 5, 3, 8], device=device) for _ in range(16)]:
        assert (again > 2).nonzero().flatten().tolist() == [1, 2, 3]


def generate():
    done, length = torch.zeros(4, dtype=torch.bool, device=device), 16
    while not done.all():
        length += 1
        done = done | torch.full((4,), length >= 24, device=device)
        assert length <= 24
    print(length)


def train(loss_of, *modules):
    optimizer = torch.optim.Adam([each for module in modules for each in module.parameters()])
    for _ in range(3):
        loss_of().backward()
        optimizer.step()
        optimizer.zero_grad()


def edges():
    layer = torch.nn.Linear(64, 64).to(device)
    ends = torch.randint(0, 100, (2, 10000), generator=torch.Generator().manual_seed(0)).to(device)
    features = torch.randn(100, 64, device=device)

    def loss():
        kept = ends[:, ends[0] != ends[1]]
        print(kept.shape[1])
        return torch.zeros(100, 64, device=device).index_add(0, kept[1], layer(features)[kept[0]]).square().mean()

    train(loss, layer)


def masked():
    layer = torch.nn.Linear(64, 64).to(device)

    def loss():
        scores = layer(torch.randn(100, 64, device=device))
        print(scores[scores > 0].numel())
        return scores.mean()

    train(loss, layer)


def checked():
    layer = torch.nn.Linear(64, 4).to(device)

    def loss():
        boxes = layer(torch.randn(400, 64, device=device))
        boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].exp()], 1)
        if not (boxes[:, 2:] >= boxes[:, :2]).all():
            raise ValueError("a box ends before it begins")
        last = boxes.long().max()
        assert last < 1000 and max(last + 1, 80) == 80
        return boxes.sum()

    train(loss, layer)


def kernel():
    library = torch.library.Library("tests", "DEF")
    library.define("kept(Tensor boxes) -> Tensor")

    def kept(boxes):
        order = torch.arange(len(boxes), device=device)
        keep = torch.zeros(len(boxes), dtype=torch.bool, device=device)  # its kernel would write here
        return order.masked_select(keep)

    library.impl("kept", kept, "CUDA")
    print(len(torch.ops.tests.kept(torch.randn(300, 4, device=device))))


def experts():
    router = torch.nn.Linear(64, 8).to(device)
    layers = torch.nn.ModuleList([torch.nn.Linear(64, 64) for _ in range(8)]).to(device)

    def loss():
        tokens = torch.randn(400, 64, device=device)
        known = [torch.zeros(400, 8, device=device) for _ in range(8)]
        del known  # the router's results have their memory
        weights, chosen = router(tokens).softmax(-1).topk(2)
        result = torch.zeros_like(tokens)
        hit = F.one_hot(chosen, 8).permute(2, 1, 0)
        counts = []
        for expert in (hit.sum((1, 2)) > 0).nonzero().flatten().tolist():
            slot, token = torch.where(hit[expert])
            counts.append(len(token))
            result.index_add_(0, token, layers[expert](tokens[token]) * weights[token, slot, None])
        print(*counts)
        return result.square().mean()

    train(loss, router, layers)


def gates():
    gate = torch.nn.ParameterList([torch.zeros(100, device=device)])

    def loss():
        print((gate[0] > 0).nonzero().numel())
        return (gate[0] - 1).square().sum()

    train(loss, gate)


def once():
    if os.path.exists(sys.argv[2]):
        sys.exit("it ran before")
    open(sys.argv[2], "w").close()
    experts()


def heads():
    layer = torch.nn.Linear(64, 10).to(device)
    scaler, counted = torch.amp.GradScaler(device), torch.optim.SGD(layer.parameters())

    def loss():
        scaler.scale(layer(torch.randn(32, 64, device=device)).sum()).backward()
        scaler.step(counted)
        scaler.update()
        assert scaler.state_dict()["_growth_tracker"] >= 0
        labels = torch.randint(0, 10, (32,)).to(device)
        scores = layer(torch.randn(32, 64, device=device))
        print((scores.argmax(1) == labels).sum().item() <= 32)
        return F.cross_entropy(scores, labels)

    train(loss, layer)


globals()[kind]()
