"""quintet against other programs on the same models and ids, in float32, in interleaved rounds.
compare.py [--work DIR] [--groups small,prott5,long4000,copies] [--rounds 5] [--tune]

--tune measures every program once per batch size first and keeps the best for each in
WORK/batching.json, which later runs read.
"""

import json
import subprocess
import sys

import harness
from harness import MIB, median, ratio

ENGINES = ["onnxruntime", "openvino", "ctranslate2"]
GROUPS = {  # name: model, ids, threads, peers, batch sizes to try, ratios to reach
    "small": dict(
        model="t5-small-enc",
        ids="texts",
        batch_tokens=512,
        peers=["transformers", *ENGINES, "sentence-transformers"],
        tries=[256, 512, 1024, 2048, 4096],
        needs={"transformers": 1.3, "best engine": 1.05, "sentence-transformers": 4},
    ),
    "prott5": dict(
        model="prott5-6L",
        ids="proteins",
        batch_tokens=1500,
        peers=["transformers", *ENGINES, "prottrans"],
        tries=[750, 1500, 3000],
        needs={"transformers": 1.4, "best engine": 1.15, "prottrans": 3},
    ),
    "long4000": dict(
        model="prott5-6L",
        ids="long4000",
        batch_tokens=4000,
        peers=["transformers", *ENGINES],
        tries=[],
        needs={"transformers": 2.2, "best engine": 1.15},
    ),
}
FIXED_BATCHES = ["prottrans", "sentence-transformers"]  # they bring their own


