"""One generation by another program in one process, printed as one JSON line: greedy, float32, all
prompts at once, each to exactly --new-tokens tokens.

generate_peers.py --peer transformers|ctranslate2 --model MODEL --input PROMPTS.jsonl
ctranslate2 reads what it converts to MODEL/ctranslate2-generate at the first use.
"""

import argparse
import json
import os
import time
from pathlib import Path

import harness

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--peer", required=True, choices=["transformers", "ctranslate2"])
parser.add_argument("--model", type=Path, required=True)
parser.add_argument("--input", type=Path, required=True)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--new-tokens", type=int, default=64)
args = parser.parse_args()
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(args.threads)
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")

is_gpt2 = json.loads((args.model / "config.json").read_text())["model_type"] == "gpt2"


def load_transformers():
    import torch
    import transformers

    torch.set_num_threads(args.threads)
    kind = transformers.GPT2LMHeadModel if is_gpt2 else transformers.T5ForConditionalGeneration
    model = kind.from_pretrained(args.model, dtype=torch.float32).eval()

    def run(ids):
        longest = max(map(len, ids))
        left = [longest - len(row) if is_gpt2 else 0 for row in ids]
        x = torch.zeros(len(ids), longest, dtype=torch.long)
        mask = torch.zeros_like(x)
        for i, row in enumerate(ids):
            x[i, left[i] : left[i] + len(row)] = torch.tensor(row)
            mask[i, left[i] : left[i] + len(row)] = 1
        with torch.inference_mode():
            out = model.generate(
                input_ids=x,
                attention_mask=mask,
                do_sample=False,
                num_beams=1,
                pad_token_id=0,
                min_new_tokens=args.new_tokens,
                max_new_tokens=args.new_tokens,
            )
        return [row[-args.new_tokens :] for row in out.tolist()]

    return run


def load_ctranslate2():
    import ctranslate2

    folder = args.model / "ctranslate2-generate"
    if not folder.exists():
        ctranslate2.converters.TransformersConverter(str(args.model)).convert(str(folder))
    words = json.loads((args.model / "tokenizer.json").read_text())["model"]["vocab"]
    words = {i: word for word, i in words.items()}
    options = {"compute_type": "float32", "inter_threads": 1, "intra_threads": args.threads}
    length = {"beam_size": 1, "max_batch_size": 0, "batch_type": "examples"}
    if is_gpt2:
        generator = ctranslate2.Generator(str(folder), **options)
        return lambda ids: [
            result.sequences_ids[0]
            for result in generator.generate_batch(
                [[words[i] for i in row] for row in ids],
                min_length=args.new_tokens,
                max_length=args.new_tokens,
                include_prompt_in_result=False,
                **length,
            )
        ]
    translator = ctranslate2.Translator(str(folder), **options)
    return lambda ids: [
        result.hypotheses[0]
        for result in translator.translate_batch(
            [[words[i] for i in row] for row in ids],
            min_decoding_length=args.new_tokens,
            max_decoding_length=args.new_tokens,
            **length,
        )
    ]


ids = harness.read_ids(args.input)
run = {"transformers": load_transformers, "ctranslate2": load_ctranslate2}[args.peer]()
run(ids[:2])  # warm-up
since = time.perf_counter()
results = run(ids)
seconds = time.perf_counter() - since
new_tokens = sum(map(len, results))
print(json.dumps({"new_tokens_per_second": new_tokens / seconds, "new_tokens": new_tokens}))
