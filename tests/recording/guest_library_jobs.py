"""Kinds of jobs that begin with a library, and only then import torch, if they do so at all: KINDS has name -> script, as in
guest_jobs.py."""

import importlib.util
import re

_BEGIN = """
import warnings
warnings.simplefilter("ignore")
import os
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1", HF_DATASETS_CACHE="cache", HF_HOME="cache")
"""
_TORCH = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
device = "cuda" if torch.cuda.is_available() else "cpu"
def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex())
"""
_LLAMA = """
config = transformers.LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
                                  num_key_value_heads=2)
"""
_ROWS = """
rows = datasets.Dataset.from_dict({"input_ids": [[i % 7, 1, 2, 3] for i in range(32)], "labels": [[i % 7, 1, 2, 3] for i in range(32)]})
"""
_TRAINER = """
arguments = dict(output_dir="out", max_steps=8, per_device_train_batch_size=4, report_to=[], save_strategy="no", logging_steps=100,
                 use_cpu=device == "cpu", disable_tqdm=True)
def report(trainer):
    trainer.remove_callback(transformers.PrinterCallback)  # it prints times
    trainer.train()
    print("steps", trainer.state.global_step)
    print("loss", trainer.state.log_history[-1]["train_loss"].hex())
"""
_NET = """
net = torch.nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
_PLAIN = _TORCH + _NET + """
for _ in range(6):
    step(optimizer, net(torch.ones(3, 4, device=device)).square().mean())
"""


def _indented(script):
    return "\n".join("    " + line for line in script.splitlines())