class Bench:
    def __init__(self, args):
        self.args = args
        self.batching_file = args.work / "batching.json"
        self.batching = (
            json.loads(self.batching_file.read_text()) if self.batching_file.exists() else {}
        )

    def paths(self, group):
        g = GROUPS[group]
        return (
            self.args.work / "models" / g["model"],
            self.args.work / "inputs" / f"{g['ids']}.jsonl",
        )

    def batch_tokens(self, group, program):
        return self.batching.get(group, {}).get(program)

    def reference(self, group):
        """transformers' states of this group, made once."""
        model, ids = self.paths(group)
        path = self.args.work / "reference" / f"{model.name}-{ids.stem}.safetensors"
        if not path.exists():
            row = harness.python(
                "peers.py", *self.peer_options(group, "transformers"), "--save", path
            )
            if "error" in row:
                return None
        return path

    def peer_options(self, group, peer, batch_tokens=None):
        model, ids = self.paths(group)
        batch_tokens = (
            batch_tokens or self.batch_tokens(group, peer) or GROUPS[group]["batch_tokens"]
        )
        options = ["--peer", peer, "--model", model, "--input", ids, "--batch-tokens", batch_tokens]
        return list(map(str, options))

    def peer(self, group, peer, batch_tokens=None, reference=None):
        more = ["--reference", reference] if reference else []
        return harness.python(
            "peers.py",
            *self.peer_options(group, peer, batch_tokens),
            *more,
            "--memory-limit-gib",
            self.args.memory_limit_gib,
        )

    def quintet(self, group, batch_tokens=None, reference=None):
        model, ids = self.paths(group)
        batch_tokens = batch_tokens or self.batch_tokens(group, "quintet")
        options = {"tokens_per_batch": batch_tokens} if batch_tokens else {}
        output = self.args.work / f"{group}.safetensors"
        row = harness.quintet(model, ids, devices=self.args.devices, output=output, **options)
        if reference:
            row.update(harness.python("agreement.py", output, reference))
        output.unlink(missing_ok=True)
        row["run_bytes"] = row["peak_rss_bytes"] - harness.weight_bytes(model)
        return row

    def tune(self, group):
        """Every batch size of every program, two rounds; what counts is its faster one."""
        g = GROUPS[group]
        programs = [p for p in g["peers"] if p not in FIXED_BATCHES]
        programs += ["quintet"] * harness.QUINTET.exists()
        measure = lambda p, n: self.quintet(group, n) if p == "quintet" else self.peer(group, p, n)
        rows = harness.interleave(
            {(p, n): lambda p=p, n=n: measure(p, n) for p in programs for n in g["tries"]}, 2
        )
        for p in programs if g["tries"] else []:
            speed = {
                n: max((r["tokens_per_second"] for r in harness.good(rows[p, n])), default=0)
                for n in g["tries"]
            }
            self.batching.setdefault(group, {})[p] = max(speed, key=speed.get)
            print(
                f"{group}, {p}, tokens/s by tokens per batch: "
                + ", ".join(f"{n}: {v:,.0f}" for n, v in speed.items())
            )
        self.batching_file.write_text(json.dumps(self.batching, indent=1) + "\n")

    # ---- one program after the other

    def run_group(self, group):
        g = GROUPS[group]
        reference = self.reference(group)
        programs = {}
        if harness.QUINTET.exists():
            programs["quintet"] = lambda: self.quintet(group, reference=reference)
        for peer in g["peers"]:
            programs[peer] = lambda peer=peer: self.peer(group, peer, reference=reference)
        rows = harness.interleave(programs, self.args.rounds, self.args.slow_seconds)
        self.show_group(group, rows)
        return {
            "rows": rows,
            "ratios": self.ratios(g, rows),
            "batching": self.batching.get(group, {}),
        }

    def show_group(self, group, rows):
        g = GROUPS[group]
        ours = rows.get("quintet", [])
        lines = []
        for name, of in rows.items():
            last = (harness.good(of) or of)[-1]
            memory = median(of, "run_bytes")
            lines.append(
                [
                    name,
                    median(of, "tokens_per_second"),
                    ratio(ours, of),
                    memory and memory / MIB,
                    ratio(ours, of, "run_bytes"),
                    median(of, "load_seconds"),
                    last.get("relative_l2"),
                    last.get("error", "")[:80] or f"{len(harness.good(of))} rounds",
                ]
            )
        harness.table(
            f"{group}: {g['model']}, {g['ids']}, 2 threads",
            [
                "program",
                "tokens/s",
                "quintet's rate / this",
                "run MiB",
                "quintet's run MiB / this",
                "load s",
                "relative L2",
                "",
            ],
            lines,
        )
        for name, (value, need) in self.ratios(g, rows).items():
            print(f"quintet / {name}: {harness.shown(value)}, {need} asked for")

    def ratios(self, group, rows):
        """{what: (ratio, at least)}; the best engine is the one with the highest median."""
        speeds = {e: median(rows.get(e, []), "tokens_per_second") or 0 for e in ENGINES}
        best = max(speeds, key=speeds.get)
        found = {}
        for name, need in group["needs"].items():
            program = best if name == "best engine" else name
            label = f"best engine ({best})" if name == "best engine" else name
            found[label] = ratio(rows.get("quintet", []), rows.get(program, [])), need
        return found

    # ---- two copies of an engine side by side, each on one core, against one quintet on both

    def copies(self, peer):
        """Two processes start together once both are loaded; the sum of their rates."""
        options = self.peer_options("small", peer) + ["--threads", "1", "--wait"]
        command = [sys.executable, str(harness.BENCH / "peers.py"), *options]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        running = [
            subprocess.Popen(command + ["--cores", str(core)], text=True, **pipes)
            for core in harness.cores(2)
        ]
        first = [p.stdout.readline().strip() for p in running]  # "ready", or the row of a failure
        for p in running:
            try:
                p.stdin.write("\n")
                p.stdin.flush()
            except BrokenPipeError:
                pass
        rows = [
            json.loads((p.communicate()[0] if f == "ready" else f).splitlines()[-1])
            for p, f in zip(running, first)
        ]
        for row in rows:
            if "error" in row:
                return row
        return {k: sum(r[k] for r in rows) for k in ("tokens_per_second", "peak_rss_bytes")}

    def run_copies(self):
        programs = {}
        if harness.QUINTET.exists():
            programs["quintet"] = lambda: self.quintet("small")
        programs.update({peer: lambda peer=peer: self.copies(peer) for peer in ENGINES})
        rows = harness.interleave(programs, self.args.rounds, self.args.slow_seconds)
        ours = rows.get("quintet", [])
        harness.table(
            "copies: t5-small-enc, texts; one quintet on two cores, two one-thread copies "
            "of each engine side by side",
            ["program", "tokens/s", "quintet's rate / this", "peak MiB, all"],
            [
                [
                    name,
                    median(of, "tokens_per_second"),
                    ratio(ours, of),
                    (median(of, "peak_rss_bytes") or 0) / MIB,
                ]
                for name, of in rows.items()
            ],
        )
        found = self.ratios({"needs": {"best engine": 1.0}}, rows)
        for name, (value, need) in found.items():
            print(f"quintet / two copies of {name}: {harness.shown(value)}, {need} asked for")
        return {"rows": rows, "ratios": found}


def main():
    args = harness.arguments(
        __doc__,
        groups=("small,prott5,long4000,copies", "which, comma-separated"),
        tune=(False, "find each program's best batch size first"),
        devices=("cpu[{},{}]".format(*harness.cores(2)), "quintet's devices"),
        memory_limit_gib=(20.0, "a peer fails beyond this"),
        slow_seconds=(180.0, "what takes longer runs once"),
    )
    machine = harness.machine()
    bench = Bench(args)
    if not harness.QUINTET.exists():
        print(f"{harness.QUINTET} is not built: the other programs only")
    for group in args.groups.split(","):
        if args.tune and group in GROUPS:
            bench.tune(group)
        result = bench.run_copies() if group == "copies" else bench.run_group(group)
        harness.save(args, {group: result}, machine)


if __name__ == "__main__":
    main()
