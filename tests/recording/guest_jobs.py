"""Kinds of jobs, as scripts: KINDS has name -> script, which ends with PRELUDE's `end()` if it comes so far. What a job prints
does not depend on the values of tensors, except lines that begin with "loss"."""

import guest_torch_jobs

PRELUDE = """
import gc, os, sys, torch
torch.manual_seed(0)
torch.set_num_threads(1)
device = "cuda" if torch.cuda.is_available() else "cpu"

def make(kind=torch.optim.SGD, width=8):
    net = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 2)).to(device)
    return net, kind(net.parameters(), lr=0.1)

def train(net, optimizer, steps=4, width=8, before=lambda: None):
    for _ in range(steps):
        before()
        optimizer.zero_grad()
        loss = net(torch.ones(4, width, device=device)).square().mean()
        loss.backward()
        optimizer.step()
    print("loss", loss.item().hex(), flush=True)

def end():
    gc.collect()
    print("tensors", sum(isinstance(each, torch.Tensor) for each in gc.get_objects()))
"""

KINDS = {
    # How it uses its process.
    "plain": "train(*make(torch.optim.Adam))",
    "closes_all": """
net, optimizer = make()
os.closerange(3, 1024)
log = open("log", "w")
train(net, optimizer, 8, before=lambda: print("a line of the log", file=log, flush=True))
log.close()
""",
    "closes_streams": """
net, optimizer = make()
for stream in (0, 1, 2):
    os.close(stream)
log = open("log", "w")  # gets the number of the standard input
train_log = open("out", "w")
sys.stdout = train_log
train(net, optimizer)
print(log.fileno(), train_log.fileno(), open("err", "w").fileno(), file=log, flush=True)
train_log.flush()
os._exit(5)
""",
    "own_stdout": """
file = os.open("out", os.O_WRONLY | os.O_CREAT)
os.dup2(file, 1)
train(*make())
""",
    "descriptors": """
net, optimizer = make()
def opened():
    file = os.open("/dev/null", os.O_RDONLY)
    print(file, sorted(os.listdir("/proc/self/fd")))
    os.close(file)
train(net, optimizer, before=opened)
""",
    "few_descriptors": """
import resource
net, optimizer = make()
train(net, optimizer, 2)
resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
train(net, optimizer, 2)
""",
    "umask": """
os.umask(0o777)
train(*make())
print(oct(os.umask(0)))
open("made", "w").close()
print(oct(os.stat("made").st_mode))
""",
    "chdir": """
os.mkdir("inner")
os.chdir("inner")
train(*make())
print(os.path.basename(os.getcwd()))
""",
    "folder_removed": """
os.mkdir("inner")
os.chdir("inner")
os.rmdir("../inner")
train(*make())
""",
    "small_files": """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5, 5))
train(*make(), 6)
""",
    "environment": """
train(*make())
print(sorted(name for name in os.environ if not name.startswith(("TIDEPOOL", "CUDA_", "NVTX_", "PYTHON", "LD_", "TORCH", "TRITON"))))
""",
    "standard_input": "print(sys.stdin.read())\ntrain(*make())",
    "order_of_output": """
net, optimizer = make()
os.dup2(1, 2)
for step in range(4):
    os.write(1, b"out\\n")
    train(net, optimizer, 1)
    os.write(2, b"err\\n")
""",
    # How it ends.
    "exit_code": "train(*make())\nsys.exit(3)",
    "exit_text": "train(*make())\nsys.exit('a reason')",
    "hard_exit": "train(*make())\nos._exit(4)",
    "exception": "train(*make())\nraise ValueError('bad data')",
    "exception_in_step": """
net, optimizer = make()
train(net, optimizer, 3)
net(torch.ones(4, 8, device=device)).square()
raise ValueError('bad data')
""",
    "between_steps": """
net, optimizer = make()
train(net, optimizer, 2)
raise OverflowError('math range error')
""",
    "killed": "import signal\ntrain(*make())\nos.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "import signal\ntrain(*make())\nos.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": """
import signal
try:
    train(*make(), before=lambda: signal.raise_signal(signal.SIGINT))
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(130)
""",
    "at_exit": """
import atexit
atexit.register(print, "first registered")
train(*make())
atexit.register(print, "last registered")
""",
    "except_hook": """
sys.excepthook = lambda kind, value, trace: print("hook", kind.__name__, value)
train(*make())
print(sys.excepthook is not sys.__excepthook__)
""",
    "finalizers": """
class Net(torch.nn.Linear):
    def __del__(self):
        print("net ends")
net = Net(8, 2).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
train(net, optimizer)
del net, optimizer
print("behind it")
""",
    "replaced": """
train(*make())
sys.stdout.flush()
os.execv("/bin/sh", ["sh", "-c", "echo another program; exit 6"])
""",
    # Other processes, threads and signals.
    "forks": """
net, optimizer = make()
train(net, optimizer, 2)
child = os.fork()
if child == 0:
    if device == "cpu":
        train(net, optimizer, 2)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
train(net, optimizer, 2)
""",
    "daemon": """
sys.stdout.flush()
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.close(reader)
    device = "cpu"  # CUDA cannot be used in a forked process
    train(*make())
    os.write(writer, b"done")
    os._exit(0)
os.close(writer)
print(os.read(reader, 4), os.wait()[1])
""",
    "subprocess": """
import subprocess
train(*make(), before=lambda: subprocess.run(["true"], check=True))
print(subprocess.run(["sh", "-c", "echo from sh; exit 3"], capture_output=True, text=True))
""",
    "pool": """
import multiprocessing
net, optimizer = make()
train(net, optimizer, 2)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(abs, [-1, -2, -3]))
train(net, optimizer, 2)
""",
    "workers": """
