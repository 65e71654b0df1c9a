"""Jobs whose number of iterations is known: `iteration_jobs.py KIND ITERATIONS ACCUMULATED LOGGED`.

ACCUMULATED micro-batches are one step; every LOGGED steps a log is written. Evaluations have no steps: their iterations are
batches."""

import logging
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

BATCH, WIDTH, CLASSES = 8, 64, 10


def network():
    return nn.Sequential(nn.Linear(WIDTH, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 128), nn.GELU(), nn.Dropout(0.1),
                         nn.Linear(128, CLASSES))


def batch(device):
    return torch.randn(BATCH, WIDTH).to(device), torch.randint(0, CLASSES, (BATCH,)).to(device)


def loop(steps, accumulated, logged, device):
    """A log is of the norms of all gradients and weights; it needs more kernels than a step."""
    model = network().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        for _ in range(accumulated):
            images, labels = batch(device)
            F.cross_entropy(model(images), labels).backward()
        if step % logged == logged - 1:
            for tensors in ([weight.grad for weight in model.parameters()], [weight.detach() for weight in model.parameters()]):
                print(step, torch.stack([tensor.norm() for tensor in tensors]).norm().item())
        optimizer.step()
        optimizer.zero_grad()


@torch.no_grad()
def evaluation(batches, _, logged, device):
    model = network().to(device).eval()
    right = 0
    for number in range(batches):
        images, labels = batch(device)
        right = right + (model(images).argmax(1) == labels).sum()
        if number % logged == logged - 1:
            print(number, (right.float() / (BATCH * (number + 1))).item())


def lightning(steps, accumulated, logged, device):
    import lightning as framework

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Classifier(framework.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = network()

        def training_step(self, each, _index):
            images, labels = each
            output = self.model(images)
            loss = F.cross_entropy(output, labels)
            self.log("loss", loss)
            self.log("accuracy", (output.argmax(1) == labels).float().mean())
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    count = BATCH * steps * accumulated
    data = torch.utils.data.TensorDataset(torch.randn(count, WIDTH), torch.randint(0, CLASSES, (count,)))
    with tempfile.TemporaryDirectory() as folder:
        trainer = framework.Trainer(max_epochs=1, accelerator="gpu" if device == "cuda" else "cpu", devices=1,
                                    logger=framework.pytorch.loggers.CSVLogger(folder), accumulate_grad_batches=accumulated,
                                    log_every_n_steps=logged, enable_checkpointing=False, enable_progress_bar=False,
                                    enable_model_summary=False)
        trainer.fit(Classifier(), torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True))


def transformers(steps, accumulated, logged, device):
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    tokens = [{"input_ids": row, "labels": row} for row in torch.randint(0, 500, (BATCH * steps * accumulated, 32))]
    model = GPT2LMHeadModel(GPT2Config(n_layer=3, n_embd=64, n_head=4, vocab_size=500, n_positions=64, bos_token_id=0,
                                       eos_token_id=0))
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(output_dir=folder, per_device_train_batch_size=BATCH, max_steps=steps, report_to="none",
                                     gradient_accumulation_steps=accumulated, logging_steps=logged, save_strategy="no",
                                     use_cpu=device == "cpu", disable_tqdm=True)
        Trainer(model=model, args=settings, train_dataset=tokens).train()


def peft(steps, accumulated, logged, device):
    """LoRA in a loop of accelerate."""
    from accelerate import Accelerator
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    accelerator = Accelerator(gradient_accumulation_steps=accumulated, cpu=device == "cpu")
    model = LlamaForCausalLM(LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=3, vocab_size=500,
                                         num_attention_heads=4, num_key_value_heads=2, use_cache=False))
    model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.1))
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad])
    tokens = torch.utils.data.TensorDataset(torch.randint(0, 500, (BATCH * steps * accumulated, 32)))
    model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(tokens, batch_size=BATCH))
    for number, (each,) in enumerate(loader):
        with accelerator.accumulate(model):
            loss = model(input_ids=each, labels=each).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        if (number + 1) % (accumulated * logged) == 0:
            print(number, loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    globals()[sys.argv[1]](*map(int, sys.argv[2:]), "cuda" if torch.cuda.is_available() else "cpu")
