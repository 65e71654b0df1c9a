"""Small inputs for the scripts of public_table.py, in the forms that those scripts read: public_inputs.py FOLDER.

Contents are random: what a script allocates depends on their sizes only.
"""

import gzip
import json
import pathlib
import pickle
import random
import struct
import sys

import numpy as np

WORDS = "the sea pool tide moon rock crab wave sand star fish deep".split()


def digits(folder, train=512, test=64):
    """MNIST."""
    draw, raw = np.random.default_rng(0), folder / "MNIST/raw"
    raw.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", train), ("t10k", test)):
        pictures = struct.pack(">IIII", 2051, count, 28, 28) + draw.integers(0, 255, count * 784, dtype=np.uint8).tobytes()
        labels = struct.pack(">II", 2049, count) + draw.integers(0, 10, count, dtype=np.uint8).tobytes()
        for file, content in ((f"{name}-images-idx3-ubyte", pictures), (f"{name}-labels-idx1-ubyte", labels)):
            (raw / file).write_bytes(content)
            (raw / f"{file}.gz").write_bytes(gzip.compress(content))


def pictures(folder, classes=2, count=8, size=64):
    """A folder of pictures for each class."""
    from PIL import Image

    draw = np.random.default_rng(0)
    for name in range(classes):
        (folder / f"c{name}").mkdir(parents=True, exist_ok=True)
        for i in range(count):
            Image.fromarray(draw.integers(0, 255, (size, size, 3), dtype=np.uint8)).save(folder / f"c{name}/{i}.jpg")


def boxes(folder, count=16, size=64):
    """Pictures with two boxes each, as COCO. A mirror moves the boxes to the same places."""
    from PIL import Image

    draw = np.random.default_rng(0)
    for part in ("train2017", "val2017"):
        (folder / part).mkdir(parents=True, exist_ok=True)
        images, objects = [], []
        for i in range(count):
            Image.fromarray(draw.integers(0, 255, (size, size, 3), dtype=np.uint8)).save(folder / part / f"{i}.jpg")
            images.append({"id": i, "file_name": f"{i}.jpg", "height": size, "width": size})
            for x, y, width, height in ((4, 20, 26, 22), (size - 30, 20, 26, 22)):
                objects.append({"id": len(objects) + 1, "image_id": i, "category_id": 1 + i % 3, "bbox": [x, y, width, height],
                                "area": width * height, "iscrowd": 0,
                                "segmentation": [[x, y, x + width, y, x + width, y + height, x, y + height]]})
        write(folder / f"annotations/instances_{part}.json", json.dumps({
            "info": {}, "images": images, "annotations": objects,
            "categories": [{"id": i, "name": WORDS[i]} for i in range(1, 4)]}))


def lines(count, seed=0):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=20)) for _ in range(count)]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def rows(path, entries):
    write(path, "".join(json.dumps(entry) + "\n" for entry in entries))


def citations(folder, nodes=900, train=140, test=100):
    """Cora, as Planetoid's files."""
    import scipy.sparse

    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    features = scipy.sparse.csr_matrix((draw.random((nodes, 64)) < 0.1).astype("float32"))
    classes = np.eye(7, dtype="int32")[draw.integers(0, 7, nodes)]
    known = nodes - test
    parts = {"x": features[:train], "y": classes[:train], "allx": features[:known], "ally": classes[:known],
             "tx": features[known:], "ty": classes[known:],
             "graph": {i: [int(j) for j in draw.integers(0, nodes, 4)] for i in range(nodes)}}
    for name, part in parts.items():
        (folder / f"ind.cora.{name}").write_bytes(pickle.dumps(part))
    write(folder / "ind.cora.test.index", "\n".join(map(str, draw.permutation(np.arange(known, nodes)))) + "\n")


def letters(folder):
    """nanoGPT's characters."""
    text = "\n".join(lines(200))
    number = {letter: i for i, letter in enumerate(sorted(set(text)))}
    content = np.array([number[letter] for letter in text], dtype=np.uint16)
    for name in ("train.bin", "val.bin"):
        content.tofile(folder / name)
    names = {"vocab_size": len(number), "itos": {i: letter for letter, i in number.items()}, "stoi": number}
    (folder / "meta.pkl").write_bytes(pickle.dumps(names))