data = torch.utils.data.TensorDataset(torch.ones(8, 8))
net, optimizer = make()
for batch, in torch.utils.data.DataLoader(data, batch_size=2, num_workers=2):
    train(net, optimizer, 1)
    print(tuple(batch.shape))
""",
    "trains_in_thread": """
import threading
thread = threading.Thread(target=lambda: train(*make()))
thread.start()
thread.join()
print(threading.active_count())
""",
    "threads": """
import concurrent.futures
net, optimizer = make()
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    train(net, optimizer, before=lambda: print(pool.submit(lambda: torch.ones(3).tolist()).result()))
""",
    "asyncio": """
import asyncio
async def main():
    net, optimizer = make()
    for step in range(3):
        await asyncio.sleep(0)
        train(net, optimizer, 1)
asyncio.run(main())
""",
    "own_signals": """
import signal
got = []
before = [str(signal.getsignal(number)) for number in range(1, 32)]
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGTERM):
    signal.signal(number, lambda number, frame: got.append(number))
train(*make(), before=lambda: [os.kill(os.getpid(), number) for number in (10, 12, 15)])
print(len(got), [each for each in before if "Handlers" not in each and "default_int" not in each])
""",
    "timer": """
import signal
ticks = []
signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
train(*make(), 20)
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(ticks) > 0)
""",
    "limits": "import resource\ntrain(*make())\nprint(os.sched_getaffinity(0), os.nice(0), resource.getrlimit(resource.RLIMIT_NOFILE))",
    # How it uses Python.
    "collector": """
gc.disable()
net, optimizer = make()
train(net, optimizer, before=lambda: print(gc.isenabled(), gc.get_threshold(), len(gc.callbacks), gc.garbage))
gc.enable()
""",
    "tracing": """
net, optimizer = make()
sys.setprofile(lambda *_: None)
train(net, optimizer)
print(sys.getprofile() is not None, sys.gettrace())
sys.setprofile(None)
""",
    "recursion": """
class Deep(torch.nn.Module):
    def forward(self, x, depth=60):
        return x * 1.0 if depth == 0 else self.forward(x, depth - 1)
net, optimizer = make()
net.append(Deep())
train(net, optimizer)
print(sys.getrecursionlimit())
""",
    "random": """
import random
random.seed(0)
train(*make(), before=lambda: print(random.random(), float(torch.rand(1, generator=torch.Generator().manual_seed(1)))))
print("loss", torch.random.get_rng_state().sum().item())
""",
    "warnings": """
import warnings
warnings.simplefilter("error")
train(*make(torch.optim.Adam))
print(len(warnings.filters))
""",
    **guest_torch_jobs.KINDS,
}
