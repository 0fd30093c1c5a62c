"""How much of one core's matrix-product rate the whole encoder keeps: real tokens per second times
the arithmetic per token, against sgemm of OpenBLAS on the same core, round by round.
encoder.py [--work DIR] [--rounds 5]

The arithmetic is that of the products and of attention over each sequence's own length; softmax,
norms, reading and writing are in the time only.
"""

import harness
from harness import median

SHAPES = {  # name: (model, vocabulary, lengths, share to reach)
    "T5-small shape, mean length 64": (
        "t5-small-enc",
        32000,
        harness.lognormal_lengths(192, 46.5, 0.8, 4, 512),
        0.80,
    ),
    "ProtT5 shape, median length 300": (
        "prott5-6L",
        23,
        harness.lognormal_lengths(10, 300, 0.7, 30, 1500),
        0.85,
    ),
}


def run(args, title):
    model_name, vocab_size, lengths, need = SHAPES[title]
    model = args.work / "models" / model_name
    ids = harness.write_ids(
        args.work / "inputs" / f"encoder-{model_name}.jsonl", harness.token_ids(lengths, vocab_size)
    )
    core = harness.cores(1)[0]
    products, attention = harness.encoder_flops(model, lengths)

    def encoder():
        row = harness.quintet(model, ids, devices=f"cpu[{core}]", dtype=args.dtype)
        seconds = sum(lengths) / row["tokens_per_second"]
        return {
            "gflops": (products + attention) / seconds / 1e9,
            "products_gflops": products / seconds / 1e9,
            **row,
        }

    def sgemm():
        return harness.python("sgemm.py", "--core", core, "--model", model)

    rows = harness.interleave({"sgemm": sgemm, "encoder": encoder}, args.rounds)
    best = max(("square_gflops", "model_gflops"), key=lambda k: median(rows["sgemm"], k) or 0)
    pairs = list(zip(harness.good(rows["encoder"]), harness.good(rows["sgemm"])))
    shares = sorted(e["gflops"] / s[best] for e, s in pairs)
    share = shares[len(shares) // 2] if shares else None
    blas = harness.good(rows["sgemm"])[0]["blas"] if harness.good(rows["sgemm"]) else "no sgemm"
    harness.table(
        f"{title}, {args.dtype}, core {core}, {blas}",
        ["what", "GFLOP/s"],
        [
            ["sgemm, 2048 x 2048 x 2048", median(rows["sgemm"], "square_gflops")],
            ["sgemm, the model's products", median(rows["sgemm"], "model_gflops")],
            ["encoder, products and attention", median(rows["encoder"], "gflops")],
            ["encoder, products alone", median(rows["encoder"], "products_gflops")],
        ],
    )
    speed = harness.shown(median(rows["encoder"], "tokens_per_second"))
    print(
        f"{speed} tokens/s; encoder / the better sgemm: {harness.shown(share)}, "
        f"{need} asked for"
    )
    return {"rows": rows, "share": share, "need": need}


if __name__ == "__main__":
    args = harness.arguments(__doc__, dtype=("float32", "of the weights"))
    machine = harness.machine()
    harness.need_binary()
    for title in SHAPES:
        harness.save(args, {f"{title}, {args.dtype}": run(args, title)}, machine)
