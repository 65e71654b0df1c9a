"""GPT-2 with transformers' Trainer, bf16 autocast. With a file as argument, the change that it holds is applied."""
import runpy
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        tokens = torch.randint(0, 50257, (512,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


def main():
    model = GPT2LMHeadModel(GPT2Config(n_layer=8, n_embd=512, n_head=8))
    if len(sys.argv) > 1:
        runpy.run_path(sys.argv[1])["apply"](model)
    settings = TrainingArguments(output_dir="out", per_device_train_batch_size=8, max_steps=3, bf16=True, report_to="none",
                                 save_strategy="no", logging_steps=10, dataloader_num_workers=0)
    Trainer(model=model, args=settings, train_dataset=Tokens()).train()
    print("peak", torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    main()
