"""Makes what the benchmarks run on: seeded random checkpoints in the Hugging Face layout and token
ids. models.py [--work DIR] [NAME...]; without names, all of them. Random weights: these models are
for speed, memory and agreement between programs, not for meaning.
"""

import argparse
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from transformers import T5Config, T5EncoderModel, T5ForConditionalGeneration

import harness

SMALL = dict(vocab_size=32128, d_model=512, d_kv=64, num_heads=8, d_ff=2048, num_layers=6)
DEEP = dict(vocab_size=128, d_model=512, d_kv=64, num_heads=8, d_ff=1024, num_layers=24)
PROTT5 = dict(vocab_size=128, d_model=1024, d_kv=128, num_heads=32, d_ff=16384, num_layers=6)
MODELS = {
    "t5-small-enc": SMALL,  # T5-small's encoder, whole
    "prott5-6L": PROTT5,  # ProtT5-XL's encoder, 6 of its 24 blocks
    "t5-24L": DEEP,  # small, and as deep as the large ones: many ways to share it out
    "prott5-1L": {**PROTT5, "num_layers": 1},  # one block: memory of long sequences elsewhere
}
T5_BASE = dict(vocab_size=32128, d_model=768, d_ff=2048, d_kv=64, num_heads=12, num_layers=12)
DECODERS = {  # name: its model, untrained
    "t5-base": lambda: T5ForConditionalGeneration(
        T5Config(
            **T5_BASE,
            feed_forward_proj="gated-gelu",
            tie_word_embeddings=False,
            decoder_start_token_id=0,
        )
    ),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config()),  # 124M
}


def inputs():
    """Name: sequences of ids. Lengths count the closing </s>."""
    texts = harness.lognormal_lengths(256, 46.5, 0.8, 4, 512)  # mean 64
    proteins = harness.lognormal_lengths(16, 300, 0.7, 30, 1500)
    return {
        "texts": harness.token_ids(texts, 32000),
        "proteins": harness.token_ids(proteins, 23),  # the 20 amino acids
        "long4000": harness.token_ids([4000], 23),
        "long8000": harness.token_ids([8000], 23),
        "prompts": [row[:-1] for row in harness.token_ids([12 + 4 * i for i in range(32)], 32000)],
        "titin": harness.token_ids([34351], 23),  # the longest human protein
    }


def randomize(model):
    """Norms away from 1 and a bias table of size 1, so that a mistake in either shows."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "relative_attention_bias" in name:
                weight.normal_()
            elif "layer_norm" in name:
                weight.normal_(1.0, 0.1)


def save_tokenizer(folder, vocab_size):
    """The word "t17" is id 17: programs that take only text get the same ids."""
    words = ["<pad>", "</s>", "<unk>"] + [f"t{i}" for i in range(3, vocab_size)]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=1_000_000,
    ).save_pretrained(folder)


def encoder(shape):
    return T5EncoderModel(T5Config(**shape, feed_forward_proj="relu", dropout_rate=0.0))


def make(folder, name):
    torch.manual_seed(20)
    model = DECODERS[name]() if name in DECODERS else encoder(MODELS[name])
    randomize(model.eval())
    model.save_pretrained(folder, max_shard_size="100GB")
    save_tokenizer(folder, model.config.vocab_size)
    print(f"{folder}: {sum(p.numel() for p in model.parameters()) / 1e6:.1f} million parameters")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=harness.REPO / "build/bench")
    known = [*MODELS, *DECODERS]
    parser.add_argument("names", nargs="*", default=known, help=f"of {', '.join(known)}")
    args = parser.parse_args()
    if unknown := set(args.names) - set(known):
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(known)}")
    for name in args.names:
        make(args.work / "models" / name, name)
    for name, ids in inputs().items():
        path = harness.write_ids(args.work / "inputs" / f"{name}.jsonl", ids)
        print(f"{path}: {len(ids)} sequences, {sum(map(len, ids))} tokens")
