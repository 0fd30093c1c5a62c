"""Starting on an OpenCL device: a run that compiles its kernels and one that finds them on disk.
opencl_start.py [--work DIR] [--device opencl:0] [--rounds 3]

Each round has a cache folder of its own, for quintet's files and for the driver's: the first run
compiles and measures the device, the second does neither. Both embed one short record with the tiny
model of examples/, so nearly all of their time is starting.
"""

import os
import tempfile

import harness

MODEL = harness.REPO / "examples/prott5-tiny"


def main():
    args = harness.arguments(
        __doc__, rounds=3, device=("opencl:0", "device to start on (default: %(default)s)")
    )
    harness.need_binary()
    before = harness.machine()
    ids = harness.write_ids(args.work / "inputs/start.jsonl", [[5, 6, 7, 8, 1]])
    run = lambda: harness.quintet(MODEL, ids, devices=args.device)
    os.environ.pop("POCL_CACHE_DIR", None)
    first, second = [], []
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_CACHE_HOME"] = folder
            rows = harness.interleave({"first run": run, "second run": run}, 1)
        first += rows["first run"]
        second += rows["second run"]
    share = harness.ratio(second, first, "wall_seconds")
    harness.table(
        f"start on {args.device}, {MODEL.name}, one record of 5 tokens",
        ["first run, s", "second run, s", "second / first"],
        [[harness.median(first, "wall_seconds"), harness.median(second, "wall_seconds"), share]],
    )
    harness.save(
        args, {args.device: {"first": first, "second": second, "ratio": share}}, before
    )


if __name__ == "__main__":
    main()
