"""Small training jobs in which values decide sizes: values_jobs.py JOB [--device cpu|cuda]. With cuda, the bytes that
PyTorch reserved are printed.

Six have experts that a router chooses. In the others, indices, masks, lengths or scores decide. Data on the host is no
tensor, so that the same tensors are made on both devices."""

import argparse

import numpy
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HIDDEN, EXPERTS, TOKENS, WORDS = 256, 512, 8, 2048, 1000
SIZES = {"vocab_size": WORDS, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": HIDDEN, "attn_implementation": "eager"}


def expert():
    return nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH))


class Routed(nn.Module):
    """Experts of which each token goes to two, or to one as in a Switch transformer (arXiv 2101.03961)."""

    def __init__(self, chosen=2, shared=False, capacity_factor=None):
        super().__init__()
        self.chosen, self.capacity_factor = chosen, capacity_factor
        self.router, self.experts = nn.Linear(WIDTH, EXPERTS), nn.ModuleList(expert() for _ in range(EXPERTS))
        self.shared = expert() if shared else None

    def forward(self, x):
        weights, experts = self.router(x).softmax(-1).topk(self.chosen)
        out = x + self.shared(x) if self.shared else x
        hit = experts.flatten().bincount(minlength=EXPERTS)
        for number in hit.nonzero().flatten().tolist():
            rows, place = torch.where(experts == number)
            if self.capacity_factor:
                most = int(self.capacity_factor * self.chosen * len(x) / EXPERTS)
                rows, place = rows[:most], place[:most]
            out = out.index_add(0, rows, self.experts[number](x[rows]) * weights[rows, place, None])
        return out


def routed(**options):
    model = nn.Sequential(*(Routed(**options) for _ in range(3)))
    return model, lambda device: (model(torch.randn(TOKENS, WIDTH, device=device)).square().mean(),)


def causal(name, **options):
    import transformers

    config = getattr(transformers, f"{name}Config")(**{**SIZES, **options})
    model = getattr(transformers, f"{name}ForCausalLM")(config)

    def losses(device):
        ids = torch.randint(WORDS, (4, TOKENS // 8), device=device)
        return (model(input_ids=ids, labels=ids).loss,)

    return model, losses


def mixtral():
    return causal("Mixtral", num_local_experts=EXPERTS)


def qwen3_moe():
    return causal("Qwen3Moe", num_experts=EXPERTS, num_experts_per_tok=2, moe_intermediate_size=HIDDEN, head_dim=64,
                  decoder_sparse_step=1)


def hit_experts():
    return routed()


def capacity_factor():
    return routed(capacity_factor=1.25)


def switch():
    return routed(chosen=1)


def shared_expert():
    return routed(shared=True)


def graph(name):
    """A network for a graph with edges from nodes to themselves, which are removed."""
    from torch_geometric import nn as layers
    from torch_geometric.utils import remove_self_loops

    nodes = 4000
    model = nn.ModuleList([getattr(layers, name)(WIDTH, 64), getattr(layers, name)(64, 10)])
    edges = numpy.random.default_rng(0).integers(nodes, size=(2, 40_000))
    edges[:, ::7] = edges[:1, ::7]

    def losses(device):
        kept, _ = remove_self_loops(torch.tensor(edges, device=device))
        hidden = model[0](torch.randn(nodes, WIDTH, device=device), kept).relu()
        return (model[1](hidden, kept).square().mean(),)

    return model, losses


def gat():
    return graph("GATConv")


def sage():
    return graph("SAGEConv")


def detection():
    import torchvision

    model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=5)
    boxes = [[10.0, 10, 100, 120], [50, 60, 200, 180], [5, 100, 60, 220]]

    def losses(device):
        images = [torch.rand(3, 240, 240, device=device) for _ in range(2)]
        targets = [{"boxes": torch.tensor(boxes, device=device), "labels": torch.tensor([1, 2, 3], device=device)} for _ in images]
        return tuple(model(images, targets).values())

    return model, losses


def packed():
    """Sentences of several lengths, in one row. The mask of their ends decides which tokens are predicted."""
    model = nn.Sequential(nn.Embedding(WORDS, WIDTH), expert(), nn.Linear(WIDTH, WORDS))
    lengths = [300, 20, 700, 150, 411]

    def losses(device):
        ids = torch.randint(WORDS, (sum(lengths),), device=device)
        sentence = torch.repeat_interleave(torch.arange(len(lengths), device=device), torch.tensor(lengths, device=device))
        kept = (sentence[1:] == sentence[:-1]).nonzero().flatten()
        return (F.cross_entropy(model(ids)[:-1][kept], ids[1:][kept]),)

    return model, losses


def padding():
    """Sentences are padded to the longest one. Only words that are no padding are predicted."""
    model = nn.Sequential(nn.Embedding(WORDS, WIDTH), expert(), nn.Linear(WIDTH, WORDS))
    words = numpy.random.default_rng(0)
    sentences = [words.integers(1, WORDS, length) for length in (30, 500, 120, 333)]
    longest = max(map(len, sentences))

    def losses(device):
        rows = [numpy.pad(sentence, (0, longest - len(sentence))) for sentence in sentences]
        ids = torch.tensor(numpy.stack(rows), device=device)
        mask = ids != 0
        return (F.cross_entropy(model(ids)[mask], ids[mask]),)

    return model, losses


def nms():
    """Boxes that overlap a box with a higher score are left out, and a network gets the others."""
    import torchvision

    model = expert()
    draw = numpy.random.default_rng(0)
    corner = draw.random((4000, 2), dtype="float32") * 200
    boxes = numpy.concatenate([corner, corner + 5 + 10 * draw.random((4000, 2), dtype="float32")], 1)
    scores = draw.random(4000, dtype="float32")

    def losses(device):
        kept = torchvision.ops.nms(torch.tensor(boxes, device=device), torch.tensor(scores, device=device), 0.3)
        return (model(torch.randn(4000, WIDTH, device=device)[kept]).square().mean(),)

    return model, losses


EXPERT_JOBS = (mixtral, qwen3_moe, hit_experts, capacity_factor, switch, shared_expert)
JOBS = {job.__name__: job for job in (*EXPERT_JOBS, gat, sage, detection, packed, padding, nms)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    torch.manual_seed(0)
    model, losses = JOBS[asked.job]()
    model.to(asked.device)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(3):
        sum(losses(asked.device)).backward()
        optimizer.step()
        optimizer.zero_grad()
    if asked.device == "cuda":
        print(torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
