"""Kinds of jobs that use PyTorch in different ways. They begin with PRELUDE of guest_jobs.py."""

KINDS = {
    "lifetimes": """
import weakref
net, optimizer = make(torch.optim.Adam)
train(net, optimizer)
gone = [weakref.ref(each) for each in (net, optimizer, net[0].weight, next(iter(optimizer.state.values()))["exp_avg"])]
del net, optimizer
gc.collect()
print([reference() is not None for reference in gone])
""",
    "folds": """
for fold in range(3):
    net, optimizer = make(torch.optim.Adam)
    train(net, optimizer)
    del net, optimizer
    end()
""",
    "kept_folds": "kept = []\nfor width in (4, 8, 16):\n    kept.append(make(width=width))\n    train(*kept[-1], 6, width)",
    "late_optimizer": """
net, optimizer = make()
train(net, optimizer, 3)
train(net, torch.optim.Adam(net.parameters()), 6)
""",
    "dispatch_mode": """
from torch.utils._python_dispatch import TorchDispatchMode
class Count(TorchDispatchMode):
    calls = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Count.calls += 1
        return func(*args, **(kwargs or {}))
net, optimizer = make()
for step in range(4):
    with Count():
        train(net, optimizer, 1)
    print("loss", Count.calls)  # it depends on the device
""",
    "function_mode": """
from torch.overrides import TorchFunctionMode
class Count(TorchFunctionMode):
    calls = 0
    def __torch_function__(self, func, types, args=(), kwargs=None):
        Count.calls += 1
        return func(*args, **(kwargs or {}))
net, optimizer = make()
with Count():
    train(net, optimizer)
print("loss", Count.calls)
""",
    "saved_tensor_hooks": """
packed = []
net, optimizer = make()
with torch.autograd.graph.saved_tensors_hooks(lambda x: packed.append(tuple(x.shape)) or x, lambda x: x):
    train(net, optimizer)
print(packed)
""",
    "pickles": """
import copy, pickle
net, optimizer = make(torch.optim.Adam)
train(net, optimizer, before=lambda: print(len(optimizer._optimizer_step_pre_hooks), len(optimizer._optimizer_step_post_hooks),
                                           len(net._forward_hooks), len(net._forward_pre_hooks)))
print(sorted(pickle.loads(pickle.dumps(optimizer.state_dict()))), sorted(optimizer.__getstate__()))
train(*(copied := copy.deepcopy((net, optimizer))), 2)
""",
    "whole_pickle": """
import pickle
class Own(torch.optim.SGD):
    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if "hooks" not in name or value}
net, optimizer = make(Own)
train(net, optimizer)
print(sorted(name for name in optimizer.__getstate__()), type(pickle.loads(pickle.dumps(optimizer.__getstate__()))))
""",
    "checkpoint_file": """
net, optimizer = make(torch.optim.Adam)
train(net, optimizer, 3)
torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, "made.pt")
net, optimizer = make(torch.optim.Adam)
loaded = torch.load("made.pt")
net.load_state_dict(loaded["net"])
optimizer.load_state_dict(loaded["optimizer"])
train(net, optimizer, 3)
os.remove("made.pt")  # its bytes depend on the device
""",
    "own_optimizer": """
class Own(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter -= group["lr"] * parameter.grad
train(*make(Own))
""",
    "own_equality": """
class Own(torch.optim.SGD):
    def __eq__(self, other):
        return isinstance(other, Own)
class Net(torch.nn.Linear):
    def __eq__(self, other):
        return True
    __hash__ = None
net, optimizer = make(Own)
train(net, optimizer)
""",
    "own_function": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        print(tuple(ctx.saved_tensors[0].shape))
        return gradient * 2
class Layer(torch.nn.Module):
    def forward(self, x):
        return Double.apply(x)
net, optimizer = make()
net.append(Layer())
train(net, optimizer)
""",
    "module_hooks": """
net, optimizer = make()
import warnings
warnings.simplefilter("ignore")  # the line that a warning names depends on the thread of the backward pass
net[0].register_forward_hook(lambda *_: print("forward"))
net[0].register_full_backward_hook(lambda *_: print("backward"))
net[0].weight.register_hook(lambda gradient: print("gradient", tuple(gradient.shape)))
optimizer.register_step_pre_hook(lambda *_: print("before the step"))
optimizer.register_step_post_hook(lambda *_: print("behind the step"))
train(net, optimizer)
""",
    "failing_hook": """
net, optimizer = make()
train(net, optimizer, 3)
def fail(*_):
    raise KeyError("mine")
hook = net[0].register_forward_hook(fail)
try:
    train(net, optimizer, 1)
except KeyError as error:
    print("caught", error)
hook.remove()
train(net, optimizer, 2)
""",
    "autocast": """
net, optimizer = make()
with torch.autocast(device, dtype=torch.bfloat16):
    train(net, optimizer)
""",
    "closures": """
net, _ = make()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
def closure():
    optimizer.zero_grad()
    loss = net(torch.ones(4, 8, device=device)).square().mean()
    loss.backward()
    return loss
print("loss", [optimizer.step(closure).item() for _ in range(4)])
""",
    "two_optimizers": """
first, second = make(), make(torch.optim.Adam)
for _ in range(3):
    train(*first, 1)
    train(*second, 1)
""",
    "accumulates": """
net, optimizer = make()
for step in range(12):
    net(torch.ones(4, 8, device=device)).square().mean().backward()
    if step % 3 == 2:
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
""",
    "schedule": """
net, optimizer = make()
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
train(net, optimizer, before=lambda: (optimizer.step(), schedule.step(), print(schedule.get_last_lr())))
""",
    "recomputes": """
from torch.utils.checkpoint import checkpoint
class Recomputing(torch.nn.Sequential):
    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)