_SCRIPTS = {
    "transformers": "import transformers\n" + _TORCH + _LLAMA + """
net = transformers.LlamaForCausalLM(config).to(device)
optimizer = torch.optim.AdamW(net.parameters())
ids = torch.ones(2, 8, dtype=torch.long, device=device)
for _ in range(6):
    step(optimizer, net(input_ids=ids, labels=ids).loss)
""",
    "accelerate": "import accelerate\n" + _TORCH + """
device = None
worker = accelerate.Accelerator()
net = torch.nn.Linear(4, 2)
net, optimizer = worker.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1))
for _ in range(6):
    loss = net(torch.ones(3, 4, device=worker.device)).square().mean()
    worker.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item().hex())
""",
    "datasets": "import datasets\n" + _TORCH + _NET + """
rows = datasets.Dataset.from_dict({"x": [[float(i)] * 4 for i in range(18)]}).with_format("torch")
for batch in torch.utils.data.DataLoader(rows, batch_size=3):
    step(optimizer, net(batch["x"].to(device)).square().mean())
""",
    "peft": "import peft, transformers\n" + _TORCH + _LLAMA + """
net = peft.get_peft_model(transformers.LlamaForCausalLM(config), peft.LoraConfig(r=2, target_modules=["q_proj"])).to(device)
optimizer = torch.optim.AdamW([each for each in net.parameters() if each.requires_grad])
ids = torch.ones(2, 8, dtype=torch.long, device=device)
for _ in range(6):
    step(optimizer, net(input_ids=ids, labels=ids).loss)
""",
    "mapped_weights": "import transformers\n" + _TORCH + _LLAMA + """
transformers.LlamaForCausalLM(config).save_pretrained("made")
net = transformers.AutoModelForCausalLM.from_pretrained("made").to(device)
for name in os.listdir("made"):
    os.remove(f"made/{name}")  # bytes that depend on the device
optimizer = torch.optim.AdamW(list(net.lm_head.parameters()))
ids = torch.ones(2, 8, dtype=torch.long, device=device)
for _ in range(6):
    step(optimizer, net(input_ids=ids, labels=ids).loss)
""",
    "trainer": "import datasets, transformers\n" + _TORCH + _LLAMA + _ROWS + _TRAINER + """
report(transformers.Trainer(transformers.LlamaForCausalLM(config), transformers.TrainingArguments(**arguments), train_dataset=rows))
""",
    "trl": "import datasets, trl, transformers, tokenizers\n" + _TORCH + _LLAMA + _ROWS + _TRAINER + """
words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<pad>": 0, "a": 1}, unk_token="<pad>"))
words = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="a")
report(trl.SFTTrainer(transformers.LlamaForCausalLM(config), trl.SFTConfig(bf16=False, **arguments), train_dataset=rows,
                      processing_class=words))
""",
    "lightning": "import lightning, logging\nlogging.getLogger('lightning.pytorch').setLevel('ERROR')\n" + _TORCH + """
class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 2)
    def training_step(self, batch):
        loss = self.inner(batch).square().mean()
        print("loss", loss.item().hex())
        return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
trainer = lightning.Trainer(max_epochs=2, accelerator="gpu" if device == "cuda" else "cpu", devices=1, logger=False,
                            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Net(), torch.utils.data.DataLoader(torch.ones(12, 4), batch_size=3))
print(trainer.global_step)
""",
    "timm": "import timm\n" + _TORCH + """
net = timm.create_model("resnet10t", num_classes=2).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    step(optimizer, net(torch.ones(2, 3, 32, 32, device=device)).square().mean())
""",
    "diffusers": "import diffusers\n" + _TORCH + """
net = diffusers.UNet2DModel(sample_size=8, block_out_channels=(8,), norm_num_groups=4, layers_per_block=1,
                            down_block_types=("DownBlock2D",), up_block_types=("UpBlock2D",)).to(device)
noise = diffusers.DDPMScheduler(num_train_timesteps=10)
optimizer = torch.optim.AdamW(net.parameters())
clean = torch.ones(2, 3, 8, 8, device=device)
for i in range(5):
    when = torch.full((2,), i, device=device)
    step(optimizer, net(noise.add_noise(clean, clean, when), when).sample.square().mean())
""",
    "torch_geometric": "import torch_geometric\n" + _TORCH + """
net = torch_geometric.nn.GCNConv(4, 2).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
edges = torch.tensor([[0, 1, 2], [1, 2, 0]], device=device)
for _ in range(6):
    step(optimizer, net(torch.ones(3, 4, device=device), edges).square().mean())
""",
    "hydra": """
import hydra, omegaconf, sys
@hydra.main(version_base=None, config_path=None)
def main(config):
    print(config.width)
""" + _indented(_PLAIN) + """
sys.argv[1:] = ["+width=4", "hydra.run.dir=out", "hydra.job_logging.disable_existing_loggers=true", "hydra.output_subdir=null"]
main()
""",
    "ray": """
import ray
def train():
""" + _indented(_PLAIN) + """
ray.init(local_mode=True, include_dashboard=False, log_to_driver=False, logging_level="ERROR", num_cpus=1)
print(ray.get(ray.remote(train).remote()))
ray.shutdown()
""",
    "pytest": f"""
import pytest, sys
with open("test_net.py", "w") as file:
    file.write('''
def test_trains():
{_indented(_PLAIN)}
''')
sys.exit(pytest.main(["-qq", "-s", "-p", "no:cacheprovider", "-W", "ignore"]))
""",
    "nbconvert": f"""
import nbconvert
import nbformat, subprocess, sys
cells = [nbformat.v4.new_code_cell({_PLAIN!r})]
nbformat.write(nbformat.v4.new_notebook(cells=cells), "made.ipynb")
subprocess.run([sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--log-level", "ERROR", "made.ipynb", "--output",
                "run.ipynb"], check=True)
for output in nbformat.read("run.ipynb", 4).cells[0].outputs:
    print(output.get("text", ""), end="")
os.remove("made.ipynb"), os.remove("run.ipynb")  # their cells have random names and times
""",
}
KINDS = {name: _BEGIN + script for name, script in _SCRIPTS.items()}


def missing(kind):
    """The first module that a kind begins with and that is not installed, or ""."""
    modules = re.search(r"^import ([\w, ]+)", _SCRIPTS[kind], re.MULTILINE)[1].split(", ")
    return next((module for module in modules if importlib.util.find_spec(module) is None), "")
