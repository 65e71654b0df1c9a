"""Twenty-five training scripts, of five models and five loops, and edits of them that cost memory.

Every script has the lines that the edits change. An edit has replacements of text, and parts of lines, one of which must be
named: a line that the edit added or changed, or one that makes the buffers that it is about.
"""

import dataclasses

HEAD = '''\
import copy
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
dev = "cuda"


'''
# Each model: classes with Net, the inputs x and y, and the loss. All have the lines of COMMON.
MODELS = {
    "blocks": ('''\
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.ln, self.fc1, self.fc2 = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        h = self.fc1(self.ln(x))
        h = F.gelu(h)
        return x + self.fc2(h)


class Net(nn.Module):
    def __init__(self, d=128, v=1000):
        super().__init__()
        self.first = nn.Embedding(v, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(3))
        self.head = nn.Linear(d, v)

    def forward(self, x):
        h = self.first(x)
        for b in self.blocks:
            h = checkpoint(b, h, use_reentrant=False)
        return self.head(h)
''', "torch.randint(0, 1000, (batch, 64), device=dev)", "torch.randint(0, 1000, (batch, 64), device=dev)",
               "F.cross_entropy(out.view(-1, 1000), y.view(-1))"),
    "convolutions": ('''\
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(d, 2 * d, 3, padding=1), nn.Conv2d(2 * d, d, 1)

    def forward(self, x):
        h = self.conv1(x)
        h = F.gelu(h)
        return x + self.conv2(h)


class Net(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.first = nn.Conv2d(3, d, 3, padding=1)
        self.blocks = nn.ModuleList(Block(d) for _ in range(3))
        self.head = nn.Linear(d, 1000)

    def forward(self, x):
        h = self.first(x)
        for b in self.blocks:
            h = checkpoint(b, h, use_reentrant=False)
        return self.head(h.flatten(2).transpose(1, 2))
''', "torch.rand(batch, 3, 16, 16, device=dev)", "torch.randint(0, 1000, (batch, 256), device=dev)",
                     "F.cross_entropy(out.view(-1, 1000), y.view(-1))"),
    "attention": ('''\
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        h = q @ k.transpose(1, 2) / 8
        h = F.gelu(h)
        return x + self.out(h @ v)


class Net(nn.Module):
    def __init__(self, d=128):
        super().__init__()
        self.first = nn.Linear(32, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(3))
        self.head = nn.Linear(d, 500)

    def forward(self, x):
        h = self.first(x)
        for b in self.blocks:
            h = checkpoint(b, h, use_reentrant=False)
        return self.head(h)
''', "torch.rand(batch, 64, 32, device=dev)", "torch.rand(batch, 64, 500, device=dev)", "F.mse_loss(out, y)"),
    "recurrence": ('''\
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gates, self.out = nn.Linear(2 * d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        state = torch.zeros_like(x[:, 0])
        states = []
        for t in range(x.shape[1]):
            h = self.gates(torch.cat([x[:, t], state], -1))
            h = F.gelu(h)
            state = self.out(h)
            states.append(state)
        return x + torch.stack(states, 1)


class Net(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.first = nn.Linear(16, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(2))
        self.head = nn.Linear(d, 800)

    def forward(self, x):
        h = self.first(x)
        for b in self.blocks:
            h = checkpoint(b, h, use_reentrant=False)
        return self.head(h)
''', "torch.rand(batch, 6, 16, device=dev)", "torch.rand(batch, 6, 800, device=dev)", "F.smooth_l1_loss(out, y)"),
    "autoencoder": ('''\
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.up, self.down = nn.BatchNorm1d(d), nn.Linear(d, 3 * d), nn.Linear(3 * d, d)

    def forward(self, x):
        h = self.up(self.norm(x))
        h = F.gelu(h)
        return x + self.down(h)


class Net(nn.Module):
    def __init__(self, d=256):
        super().__init__()
        self.first = nn.Linear(2000, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(3))
        self.head = nn.Linear(d, 2000)

    def forward(self, x):
        h = self.first(x)
        for b in self.blocks:
            h = checkpoint(b, h, use_reentrant=False)
        return self.head(h)
''', "torch.rand(16 * batch, 2000, device=dev)", "torch.rand(16 * batch, 2000, device=dev)", "F.mse_loss(out, y)"),
}
# Each loop: what comes before it, the forward and backward passes of a step, and the update.
LOOPS = {
    "plain": ("", '''\
    opt.zero_grad()
    out = model(x)
    loss = LOSS
    loss.backward()
''', ""),
    "teacher": ("teacher = copy.deepcopy(model)\n", '''\
    opt.zero_grad()
    out = model(x)
    with torch.no_grad():
        target = teacher(x)
    loss = LOSS + F.mse_loss(out, target)
    loss.backward()
''', ""),
    "accumulation": ("", '''\
    opt.zero_grad()
    for part in range(2):
        out = model(x)
        loss = LOSS / 2
        loss.backward()
''', ""),
    "clipping": ("", '''\
    opt.zero_grad()
    out = model(x)
    loss = LOSS
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
''', ""),
    "average": ("average = [p.detach().clone() for p in model.parameters()]\n", '''\
    opt.zero_grad()
    out = model(x)
    loss = LOSS
    loss.backward()
''', '''\
    with torch.no_grad():
        for kept_weight, p in zip(average, model.parameters()):
            kept_weight.lerp_(p, 0.01)
'''),
}


