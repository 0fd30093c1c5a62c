#!/usr/bin/env python3
"""Writes examples/prott5-tiny: a checkpoint folder of the ProtT5 shape with random weights.

The folder has the files, names, dtypes and odd corners of an encoder-only ProtT5 checkpoint in half
precision (relu, n_heads * d_kv != d_model, 28 pieces and 100 extra ids), and loads wherever such a
checkpoint does. It is for trying the program. Its weights are drawn at random: its embeddings say
nothing about proteins.

    pip install numpy sentencepiece protobuf
    python3 make_prott5_tiny.py [FOLDER]
"""
import json
import pathlib
import struct
import sys

import numpy as np
from sentencepiece import sentencepiece_model_pb2 as spiece

SEED = 20240517
RESIDUES = "ALGVSREDTIPKFQNYMHWCXBOUZ"  # in the order of their ids, from 3
EXTRA_IDS = 100

CONFIG = {
    "architectures": ["T5EncoderModel"],
    "d_ff": 192,
    "d_kv": 16,
    "d_model": 64,
    "decoder_start_token_id": 0,
    "dropout_rate": 0.1,
    "eos_token_id": 1,
    "feed_forward_proj": "relu",
    "initializer_factor": 1.0,
    "is_encoder_decoder": True,
    "layer_norm_epsilon": 1e-06,
    "model_type": "t5",
    "n_positions": 512,
    "num_decoder_layers": 6,
    "num_heads": 6,
    "num_layers": 6,
    "output_past": True,
    "pad_token_id": 0,
    "relative_attention_num_buckets": 32,
    "torch_dtype": "float16",
    "use_cache": True,
    "vocab_size": 3 + len(RESIDUES) + EXTRA_IDS,
}


def make_weights():
    """Name to array, with the spread that T5 is initialised with; norms near 1."""
    random = np.random.Generator(np.random.PCG64(SEED))
    d_model, d_ff, n_heads = CONFIG["d_model"], CONFIG["d_ff"], CONFIG["num_heads"]
    d_inner = n_heads * CONFIG["d_kv"]
    weights = {}

    def normal(name, shape, spread):
        weights[name] = random.normal(0.0, spread, shape)

    def norm(name):
        weights[name] = random.uniform(0.8, 1.2, d_model)

    normal("shared.weight", (CONFIG["vocab_size"], d_model), 1.0)
    for i in range(CONFIG["num_layers"]):
        attention = f"encoder.block.{i}.layer.0.SelfAttention."
        normal(attention + "q.weight", (d_inner, d_model), (d_model * CONFIG["d_kv"]) ** -0.5)
        normal(attention + "k.weight", (d_inner, d_model), d_model**-0.5)
        normal(attention + "v.weight", (d_inner, d_model), d_model**-0.5)
        normal(attention + "o.weight", (d_model, d_inner), d_inner**-0.5)
        if i == 0:
            buckets = CONFIG["relative_attention_num_buckets"]
            normal(attention + "relative_attention_bias.weight", (buckets, n_heads), 1.0)
        norm(f"encoder.block.{i}.layer.0.layer_norm.weight")
        dense = f"encoder.block.{i}.layer.1.DenseReluDense."
        normal(dense + "wi.weight", (d_ff, d_model), d_model**-0.5)
        normal(dense + "wo.weight", (d_model, d_ff), d_ff**-0.5)
        norm(f"encoder.block.{i}.layer.1.layer_norm.weight")
    norm("encoder.final_layer_norm.weight")
    return {name: array.astype("<f2") for name, array in weights.items()}


def write_safetensors(path, weights):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, array in weights.items():
        header[name] = {
            "dtype": "F16",
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in weights.values():
            file.write(array.tobytes())


def write_spiece(path):
    """A unigram vocabulary of one piece per residue letter, each with the mark of a word's start."""
    model = spiece.ModelProto()
    kind = spiece.ModelProto.SentencePiece
    for text, piece_type in (("<pad>", kind.CONTROL), ("</s>", kind.CONTROL), ("<unk>", kind.UNKNOWN)):
        model.pieces.add(piece=text, score=0.0, type=piece_type)
    for rank, residue in enumerate(RESIDUES):
        model.pieces.add(piece="\u2581" + residue, score=-2.0 - 0.125 * rank)
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    trainer.model_type = spiece.TrainerSpec.UNIGRAM
    trainer.vocab_size = len(model.pieces)
    trainer.pad_id, trainer.eos_id, trainer.unk_id, trainer.bos_id = 0, 1, 2, -1
    trainer.pad_piece, trainer.eos_piece, trainer.unk_piece = "<pad>", "</s>", "<unk>"
    normalizer.name = "identity"
    normalizer.add_dummy_prefix = True
    normalizer.remove_extra_whitespaces = True
    normalizer.escape_whitespaces = True
    path.write_bytes(model.SerializeToString(deterministic=True))


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def main():
    default = pathlib.Path(__file__).parent / "prott5-tiny"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    special = {
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "additional_special_tokens": [f"<extra_id_{i}>" for i in range(EXTRA_IDS)],
    }
    write_json(folder / "config.json", CONFIG)
    write_json(folder / "special_tokens_map.json", special)
    tokenizer = {"do_lower_case": False, "extra_ids": EXTRA_IDS, "tokenizer_class": "T5Tokenizer"}
    write_json(folder / "tokenizer_config.json", {**special, **tokenizer})
    write_spiece(folder / "spiece.model")
    write_safetensors(folder / "model.safetensors", make_weights())


if __name__ == "__main__":
    main()
