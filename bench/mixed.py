"""A plan over devices of two kinds, one core each, against the better of the two alone and against
what the plan itself predicts. mixed.py [--work DIR] [--rounds 5] [--pairs "cpu[0]+opencl:0/2[1],..."]

Speeds are measured anew into a cache folder of this run's own, before the first round: what the
plan knows of the devices is what their owner's first run would know. Kernels are built there by one
short run of each kind that does not count. The times go from the first record read to the last byte
written: filling and draining the line is in them, as it is in the plan.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import harness
from harness import median
from pipeline import corpus

MODEL, VOCAB_SIZE, MIDDLE, SIGMA, LONGEST = "t5-24L", 128, 300, 0.7, 1500
NEED_OF_BETTER = 0.97
NEED_OF_PREDICTED = 0.9
TOO_SLOW_TO_RUN = 20  # times slower than the plan: only predicted


def plan(model, ids, options):
    command = [str(harness.QUINTET), "plan", "--json", "--model", str(model), "--input", str(ids)]
    for name, value in options.items():
        command += ["--" + name.replace("_", "-"), str(value)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def run(args, pair):
    model = args.work / "models" / args.model
    with tempfile.TemporaryDirectory() as folder:
        ids = Path(folder) / "ids.jsonl"
        few = Path(folder) / "few.jsonl"
        for path, batches in ((ids, args.batches), (few, 3)):
            corpus(path, batches * args.tokens_per_batch, VOCAB_SIZE, MIDDLE, SIGMA, LONGEST)
        options = {"tokens_per_batch": args.tokens_per_batch, "dtype": args.dtype}
        devices = {name: {"devices": name, **options} for name in pair.split("+")}
        devices["auto plan over both"] = {"devices": ",".join(pair.split("+")), **options}
        plans = {name: plan(model, ids, of) for name, of in devices.items()}
        predicted = {name: of["tokens_per_second"] for name, of in plans.items()}
        devices = {
            name: of
            for name, of in devices.items()
            if predicted[name] > max(predicted.values()) / TOO_SLOW_TO_RUN
        }
        for of in devices.values():
            harness.quintet(model, few, pool="mean", **of)
        measure = lambda of: lambda: harness.quintet(model, ids, pool="mean", **of)
        rows = harness.interleave(
            {name: measure(of) for name, of in devices.items()}, args.rounds, slow_seconds=300
        )
    both = rows["auto plan over both"]
    harness.table(
        f"{args.model}, {pair}, {args.dtype}, {args.batches} micro-batches of "
        f"{args.tokens_per_batch} tokens",
        ["devices", "tokens/s", "predicted", "measured / predicted", "both / this"],
        [
            [
                name,
                median(of, "tokens_per_second"),
                predicted[name],
                quotient(median(of, "tokens_per_second"), predicted[name]),
                harness.ratio(both, of),
            ]
            for name, of in rows.items()
        ],
    )
    for stage in (harness.good(both) or [{}])[-1].get("stages", []):
        print(f"{stage['device']}: blocks {stage['blocks']}, busy {100 * stage['busy']:.1f} %")
    alone = [rows[name] for name in pair.split("+") if name in rows]
    better = max(alone, key=lambda of: median(of, "tokens_per_second") or 0)
    of_better = harness.ratio(both, better)
    of_predicted = quotient(median(both, "tokens_per_second"), predicted["auto plan over both"])
    print(
        f"auto / better alone: {harness.shown(of_better)}, {NEED_OF_BETTER} asked for; "
        f"auto / predicted: {harness.shown(of_predicted)}, {NEED_OF_PREDICTED} asked for"
    )
    return {
        "rows": rows,
        "plans": plans,
        "of_better": of_better,
        "need_of_better": NEED_OF_BETTER,
        "of_predicted": of_predicted,
        "need_of_predicted": NEED_OF_PREDICTED,
    }


def quotient(a, b):
    return a / b if a and b else None


if __name__ == "__main__":
    first, second = harness.cores(2)
    args = harness.arguments(
        __doc__,
        dtype=("float32", "of the weights"),
        tokens_per_batch=(512, "tokens in a micro-batch"),
        batches=(24, "micro-batches"),
        model=(MODEL, "below WORK/models, of 24 blocks"),
        pairs=(
            f"cpu[{first}]+opencl:0/2[{second}],reference:0+cpu[{first}]",
            "which devices, pairs comma-separated",
        ),
    )
    machine = harness.machine()
    harness.need_binary()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        for pair in args.pairs.split(","):
            harness.save(args, {f"{args.model}, {pair}, {args.dtype}": run(args, pair)}, machine)
