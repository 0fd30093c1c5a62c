"""Two one-core devices in a pipeline against two copies of the program side by side, each on one
core (all that the machine can give), against the two cores as one device, and against one core.
pipeline.py [--work DIR] [--rounds 5]

The times go from the first record read to the last byte written: filling and draining the pipeline
is in them, so the number of micro-batches matters.
"""

import tempfile
from pathlib import Path

import harness
from harness import median

SHAPES = {  # name: (model, vocabulary, median length, sigma, longest)
    "T5-small shape": ("t5-small-enc", 32000, 46.5, 0.8, 512),
    "ProtT5 shape": ("prott5-6L", 23, 300, 0.7, 1500),
}
BATCHES = {24: 0.95, 40: 0.97}  # micro-batches: share of two copies' rate to reach


def corpus(path, tokens, vocab_size, middle, sigma, longest):
    mean = middle * 2.71828 ** (sigma**2 / 2)
    lengths = harness.lognormal_lengths(max(4, round(tokens / mean)), middle, sigma, 4, longest)
    harness.write_ids(path, harness.token_ids(lengths, vocab_size))


def run(args, title, n_batches):
    model_name, vocab_size, middle, sigma, longest = SHAPES[title]
    model = args.work / "models" / model_name
    a, b = harness.cores(2)
    with tempfile.TemporaryDirectory() as folder:
        ids = Path(folder) / "ids.jsonl"
        corpus(ids, n_batches * args.tokens_per_batch, vocab_size, middle, sigma, longest)
        options = {
            "tokens_per_batch": args.tokens_per_batch,
            "pool": args.pool,
            "dtype": args.dtype,
        }
        on = lambda devices: harness.quintet(model, ids, devices=devices, **options)

        def copies():
            both = harness.quintet_together(
                [(model, ids, {"devices": f"cpu[{core}]", **options}) for core in (a, b)]
            )
            return {"tokens_per_second": sum(r["tokens_per_second"] for r in both), "copies": both}

        rows = harness.interleave(
            {
                "one core": lambda: on(f"cpu[{a}]"),
                "pipeline of two": lambda: on(f"cpu[{a}],cpu[{b}]"),
                "two copies": copies,
                "one device of two": lambda: on(f"cpu[{a},{b}]"),
            },
            args.rounds,
            slow_seconds=600,
        )
    ours = rows["pipeline of two"]
    stages = (harness.good(ours) or [{}])[-1].get("stages", [])
    counted = max((stage["micro_batches"] for stage in stages), default=n_batches)
    harness.table(
        f"{title}, {args.dtype}, {counted} micro-batches of {args.tokens_per_batch} tokens",
        ["cores", "tokens/s", "pipeline's rate / this"],
        [
            [name, median(of, "tokens_per_second"), harness.ratio(ours, of)]
            for name, of in rows.items()
        ],
    )
    for stage in stages:
        print(f"{stage['device']}: blocks {stage['blocks']}, busy {100 * stage['busy']:.1f} %")
    found = harness.ratio(ours, rows["two copies"])
    print(
        f"pipeline / two copies: {harness.shown(found)}, {BATCHES[n_batches]} asked for; "
        f"/ one device of two cores: "
        f"{harness.shown(harness.ratio(ours, rows['one device of two']))}, 1 asked for"
    )
    return {
        "rows": rows,
        "of_two_copies": found,
        "micro_batches": counted,
        "need": BATCHES[n_batches],
        "of_one_device": harness.ratio(ours, rows["one device of two"]),
    }


if __name__ == "__main__":
    args = harness.arguments(
        __doc__,
        dtype=("float32", "of the weights"),
        tokens_per_batch=(512, "tokens in a micro-batch"),
        pool=("mean", "mean or none: what is written"),
        shapes=("T5-small shape,ProtT5 shape", "which, comma-separated"),
    )
    machine = harness.machine()
    harness.need_binary()
    for title in args.shapes.split(","):
        for n_batches in BATCHES:
            result = run(args, title, n_batches)
            harness.save(args, {f"{title}, {n_batches}, {args.dtype}": result}, machine)
