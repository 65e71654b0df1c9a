"""A small random job on "cuda", the same for a seed: python3 random_job.py SEED. `settings` has its allocator's settings."""

import copy
import random
import sys

try:
    import torch
    from torch.utils.checkpoint import checkpoint_sequential
except ImportError:  # of a test that asks for settings() alone
    torch = None


def settings(seed):
    """PYTORCH_ALLOC_CONF of a seed's job."""
    return random.Random(-seed).choice([
        "", "", "", "", "expandable_segments:True", "expandable_segments:True,max_split_size_mb:32", "max_split_size_mb:64",
        "max_split_size_mb:24,garbage_collection_threshold:0.5", "roundup_power2_divisions:4",
        "roundup_power2_divisions:[16:1,64:8,>:2]", "garbage_collection_threshold:0.6",
        "max_split_size_mb:32,max_non_split_rounding_mb:24", "per_process_memory_fraction:0.9"])


class Job:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.width = self.draw.choice([256, 512, 1024])
        self.kept = []
        depth = self.draw.randint(2, 5)
        self.model = torch.nn.Sequential(*[layer for _ in range(depth) for layer in (
            torch.nn.Linear(self.width, self.width), torch.nn.GELU())]).cuda()
        self.optimizer = self.optimizer_of(self.model)
        self.forward, self.each_step = self.model, lambda: None

    def optimizer_of(self, model):
        kinds = [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad]
        how = self.draw.choice([{}, {"foreach": False}, {"fused": True}])
        return self.draw.choice(kinds)(model.parameters(), lr=1e-3, **how)

    def batch(self, rows=None):
        return torch.randn(rows or self.draw.choice([512, 1024, 3000, 4096, 8192]), self.width, device="cuda")

    def train(self, steps, rows, parts):
        for _ in range(steps):
            self.optimizer.zero_grad(set_to_none=self.draw.random() < 0.5)
            for _ in range(parts):
                self.forward(self.batch(rows)).square().mean().backward()
            self.optimizer.step()
            self.each_step()

    # Each of these happens in some jobs, before or after the training.

    def evaluate(self):
        with torch.no_grad():
            self.model(self.batch())

    def evaluate_with_graph(self):
        self.kept.append(self.model(self.batch()))

    def keep(self):
        self.kept.append(self.batch())

    def let_go(self):
        self.kept = self.kept[:-1]

    def give_back(self):
        torch.cuda.empty_cache()

    def beside(self):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            made = self.batch()
            self.kept.append(made.square())
        torch.cuda.current_stream().wait_stream(stream)

    def capture(self):
        x, graph = self.batch(), torch.cuda.CUDAGraph()
        with torch.no_grad():
            self.model(x)
            with torch.cuda.graph(graph):
                y = self.model(x)
        self.kept.append((graph, x, y))

    def in_pool(self):
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool), torch.no_grad():
            self.model(self.batch())
        self.kept.append(pool)  # it keeps what it has reserved

    def limit(self):
        torch.cuda.set_per_process_memory_fraction(0.9)

    def evaluate_each_step(self):
        self.each_step = self.evaluate

    def give_back_each_step(self):
        self.each_step = self.give_back

    def checkpoint(self):
        self.forward = lambda x: checkpoint_sequential(self.model, 2, x, use_reentrant=False)

    def autocast(self):
        def forward(x):
            with torch.autocast("cuda", torch.bfloat16):
                return self.model(x).float()

        self.forward = forward

    def average(self):
        average = copy.deepcopy(self.model)

        def update():
            with torch.no_grad():
                for mean, now in zip(average.parameters(), self.model.parameters()):
                    mean.lerp_(now, 0.1)

        self.each_step = update

    def keep_gradients(self):
        self.kept.append([parameter.grad.clone() for parameter in self.model.parameters() if parameter.grad is not None])

    def another_optimizer(self):
        self.optimizer = self.optimizer_of(self.model)

    def adversary(self):
        other = torch.nn.Sequential(torch.nn.Linear(self.width, 4 * self.width), torch.nn.ReLU(),
                                    torch.nn.Linear(4 * self.width, 1)).cuda()
        optimizer = self.optimizer_of(other)
        for _ in range(2):
            for made in (self.model(self.batch()).detach(), self.batch()):
                optimizer.zero_grad()
                other(made).mean().backward()
                optimizer.step()
            self.optimizer.zero_grad()
            other(self.model(self.batch())).mean().backward()
            self.optimizer.step()
        self.kept.append(other)

    def from_host(self):
        stream = torch.cuda.Stream()
        for _ in range(3):
            host = torch.empty(self.draw.choice([700, 5000]), self.width).pin_memory()
            with torch.cuda.stream(stream):
                there = host.to("cuda", non_blocking=True)
            torch.cuda.current_stream().wait_stream(stream)
            there.record_stream(torch.cuda.current_stream())
            with torch.no_grad():
                self.model(there)

    def decode(self):
        with torch.inference_mode():
            cache = torch.zeros(256, 0, self.width, device="cuda")
            for _ in range(self.draw.choice([8, 24])):
                cache = torch.cat([cache, self.model(torch.randn(256, 1, self.width, device="cuda"))], 1)

    def pieces(self):
        """Many tensors of drawn sizes, of which every other one is freed."""
        made = [torch.empty(self.draw.choice([1 << 10, 3 << 18, 5 << 20, 11 << 20, 33 << 20]), dtype=torch.uint8,
                            device="cuda") for _ in range(24)]
        self.kept.append(made[::2])

    def graphed(self):
        graphed, self.rows = copy.deepcopy(self.model), 1024
        self.optimizer = self.optimizer_of(graphed)
        self.forward = torch.cuda.make_graphed_callables(graphed, (self.batch(self.rows),))

    def capture_twice(self):
        """Two graphs that share a pool."""
        pool = None
        for rows in (4096, 1024):
            x, graph = self.batch(rows), torch.cuda.CUDAGraph()
            with torch.no_grad():
                self.model(x)
                with torch.cuda.graph(graph, pool=pool):
                    y = self.model(x)
            pool = graph.pool()
            self.kept.append((graph, x, y))

    def release_graph(self):
        self.kept = [kept for kept in self.kept if not isinstance(kept, tuple)]

    def run(self):
        others = [self.evaluate, self.evaluate_with_graph, self.keep, self.let_go, self.give_back, self.beside, self.capture,
                  self.in_pool, self.limit, self.evaluate_each_step, self.give_back_each_step, self.checkpoint, self.autocast,
                  self.average, self.keep_gradients, self.another_optimizer, self.adversary, self.from_host, self.decode,
                  self.pieces, self.graphed, self.capture_twice, self.release_graph]
        before, after = self.draw.choices(others, k=3), self.draw.choices(others, k=3)
        self.rows, parts = self.draw.choice([None, 1024, 4096]), self.draw.choice([1, 1, 2, 4])
        for each in before:
            each()
        self.train(3, self.rows, parts)
        for each in after:
            each()
        self.train(1, self.rows, parts)


if __name__ == "__main__":
    Job(int(sys.argv[1])).run()
    print(torch.cuda.max_memory_reserved())
