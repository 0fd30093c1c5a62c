"""What the benchmark scripts share: the machine's description, seeded token ids, runs of quintet,
interleaved rounds, tables and result files. Standard library only, so that this process stays far
smaller than what it measures: the peak that wait4 reports for a child is never below its parent's.
"""

import argparse
import datetime
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent
REPO = BENCH.parent
QUINTET = Path(os.environ.get("QUINTET", REPO / "build/release/quintet"))
MIB = 1 << 20
KILL_AFTER_SECONDS = 3600
FLAGS = (
    "avx2",
    "fma",
    "avx512f",
    "avx512bw",
    "avx_vnni",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
)


def arguments(description, rounds=5, **more):
    """--work, --rounds, --json and what the script adds: name=(default, help)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--work",
        type=Path,
        default=REPO / "build/bench",
        help="folder of models/ and inputs/ (default: %(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--json", type=Path, help="result file (default: WORK/results/SCRIPT.json)")
    for name, (default, text) in more.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true", help=text)
        else:
            parser.add_argument(flag, default=default, type=type(default), help=text)
    args = parser.parse_args()
    args.json = args.json or args.work / "results" / (Path(sys.argv[0]).stem + ".json")
    return args


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=REPO).stdout.strip()
    except OSError:
        return ""


def machine():
    """What a figure depends on besides the code."""
    cpu = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    field = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in cpu.splitlines())}
    have = field.get("flags", "").split()
    model = (
        f"{field.get('model name', '?')} (family {field.get('cpu family', '?')}, "
        f"model {field.get('model', '?')})"
    )
    return {
        "cpu": model,
        "flags": [f for f in FLAGS if f in have],
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "kernel": os.uname().release,
        "load_average": round(os.getloadavg()[0], 2),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": output_of("git", "describe", "--always", "--dirty"),
        "quintet": output_of(str(QUINTET), "--version"),
    }


def cores(n):
    """The first n cores that this process may run on."""
    return sorted(os.sched_getaffinity(0))[:n]


# ---- token ids


def lognormal_lengths(n, median, sigma, low, high):
    """n lengths at the even quantiles of a log-normal distribution: the same shape at any n."""
    normal = statistics.NormalDist(0, sigma)
    factors = [2.718281828459045 ** normal.inv_cdf((i + 0.5) / n) for i in range(n)]
    return [min(max(int(median * f), low), high) for f in factors]


def token_ids(lengths, vocab_size, seed=1234):
    """Random ids in random order of length, each ending in </s>; special ids left out."""
    rng = random.Random(seed)
    lengths = list(lengths)
    rng.shuffle(lengths)
    return [[rng.randrange(3, vocab_size) for _ in range(n - 1)] + [1] for n in lengths]


def write_ids(path, ids):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as f:
        for i, row in enumerate(ids):
            f.write(json.dumps({"id": f"r{i}", "input_ids": row}) + "\n")
    return path


def read_ids(path):
    return [json.loads(line)["input_ids"] for line in path.open()]


# ---- what a model costs


def encoder_flops(model, lengths):
    """(products, attention) of a pass over sequences of these lengths; a multiply-add counts 2."""
    c = json.loads((model / "config.json").read_text())
    inner = c["num_heads"] * c["d_kv"]
    gated = c.get("is_gated_act", c.get("feed_forward_proj", "relu").startswith("gated"))
    weights = 4 * c["d_model"] * inner + (3 if gated else 2) * c["d_model"] * c["d_ff"]
    products = 2 * c["num_layers"] * weights * sum(lengths)
    return products, 4 * c["num_layers"] * inner * sum(n * n for n in lengths)


def weight_bytes(model):
    """What the checkpoint's tensors take, as stored (the benchmark's checkpoints are float32)."""
    with (model / "model.safetensors").open("rb") as f:
        header = int.from_bytes(f.read(8), "little")
    return (model / "model.safetensors").stat().st_size - 8 - header


# ---- runs of quintet


def quintet_together(jobs, verb="embed"):
    """Runs `quintet embed` (or another verb) once per job (model, input, options), all at the same time.

    An option "output" names the file to keep; the rest are passed on: {"devices": "cpu[0]"}.
    Returns each run's --stats with peak_rss_bytes, as the kernel counted it, and wall_seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        started = []
        for i, (model, data, options) in enumerate(jobs):
            options = {
                "dtype": "float32",
                "output": f"{folder}/{i}." + ("safetensors" if verb == "embed" else "jsonl"),
                "stats": f"{folder}/{i}.json",
                **options,
            }
            command = [
                str(QUINTET),
                verb,
                "--model",
                str(model),
                "--input",
                str(data),
                "--overwrite",
                "--quiet",
            ]
            for name, value in options.items():
                command += ["--" + name.replace("_", "-"), str(value)]
            errors = open(f"{folder}/{i}.err", "w+")
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
            started.append((process, command, options, errors, time.monotonic()))
        return [finish_quintet(*run) for run in started]