def speech(folder, count=32, rate=16_000):
    """Half a second of noise with two words of four letters each, and a measure of errors, which is not used."""
    import soundfile

    draw = np.random.default_rng(0)
    (folder / "train").mkdir(parents=True, exist_ok=True)
    for i in range(count):
        soundfile.write(folder / f"train/{i}.wav", draw.normal(0, 0.1, rate // 2).astype("float32"), rate)
    rows(folder / "train/metadata.jsonl", [{"file_name": f"{i}.wav", "text": " ".join(draw.choice(WORDS[2:], 2))} for i in range(count)])
    write(folder.parent / "wer/wer.py", "import datasets\nimport evaluate\n\n\nclass Errors(evaluate.Metric):\n    def _info(self):\n"
          "        return evaluate.MetricInfo(description='', citation='', features=datasets.Features(\n"
          "            {name: datasets.Value('string') for name in ('predictions', 'references')}))\n\n"
          "    def _compute(self, predictions, references):\n        return 0.0\n")


def speech_model(cache, name):
    """A wav2vec 2.0 of two layers, in a cache of the hub."""
    import torch
    from transformers import Wav2Vec2Config, Wav2Vec2FeatureExtractor, Wav2Vec2Model

    folder = cache / f"models--{name.replace('/', '--')}/snapshots/0"
    write(folder.parents[1] / "refs/main", "0")
    torch.manual_seed(0)
    Wav2Vec2Model(Wav2Vec2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, conv_dim=(32,) * 7,
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2)).save_pretrained(folder)
    Wav2Vec2FeatureExtractor(return_attention_mask=True).save_pretrained(folder)


def language_model(folder):
    """A Llama of three layers with its tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = Tokenizer(models.BPE(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.train_from_iterator(lines(200), trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>", "<s>", "</s>", "<pad>"]))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
                                        pad_token="<pad>")
    tokenizer.chat_template = "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} </s>{% endfor %}"
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=320, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=3)
    LlamaForCausalLM(config).save_pretrained(folder)


def diffusion(folder):
    """A latent diffusion model of two levels with its text encoder."""
    import torch
    from diffusers import AutoencoderKL, DDPMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    alphabet = [chr(ord("a") + i) for i in range(26)]
    names = ["<|startoftext|>", "<|endoftext|>", *alphabet, *(f"{letter}</w>" for letter in alphabet)]
    write(folder / "vocab.json", json.dumps({name: i for i, name in enumerate(names)}))
    write(folder / "merges.txt", "#version: 0.2\n")
    tokenizer = CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=16)
    torch.manual_seed(0)
    text = CLIPTextModel(CLIPTextConfig(
        vocab_size=64, hidden_size=32, intermediate_size=37, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=16, bos_token_id=0, eos_token_id=1, pad_token_id=1))
    latents = AutoencoderKL(block_out_channels=(32, 32), down_block_types=("DownEncoderBlock2D",) * 2,
                            up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4)
    net = UNet2DConditionModel(block_out_channels=(32, 64), sample_size=32, in_channels=4, out_channels=4, cross_attention_dim=32,
                               down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                               up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"))
    StableDiffusionPipeline(
        vae=latents, text_encoder=text, tokenizer=tokenizer, unet=net, scheduler=DDPMScheduler(), safety_checker=None,
        feature_extractor=None, requires_safety_checker=False).save_pretrained(folder)


def make(folder):
    folder = pathlib.Path(folder)
    data, text = folder / "inputs", lines(132)
    digits(folder / "examples/data")
    digits(folder / "pytorch-lightning/examples/Datasets", train=60_000)  # the script splits so many
    digits(folder / "pytorch-lightning/examples/pytorch/basics/data")
    for part in ("train", "valid", "test"):
        write(folder / f"examples/word_language_model/data/small/{part}.txt", "\n".join(lines(60, part)) + "\n")
    letters(folder / "nanoGPT/data/shakespeare_char")
    pictures(data / "pictures")
    for part in ("train", "validation"):
        pictures(data / f"classes/{part}", count=16)
    pictures(data / "captions", classes=1)
    rows(data / "captions/metadata.jsonl", [{"file_name": f"c0/{i}.jpg", "text": text[i]} for i in range(8)])
    write(data / "unet.json", json.dumps({
        "_class_name": "UNet2DModel", "sample_size": 32, "in_channels": 3, "out_channels": 3, "layers_per_block": 1,
        "block_out_channels": [32, 64], "norm_num_groups": 32, "down_block_types": ["DownBlock2D", "AttnDownBlock2D"],
        "up_block_types": ["AttnUpBlock2D", "UpBlock2D"]}))
    rows(data / "instructions/train.jsonl", [{"instruction": a, "input": "", "output": b} for a, b in zip(text[:48], text[48:])])
    rows(data / "chats/train.jsonl", [{"messages": [{"role": "user", "content": a}, {"role": "assistant", "content": b}]}
                                      for a, b in zip(text[:32], text[50:])])
    rows(data / "choices/train.jsonl", [{"prompt": a, "chosen": b, "rejected": c}
                                        for a, b, c in zip(text[:32], text[50:], text[100:])])
    boxes(data / "boxes")
    speech(data / "speech")
    speech_model(data / "hub", "small/wav2vec2")
    rows(data / "sentences/train.json", [{"text": line} for line in text])
    citations(folder / "pytorch_geometric/data/Planetoid/Cora/raw")
    language_model(data / "llama")
    diffusion(data / "diffusion")


if __name__ == "__main__":
    make(sys.argv[1])
