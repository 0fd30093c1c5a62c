"""Loading a checkpoint against the least that loading can be: reading the file once from the page
cache and writing its packed size once, on one core. load.py [--work DIR] [--rounds 7]
"""

import mmap
import os
import time

import harness
from harness import MIB, median

MODELS = ["t5-small-enc", "prott5-6L"]
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
CHUNK = 1 << 18  # stays in the second-level cache between its read and its write


def read_and_write(path, share, huge_pages):
    """Seconds to read the file piece by piece and to write that share of it into fresh memory."""
    size = os.stat(path).st_size
    piece = memoryview(bytearray(CHUNK))
    since = time.perf_counter()
    memory = mmap.mmap(-1, size)
    if huge_pages:
        memory.madvise(mmap.MADV_HUGEPAGE)
    with open(path, "rb", buffering=0) as f:
        end = 0
        while n := f.readinto(piece):
            n = int(n * share)
            memory[end : end + n] = piece[:n]
            end += n
    return time.perf_counter() - since


def run(args, name, dtype):
    model, core = args.work / "models" / name, harness.cores(1)[0]
    path = model / "model.safetensors"
    ids = harness.write_ids(args.work / "inputs/three.jsonl", [[5, 6, 1]])

    def baseline():
        # In a child: pinned to the core, and its memory is gone with it.
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.sched_setaffinity(0, [core])
            best = min(read_and_write(path, BYTES[dtype] / 4, huge) for huge in (False, True))
            os.write(write, str(best).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as f:
            seconds = float(f.read())
        os.waitpid(child, 0)
        return {"load_seconds": seconds}

    rows = harness.interleave(
        {
            "read and write": baseline,
            "quintet": lambda: harness.quintet(model, ids, devices=f"cpu[{core}]", dtype=dtype),
        },
        args.rounds,
    )
    size = harness.weight_bytes(model) / MIB
    speed = harness.ratio(rows["read and write"], rows["quintet"], "load_seconds")
    return rows, speed, [name, dtype, size, *(median(rows[k], "load_seconds") for k in rows), speed]


if __name__ == "__main__":
    args = harness.arguments(__doc__, rounds=7)
    machine = harness.machine()
    harness.need_binary()
    results, lines = {}, []
    for name in MODELS:
        for dtype in BYTES:
            rows, speed, line = run(args, name, dtype)
            results[f"{name} {dtype}"] = {"rows": rows, "of_baseline": speed}
            lines.append(line)
    harness.table(
        f"Loading on core {harness.cores(1)[0]}, file in the page cache",
        ["model", "packed as", "file MiB", "read and write, s", "quintet, s", "of that speed"],
        lines,
    )
    print("0.8 asked for")
    harness.save(args, results, machine)
