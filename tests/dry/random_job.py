"""A small random job on "cuda", the same for a seed: python3 random_job.py SEED. `settings` has its allocator's settings."""

import random
import sys

try:
    import torch
except ImportError:  # of a test that asks for settings() alone
    torch = None


def settings(seed):
    """PYTORCH_ALLOC_CONF of a seed's job."""
    return random.Random(-seed).choice(["", "", "", "expandable_segments:True", "max_split_size_mb:64",
                                        "roundup_power2_divisions:4", "garbage_collection_threshold:0.6"])


class Job:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.width = self.draw.choice([256, 512, 1024])
        self.kept = []
        depth = self.draw.randint(2, 5)
        self.model = torch.nn.Sequential(*[layer for _ in range(depth) for layer in (
            torch.nn.Linear(self.width, self.width), torch.nn.GELU())]).cuda()
        kinds = [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW]
        self.optimizer = self.draw.choice(kinds)(self.model.parameters(), lr=1e-3)

    def batch(self, rows=None):
        return torch.randn(rows or self.draw.choice([512, 1024, 3000, 4096, 8192]), self.width, device="cuda")

    def train(self, steps, rows, parts):
        for _ in range(steps):
            self.optimizer.zero_grad(set_to_none=self.draw.random() < 0.5)
            for _ in range(parts):
                self.model(self.batch(rows)).square().mean().backward()
            self.optimizer.step()

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

    def run(self):
        others = [self.evaluate, self.evaluate_with_graph, self.keep, self.let_go, self.give_back, self.beside, self.capture,
                  self.in_pool, self.limit]
        before, after = self.draw.choices(others, k=2), self.draw.choices(others, k=2)
        rows, parts = self.draw.choice([None, 1024, 4096]), self.draw.choice([1, 1, 2, 4])
        for each in before:
            each()
        self.train(3, rows, parts)
        for each in after:
            each()
        self.train(1, rows, parts)


if __name__ == "__main__":
    Job(int(sys.argv[1])).run()
    print(torch.cuda.max_memory_reserved())
