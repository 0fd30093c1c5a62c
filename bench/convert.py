"""Writes the formats that other engines read to MODEL/{onnx,openvino,ctranslate2}, all in float32.
convert.py MODEL [onnx|openvino|ctranslate2 ...]
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
import torch
import transformers


class States(torch.nn.Module):
    """The encoder as a graph: ids and mask in, last hidden state out."""

    def __init__(self, folder, attention):
        super().__init__()
        self.encoder = transformers.AutoModelForTextEncoding.from_pretrained(
            folder, dtype=torch.float32, attn_implementation=attention
        ).eval()

    def forward(self, input_ids, attention_mask):
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def example():
    ids = torch.arange(4, 30).reshape(2, 13)
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    return ids, mask


def to_onnx(folder):
    # eager: the exporter cannot give T5's sdpa path a dynamic length
    axes = {0: torch.export.Dim("batch", max=4096), 1: torch.export.Dim("length", max=40000)}
    out = folder / "onnx"
    out.mkdir(exist_ok=True)
    torch.onnx.export(
        States(folder, "eager").eval(),
        example(),
        out / "model.onnx",
        dynamo=True,
        input_names=["input_ids", "attention_mask"],
        output_names=["states"],
        dynamic_shapes={"input_ids": axes, "attention_mask": axes},
    )


def to_openvino(folder):
    import numpy as np
    import openvino

    with torch.no_grad():
        graph = openvino.convert_model(
            States(folder, "sdpa").eval(),
            example_input=example(),
            input=[("input_ids", [-1, -1], np.int64), ("attention_mask", [-1, -1], np.int64)],
        )
    openvino.save_model(graph, folder / "openvino/model.xml", compress_to_fp16=False)


def to_ctranslate2(folder):
    """CTranslate2 has no T5 encoder of its own: it gets a seq2seq model of this encoder and one
    decoder block of the same shape, and the benchmark asks it for a single step."""
    from ctranslate2.converters import TransformersConverter

    encoder = transformers.AutoModelForTextEncoding.from_pretrained(folder, dtype=torch.float32)
    shape = json.loads((folder / "config.json").read_text())
    shape.update(num_decoder_layers=1, is_encoder_decoder=True, decoder_start_token_id=0)
    full = transformers.T5ForConditionalGeneration(transformers.T5Config(**shape))
    full.load_state_dict(encoder.state_dict(), strict=False)
    with tempfile.TemporaryDirectory() as source:
        full.save_pretrained(source)
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(source)
        TransformersConverter(source).convert(str(folder / "ctranslate2"), force=True)


FORMATS = {"onnx": to_onnx, "openvino": to_openvino, "ctranslate2": to_ctranslate2}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("formats", nargs="*", default=list(FORMATS))
    args = parser.parse_args()
    for name in args.formats:
        FORMATS[name](args.model)
        print(f"{args.model / name}: written")