net, _ = make()
net = Recomputing(net)
train(net, torch.optim.SGD(net.parameters(), lr=0.1))
""",
    "average": """
net, optimizer = make()
average = torch.optim.swa_utils.AveragedModel(net)
train(net, optimizer, before=lambda: average.update_parameters(net))
""",
    "evaluates": """
net, optimizer = make()
@torch.no_grad()
def evaluate():
    net.eval()
    print("loss", sum(net(torch.ones(2, 8, device=device)).sum().item() for _ in range(5)))
    net.train()
train(net, optimizer, before=evaluate)
""",
    "sparse": """
net = torch.nn.Embedding(8, 4, sparse=True).to(device)
optimizer = torch.optim.SparseAdam(net.parameters())
for _ in range(4):
    optimizer.zero_grad()
    net(torch.zeros(2, dtype=torch.long, device=device)).sum().backward()
    optimizer.step()
""",
    "lengths": """
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
lstm, net = torch.nn.LSTM(8, 8).to(device), torch.nn.Linear(8, 4).to(device)
optimizer = torch.optim.SGD([*lstm.parameters(), *net.parameters()], lr=0.1)
x, mask = torch.ones(64, 16, 8, device=device), torch.ones(16, 64, dtype=torch.bool, device=device)
labels = torch.ones(16, 2, dtype=torch.long, device=device)
for _ in range(8):
    steps, words = mask.sum(1), (labels > 0).sum(1)
    hidden, _ = pad_packed_sequence(lstm(pack_padded_sequence(x, torch.full((16,), 64)))[0])
    guess = net(hidden).log_softmax(2)
    with torch.backends.cudnn.flags(enabled=False):
        loss = torch.nn.functional.ctc_loss(guess, labels, steps, words)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex(), [tuple(each.shape) for each in torch.tensor_split(guess, torch.tensor([2, 4]))])
""",
    "double_backward": """
net, optimizer = make()
for _ in range(4):
    x = torch.ones(4, 8, device=device, requires_grad=True)
    gradient, = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    optimizer.zero_grad()
    gradient.square().sum().backward(inputs=list(net.parameters()))
    optimizer.step()
""",
    "functional": """
from torch.func import functional_call, grad
net, optimizer = make()
x = torch.ones(4, 8, device=device)
gradients = grad(lambda parameters: functional_call(net, parameters, (x,)).square().mean())(dict(net.named_parameters()))
print({name: tuple(each.shape) for name, each in gradients.items()})
train(net, optimizer)
""",
    "subclass": """
class Own(torch.Tensor):
    pass
net, optimizer = make()
for _ in range(4):
    out = net(torch.ones(4, 8, device=device).as_subclass(Own))
    print(type(out).__name__)
    out.square().mean().backward()
    optimizer.step()
""",
    "profiler": """
net, optimizer = make()
train(net, optimizer, 3)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
    torch.ones(3).add(1)
print({event.name for event in profile.events()} > {"aten::add", "aten::ones"})
""",
    "double": "torch.set_default_dtype(torch.float64)\ntrain(*make())",
    "anomaly": "with torch.autograd.set_detect_anomaly(True):\n    train(*make())",
    "only_forward": "net, _ = make()\nprint(tuple(net(torch.ones(4, 8, device=device)).shape))",
    "by_hand": """
net, _ = make()
for _ in range(3):
    gradients = torch.autograd.grad(net(torch.ones(4, 8, device=device)).sum(), list(net.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(net.parameters(), gradients):
            parameter -= 0.1 * gradient
""",
}
