"""Generating against other programs and against what the machine can give: GPT-2 124M and the
flan-T5-base shape, float32, greedy, 64 new tokens for each of 32 prompts of 12 to 136 tokens.
generate.py [--work DIR] [--rounds 3] [--groups peers,one,ring]

  peers  new tokens/s of quintet, transformers and CTranslate2, the same threads
  one    one sequence: bytes of weights that a token reads, over the rate of a plain read
  ring   two one-core devices against two one-core copies side by side
"""

import json
import tempfile
from pathlib import Path

import harness
from harness import median

KEY = "new_tokens_per_second"
TITLES = {"gpt2": "GPT-2 124M", "t5-base": "flan-T5-base shape"}
# What each new token reads of the weights: all matrices of the decoder and the head. T5's
# cross-attention has its keys and values from before.
BYTES_PER_TOKEN = {
    "gpt2": 4 * (12 * 12 * 768**2 + 50257 * 768),
    "t5-base": 4 * (12 * (4 + 2) * 768**2 + 12 * 3 * 768 * 2048 + 32128 * 768),
}


def generate(args, model, data, **options):
    return harness.quintet(
        args.work / "models" / model, data, "generate", generation_config=args.options, **options
    )


def peers(args, model, data):
    def peer(name):
        return lambda: harness.python(
            "generate_peers.py",
            *("--peer", name, "--model", args.work / "models" / model),
            *("--input", data, "--threads", args.threads),
        )

    rows = harness.interleave(
        {
            "quintet": lambda: generate(args, model, data, threads=args.threads),
            "transformers": peer("transformers"),
            "CTranslate2": peer("ctranslate2"),
        },
        args.rounds,
        slow_seconds=300,
    )
    harness.table(
        f"{TITLES[model]}, 32 prompts, {args.threads} threads",
        ["program", "new tokens/s", "quintet / this"],
        [[n, median(r, KEY), harness.ratio(rows["quintet"], r, KEY)] for n, r in rows.items()],
    )
    return {"rows": rows}


def one(args, model, data):
    alone = harness.write_ids(data.with_name("one.jsonl"), harness.read_ids(data)[:1])
    rate = read_rate(args.threads)
    rows = harness.interleave(
        {"quintet": lambda: generate(args, model, alone, threads=args.threads)}, args.rounds
    )
    bound = rate / BYTES_PER_TOKEN[model]
    found = median(rows["quintet"], KEY)
    harness.table(
        f"{TITLES[model]}, one sequence, {args.threads} threads",
        ["new tokens/s", "plain read, GB/s", "bound, tokens/s", "share of the bound"],
        [[found, rate / 1e9, bound, found / bound if found else None]],
    )
    return {"rows": rows, "read_bytes_per_second": rate}


def read_rate(threads):
    """Bytes/s of summing a gigabyte with as many processes as threads; the best of five."""
    import multiprocessing

    with multiprocessing.Pool(threads) as pool:
        return max(sum(pool.map(read_share, [0] * threads)) for _ in range(5))


def read_share(_):
    import time

    import numpy

    data = numpy.ones(1 << 27, dtype=numpy.float32)  # 512 MiB
    data.max()
    since = time.perf_counter()
    data.max()
    return data.nbytes / (time.perf_counter() - since)


def ring(args, model, data):
    a, b = harness.cores(2)
    folder = args.work / "models" / model
    options = {"generation_config": args.options, "batch_size": 16}

    def copies():
        half = [data.with_name(f"half{i}.jsonl") for i in range(2)]
        for i, path in enumerate(half):
            harness.write_ids(path, harness.read_ids(data)[i::2])
        both = harness.quintet_together(
            [(folder, h, {"devices": f"cpu[{c}]", **options}) for h, c in zip(half, (a, b))],
            "generate",
        )
        return {KEY: sum(row[KEY] for row in both), "copies": both}

    rows = harness.interleave(
        {
            "ring of two": lambda: generate(
                args, model, data, devices=f"cpu[{a}],cpu[{b}]", batch_size=16
            ),
            "two copies": copies,
            "one device of two": lambda: generate(args, model, data, devices=f"cpu[{a},{b}]"),
        },
        args.rounds,
    )
    harness.table(
        f"{TITLES[model]}, two cores, 16 sequences per group and copy",
        ["cores", "new tokens/s", "ring / this"],
        [[n, median(r, KEY), harness.ratio(rows["ring of two"], r, KEY)] for n, r in rows.items()],
    )
    for stage in (harness.good(rows["ring of two"]) or [{}])[-1].get("stages", []):
        print(f"{stage['device']}: {stage.get('stack')} {stage['blocks']}, {stage['busy']:.2f} busy")
    return {"rows": rows}


def main():
    args = harness.arguments(
        __doc__,
        rounds=3,
        groups=("peers,one,ring", "which of them"),
        models=("gpt2,t5-base", "which models"),
        threads=(2, "of every program"),
    )
    harness.need_binary()
    before = harness.machine()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        args.options = Path(folder) / "options.json"
        args.options.write_text(
            json.dumps({"eos_token_id": [], "max_new_tokens": 64, "num_beams": 1})
        )
        prompts = harness.read_ids(args.work / "inputs/prompts.jsonl")
        data = harness.write_ids(Path(folder) / "prompts.jsonl", prompts)
        for model in args.models.split(","):
            for group in args.groups.split(","):
                measure = {"peers": peers, "one": one, "ring": ring}[group]
                results[f"{model} {group}"] = measure(args, model, data)
    harness.save(args, results, before)


if __name__ == "__main__":
    main()