def script(model, loop):
    classes, x, y, loss = MODELS[model]
    before, passes, after = LOOPS[loop]
    return (HEAD + classes + f'''

batch = 8
model = Net().to(dev)
{before}opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
kept = []
for step in range(5):
    x = {x}
    y = {y}
{passes.replace("LOSS", loss)}    opt.step()
{after}    print(loss.item())
''')


@dataclasses.dataclass
class Edit:
    name: str
    replacements: list
    parts: list
    grows: bool = False
    lines: bool = True  # whether a line must be named; else, a text, for what was made before the recorded step: it has no line


BLOCK = ["h = self.fc1", "h = self.conv1", "h = q @", "self.qkv", "h = self.gates", "h = self.up", "F.gelu", "checkpoint("]
EDITS = [
    Edit("larger batch", [("batch = 8", "batch = 13")], ["x = torch", "y = torch"]),
    Edit("lost no_grad", [("    with torch.no_grad():\n        target", "    if True:\n        target")],
         ["target =", "self.head(h)", "self.first(x)", *BLOCK]),
    Edit("clone", [("h = F.gelu(h)", "h = F.gelu(h.clone())")], ["F.gelu(h.clone())"]),
    Edit("lost checkpoint", [("checkpoint(b, h, use_reentrant=False)", "b(h)")], ["b(h)", *BLOCK, "x + self", "self.out(h"]),
    Edit("float64 loss", [("loss.backward()", "(loss + out.double().pow(2).mean() * 0).backward()")], ["out.double()"]),
    Edit("mask that lives longer", [("        h = self.first(x)\n", "        h = self.first(x)\n"
                                     "        self.mask = torch.ones(2 << 20, device=x.device)\n")], ["self.mask ="]),
    Edit("second optimizer", [("kept = []", "second = torch.optim.AdamW(model.parameters(), lr=1e-3)\nkept = []"),
                              ("    opt.step()\n", "    opt.step()\n    second.step()\n")], ["second.step()"]),
    Edit("no foreach", [("lr=1e-3)", "lr=1e-3, foreach=False)")], ["opt.step()"]),
    Edit("foreach of SGD", [("torch.optim.AdamW(model.parameters(), lr=1e-3)",
                             "torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=True)")],
         ["opt.step()", "torch.optim.SGD"]),
    Edit("gradients set to zero", [("opt.zero_grad()", "opt.zero_grad(set_to_none=False)")], ["zero_grad", "opt.step()", "backward()"]),
    Edit("moved zero_grad", [("    opt.zero_grad()\n", ""), ("    opt.step()\n", "    opt.step()\n    opt.zero_grad()\n")],
         ["opt.zero_grad()", "opt.step()", "y = torch", "backward()", "clip_grad_norm_", "lerp_", "zip(average"]),
    Edit("another activation", [("h = F.gelu(h)", "h = h * torch.sigmoid(h)")], ["torch.sigmoid(h)"]),
    Edit("wider head", [("self.head = nn.Linear(d, ", "self.extra = nn.Linear(d, 4 * d)\n        self.head = nn.Linear(4 * d, "),
                        ("return self.head(", "h = self.extra(h)\n        return self.head(")]
         , ["self.extra", "self.head"]),
    Edit("norm of copies", [("    opt.step()\n", "    copies = [p.grad.clone() for p in model.parameters()]\n    opt.step()\n")],
         ["p.grad.clone()"]),
    Edit("softmax of the outputs", [("    opt.step()\n", "    shares = out.float().softmax(-1)\n    opt.step()\n")], ["out.float()"]),
    Edit("copy of the model", [("kept = []", "frozen = copy.deepcopy(model)\nkept = []")], ["Net2."], lines=False),
    Edit("buckets of DDP", [("model = Net().to(dev)\nopt", "torch.distributed.init_process_group("
                             "'nccl', store=torch.distributed.HashStore(), rank=0, world_size=1)\n"
                             "model = nn.parallel.DistributedDataParallel(Net().to(dev))\nopt")], ["DistributedDataParallel", "out = model(x)"]),
    Edit("fragmentation only", [("kept = []\n", "kept = []\njunk = [torch.empty(9 << 20, dtype=torch.uint8, device=dev) for _ in "
                                "range(6)]\ndel junk\n")], ["fragmentation"], lines=False),
    Edit("kept loss", [("    print(loss.item())", "    kept.append(loss)")],
         ["kept.append", "loss =", "self.head(h)", "self.first(x)", *BLOCK, "return self.head", "out ="], grows=True),
    Edit("kept outputs", [("    print(loss.item())", "    kept.append(out)")],
         ["kept.append", "self.head(", "self.first(x)", *BLOCK], grows=True),
    Edit("cache that grows", [("        return self.head(", "        cache.append(h.detach().clone())\n        return self.head("),
                              ("batch = 8", "cache = []\nbatch = 8")], ["cache.append"], grows=True),
    Edit("kept batches", [("    print(loss.item())", "    kept.append((x, y))")], ["x = torch", "y = torch"], grows=True),
    Edit("kept gradients", [("    opt.step()\n", "    kept.append([p.grad.clone() for p in model.parameters()])\n    opt.step()\n")],
         ["p.grad.clone()"], grows=True),
    Edit("concatenated outputs", [("    print(loss.item())", "    out = out.detach()\n    kept = torch.cat([kept, out]) if step else out")],
         ["torch.cat", "self.head("], grows=True),
    Edit("states of the past", [("    print(loss.item())", "    kept = (out.pow(2).sum() + kept) if step else out.pow(2).sum()")],
         ["kept = (out", "self.head(", "self.first(x)", *BLOCK], grows=True),
]


def edited(text, edit):
    """The script after an edit; none if the edit does not apply."""
    for before, after in edit.replacements:
        if before not in text:
            return None
        text = text.replace(before, after)
    return text


def planted():
    """50 pairs: for each script a text, and two edits of it. All edits come, each about as often as the others."""
    scripts = [(f"{model}, {loop}", script(model, loop)) for model in MODELS for loop in LOOPS]
    changes, growths = [e for e in EDITS if not e.grows], [e for e in EDITS if e.grows]
    at_change, at_growth = 0, 0
    for i, (name, text) in enumerate(scripts):
        chosen = []
        for edits, wanted in ((changes, 1 if i % 2 else 2), (growths, 1 if i % 2 else 0)):
            while wanted:
                at = at_change if edits is changes else at_growth
                edit = edits[at % len(edits)]
                if edits is changes:
                    at_change += 1
                else:
                    at_growth += 1
                if edited(text, edit) is not None:
                    chosen.append(edit)
                    wanted -= 1
        yield name, text, chosen
