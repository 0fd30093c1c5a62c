"""Memory: planned against measured peaks over ten configurations; what one sequence of 8,000 tokens
takes above the weights; and, with --titin, 34,350 residues through six ProtT5 blocks.
memory.py [--work DIR] [--titin]

Measured is what the kernel counted for the process (peak resident size), planned what the run said
in its --stats before it began.
"""

import tempfile
from pathlib import Path

import harness
from harness import MIB

A, B = harness.cores(2)
ONE, BOTH, PIPELINE = f"cpu[{A}]", f"cpu[{A},{B}]", f"cpu[{A}],cpu[{B}]"
# model, dtype, devices, tokens per micro-batch, lengths: enough to fill every stage and queue, which
# is what a plan counts on
CONFIGURATIONS = [
    ("t5-small-enc", "float32", BOTH, 512, [64] * 64),
    ("t5-small-enc", "bfloat16", ONE, 2048, [64] * 400),
    ("t5-small-enc", "float32", PIPELINE, 4096, [300] * 150),
    ("t5-small-enc", "float16", PIPELINE, 1024, [20, 60, 500] * 20),
    ("prott5-1L", "float32", BOTH, 1500, [300] * 50),
    ("prott5-1L", "bfloat16", ONE, 8192, [1000] * 64),
    ("prott5-1L", "float32", BOTH, 1024, [8000]),
    ("prott5-6L", "float32", PIPELINE, 1500, [300] * 40),
    ("prott5-6L", "bfloat16", BOTH, 3000, [100, 1500] * 8),
    ("prott5-6L", "float16", PIPELINE, 1024, [4000]),
]


def run(args, model, lengths, **options):
    path = args.work / "models" / model
    vocab_size = 23 if model.startswith("prott5") else 32000
    with tempfile.TemporaryDirectory() as folder:
        ids = harness.write_ids(Path(folder) / "ids.jsonl", harness.token_ids(lengths, vocab_size))
        return harness.quintet(path, ids, pool="mean", **options)


def planned(args):
    rows, lines, worst = [], [], 0.0
    for model, dtype, devices, tokens, lengths in CONFIGURATIONS:
        row = run(args, model, lengths, dtype=dtype, devices=devices, tokens_per_batch=tokens)
        off = row["peak_rss_bytes"] / row["planned_peak_bytes"] - 1
        worst = max(worst, abs(off))
        lines.append(
            [
                model,
                dtype,
                devices,
                tokens,
                f"{len(lengths)} of {min(lengths)} - " f"{max(lengths)}",
                row["planned_peak_bytes"] / MIB,
                row["peak_rss_bytes"] / MIB,
                row["measured_peak_bytes"] / MIB,
                f"{100 * off:+.1f} %",
            ]
        )
        rows.append(row)
    harness.table(
        "Planned against measured peak",
        [
            "model",
            "dtype",
            "devices",
            "tokens per batch",
            "lengths",
            "planned MiB",
            "measured MiB",
            "by its own count",
            "off by",
        ],
        lines,
    )
    print(f"worst: {100 * worst:.1f} %, 5 % asked for")
    return {"rows": rows, "worst": worst}


def long_sequence(args):
    """Above the weights two ways: less the checkpoint's size, and less a short run's peak."""
    model = "prott5-6L"
    weights = harness.weight_bytes(args.work / "models" / model)
    short = run(args, model, [3], devices=BOTH)
    lines, rows = [], {"3": short}
    for n in (1000, 2000, 4000, 8000):
        row = rows[str(n)] = run(args, model, [n], devices=BOTH)
        lines.append(
            [
                n,
                row["peak_rss_bytes"] / MIB,
                (row["peak_rss_bytes"] - weights) / MIB,
                (row["peak_rss_bytes"] - short["peak_rss_bytes"]) / MIB,
                row["seconds"],
            ]
        )
    harness.table(
        "One sequence through six ProtT5 blocks, float32",
        ["tokens", "peak MiB", "above the weights", "above a run of 3 tokens", "s"],
        lines,
    )
    print(f"8,000 tokens: {lines[-1][2]:.0f} MiB above the weights, 400 asked for")
    return {"rows": rows}


def titin(args):
    row = harness.quintet(
        args.work / "models/prott5-6L", args.work / "inputs/titin.jsonl", devices=BOTH
    )
    weights = harness.weight_bytes(args.work / "models/prott5-6L")
    harness.table(
        "34,350 residues through six ProtT5 blocks, float32, one row per residue",
        ["peak MiB", "above the weights", "s"],
        [[row["peak_rss_bytes"] / MIB, (row["peak_rss_bytes"] - weights) / MIB, row["seconds"]]],
    )
    return {"rows": [row]}


if __name__ == "__main__":
    args = harness.arguments(__doc__, rounds=1, titin=(False, "the longest one too (minutes)"))
    machine = harness.machine()
    harness.need_binary()
    harness.save(args, {"planned": planned(args), "long": long_sequence(args)}, machine)
    if args.titin:
        harness.save(args, {"titin": titin(args)}, machine)