def finish_quintet(process, command, options, errors, since):
    timer = threading.Timer(KILL_AFTER_SECONDS, process.kill)
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        errors.seek(0)
        raise RuntimeError(
            f"{' '.join(command)}: exit {process.returncode}: {errors.read()[-500:]}"
        )
    stats = json.loads(Path(options["stats"]).read_text())
    return {
        **stats,
        "peak_rss_bytes": usage.ru_maxrss * 1024,
        "wall_seconds": time.monotonic() - since,
    }


def quintet(model, data, verb="embed", **options):
    return quintet_together([(model, data, options)], verb)[0]


# ---- rounds, tables, results


def python(script, *args, environment=None, timeout=KILL_AFTER_SECONDS):
    """Runs a script of this folder in a process of its own; its last line of output is JSON."""
    command = [sys.executable, str(BENCH / script), *map(str, args)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(environment or {})},
        )
    except subprocess.TimeoutExpired:
        return {"error": f"more than {timeout} s"}
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        return {"error": f"exit {done.returncode}: {done.stderr.strip()[-300:]}"}
    return json.loads(lines[-1])


def interleave(measurements, rounds, slow_seconds=120):
    """A B C A B C ...: {name: function that gives a row} to {name: rows, one per round}.

    One that fails, or takes longer than slow_seconds, is not run again.
    """
    rows = {name: [] for name in measurements}
    left = dict(measurements)
    for _ in range(rounds):
        for name, measure in list(left.items()):
            since = time.monotonic()
            try:
                row = measure()
            except (RuntimeError, OSError) as e:
                row = {"error": str(e)}
            rows[name].append(row)
            print(f"  {label(name)}: {progress(row)}", file=sys.stderr, flush=True)
            if "error" in row or time.monotonic() - since > slow_seconds:
                del left[name]
    return rows


def label(name):
    return name if isinstance(name, str) else " ".join(map(str, name))


def progress(row):
    if "error" in row:
        return row["error"]
    shown = {k: v for k, v in row.items() if isinstance(v, float)}
    return ", ".join(f"{k} {v:.5g}" for k, v in list(shown.items())[:4])


def good(rows):
    return [r for r in rows if "error" not in r]


def median(rows, key):
    values = [r[key] for r in good(rows) if r.get(key) is not None]
    return statistics.median(values) if values else None


def ratio(rows, other, key="tokens_per_second"):
    """Median over the rounds of one's figure over the other's in the same round."""
    pairs = [(a[key], b[key]) for a, b in zip(good(rows), good(other)) if b.get(key)]
    return statistics.median(a / b for a, b in pairs) if pairs else None


def shown(value, digits=3):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{digits}g}"
    return str(value)


def table(title, head, rows):
    print(f"\n### {title}\n")
    cells = [[str(h) for h in head]] + [[shown(c) for c in row] for row in rows]
    width = [max(len(row[i]) for row in cells) for i in range(len(head))]
    line = lambda row: "| " + " | ".join(c.ljust(w) for c, w in zip(row, width)) + " |"
    print(line(cells[0]))
    print("|" + "|".join("-" * (w + 2) for w in width) + "|")
    for row in cells[1:]:
        print(line(row))
    sys.stdout.flush()


def save(args, results, before):
    """Adds these results, by group, with the machine they came from, to the result file."""
    args.json.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(args.json.read_text()) if args.json.exists() else {}
    for name, result in results.items():
        kept[name] = {"machine": before, "command": sys.argv, **result}
    args.json.write_text(json.dumps(kept, indent=1) + "\n")
    print(
        f"\n{before['cpu']}, {before['cores']} cores, {' '.join(before['flags'])}; "
        f"{before['date']}; {before['commit']}; results in {args.json}"
    )


def need_binary():
    if not QUINTET.exists():
        sys.exit(f"{QUINTET}: no such file; build it with `make build`, or name one in $QUINTET")
