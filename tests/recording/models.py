"""Six small training jobs with ordinary loops: models.py MODEL [--device cpu|cuda] [--fake TRACE].

With --fake the step is recorded with fake tensors, and the trace is written. The models have no dropout and no fused
attention, and the optimizers use their foreach form. Otherwise PyTorch would run other ops on a CPU than on a GPU, with
other buffers."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

BATCH, SIDE, WORDS, VOCABULARY = 8, 64, 64, 1000


class UNet(nn.Module):
    """A U-Net of three levels. The output of each level on the way down is an input of that level on the way up."""

    def __init__(self, width=16):
        super().__init__()
        widths = [width, 2 * width, 4 * width]
        self.down = nn.ModuleList(self.block(a, b) for a, b in zip([3, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
        self.join = nn.ModuleList(self.block(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, 10, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())

    def forward(self, x):
        kept = []
        for level, layer in enumerate(self.down):
            x = layer(x if level == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([kept.pop(), up(x)], dim=1))
        return self.head(x).mean((2, 3))


class Logits(nn.Module):
    """A model of transformers that gives only its logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x).logits


def resnet50():
    import torchvision

    return torchvision.models.resnet50(num_classes=10)


def vit():
    import transformers

    model = transformers.ViTForImageClassification(transformers.ViTConfig(
        image_size=SIDE, patch_size=8, num_hidden_layers=6, num_attention_heads=4, hidden_size=192, intermediate_size=768,
        num_labels=10, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager"))
    return Logits(model)


def transformer(kind, **settings):
    import transformers

    config = getattr(transformers, f"{kind}Config")(vocab_size=VOCABULARY, use_cache=False, **settings)
    head = {"GPT2": "GPT2LMHeadModel", "Bert": "BertForMaskedLM", "Llama": "LlamaForCausalLM"}[kind]
    config._attn_implementation = "eager"  # the ops of SDPA differ between devices
    return getattr(transformers, head)(config)


def gpt2():
    return transformer("GPT2", n_layer=6, n_embd=192, n_head=4, n_positions=WORDS, resid_pdrop=0.0, embd_pdrop=0.0,
                       attn_pdrop=0.0)


def bert():
    return transformer("Bert", num_hidden_layers=6, hidden_size=192, num_attention_heads=4, intermediate_size=768,
                       hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def llama_lora():
    import peft

    base = transformer("Llama", num_hidden_layers=6, hidden_size=192, num_attention_heads=4, num_key_value_heads=2,
                       intermediate_size=512)
    return peft.get_peft_model(base, peft.LoraConfig(r=8, lora_dropout=0.0, target_modules=["q_proj", "v_proj"]))


# Whether a model reads images, and how it is made.
MODELS = {"resnet50": (True, resnet50), "vit": (True, vit), "unet": (True, UNet), "gpt2": (False, gpt2),
          "bert": (False, bert), "llama_lora": (False, llama_lora)}


def job(name, device):
    """The model, its optimizer, and a step of training."""
    images, make = MODELS[name]
    model = make().train()
    if device != "cpu":
        model.to(device)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3, foreach=True)
    if images:
        batch = torch.randn(BATCH, 3, SIDE, SIDE, device=device)
        labels = torch.randint(10, (BATCH,), device=device)
    else:
        batch = labels = torch.randint(VOCABULARY, (BATCH, WORDS), device=device)
        # A mask decides whether transformers reads values, which a dry run and fake tensors lack.
        given = {} if name == "bert" else {"attention_mask": torch.ones_like(batch)}

    loss = None  # lives until the next step replaces it, as in a loop

    def step():
        nonlocal loss
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), labels) if images else model(batch, labels=labels, **given).loss
        loss.backward()
        optimizer.step()

    return model, optimizer, step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--fake", metavar="TRACE")
    parser.add_argument("--times", default="a100-40gb")
    options = parser.parse_args()
    torch.manual_seed(1)
    if not options.fake:
        _, _, step = job(options.model, options.device)
        for _ in range(4):
            step()
        return
    import tidepool_torch

    made = MODELS[options.model][1]()
    with tidepool_torch.fake_tensors():
        MODELS[options.model] = (MODELS[options.model][0], lambda: tidepool_torch.fake_copy(made))
        model, optimizer, step = job(options.model, "cpu")
        tidepool_torch.record_steps(step, model, optimizer, device=options.times, warmup=2).save(options.fake)


if __name__ == "__main__":
    main()
