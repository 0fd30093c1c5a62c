"""One measurement of one other program in one process, printed as one JSON line, all in float32.

peers.py --peer onnxruntime --model MODEL --input IDS.jsonl [--threads 2] [--batch-tokens 512]
The engines onnxruntime, openvino and ctranslate2 read what convert.py wrote beside the checkpoint.
"""

import argparse
import importlib
import json
import os
import sys
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--peer", required=True)
parser.add_argument("--model", type=Path, required=True)
parser.add_argument("--input", type=Path, required=True)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--cores", help="cores to stay on, as in 0,1 (default: wherever it may run)")
parser.add_argument(
    "--batch-tokens", type=int, default=512, help="tokens per batch, padding counted"
)
parser.add_argument(
    "--memory-limit-gib", type=float, help="fail beyond this much, rather than swap"
)
parser.add_argument("--reference", type=Path, help="states of transformers to compare with")
parser.add_argument("--save", type=Path, help="write the states here")
parser.add_argument(
    "--wait", action="store_true", help="when loaded print a line, start at one read"
)

if __name__ == "__main__":
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(args.threads)
    os.environ.update(
        TOKENIZERS_PARALLELISM="false",
        TRANSFORMERS_VERBOSITY="error",
        HF_HUB_OFFLINE="1",
        HF_HUB_DISABLE_PROGRESS_BARS="1",
    )
    if args.cores:
        os.sched_setaffinity(0, map(int, args.cores.split(",")))
    Path("/proc/self/oom_score_adj").write_text("1000")  # should memory run out, this one goes
    if args.memory_limit_gib:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (int(args.memory_limit_gib * 2**30),) * 2)

import numpy as np

import harness

# ---- batching


def batches_by_length(ids, batch_tokens):
    """Record numbers, longest first, as many of like length together as the padded budget takes."""
    batches = []
    for i in sorted(range(len(ids)), key=lambda i: -len(ids[i])):
        if batches and (len(batches[-1]) + 1) * len(ids[batches[-1][0]]) <= batch_tokens:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


def batches_prottrans(ids, max_residues=4000, max_length=1000, max_batch=100):
    """The rule of ProtTrans' published embedding scripts with their default limits: longest first;
    a batch closes once one more protein like its last would make 4,000 residues, at 100 proteins,
    and after any protein above 1,000."""
    batches, batch, residues = [], [], 0
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    for i in order:
        length = len(ids[i]) - 1  # </s> is no residue
        batch.append(i)
        residues += length
        if (
            len(batch) >= max_batch
            or residues + length >= max_residues
            or length > max_length
            or i == order[-1]
        ):
            batches.append(batch)
            batch, residues = [], 0
    return batches


def over_batches(forward, batching):
    """forward(ids, mask), both [n, length], gives states [n, length, d_model]: as a function of all
    sequences that gives each its own rows, padding left out."""

    def run(ids):
        states = [None] * len(ids)
        for batch in batching(ids):
            length = max(len(ids[i]) for i in batch)
            x, mask = np.zeros((2, len(batch), length), np.int64)
            for row, i in enumerate(batch):
                x[row, : len(ids[i])], mask[row, : len(ids[i])] = ids[i], 1
            out = forward(x, mask)
            for row, i in enumerate(batch):
                states[i] = np.array(out[row, : len(ids[i])], np.float32)
        return states

    return run


def by_length(forward):
    return over_batches(forward, lambda ids: batches_by_length(ids, args.batch_tokens))


def as_words(ids):
    special = {0: "<pad>", 1: "</s>", 2: "<unk>"}
    return [[special.get(t, f"t{t}") for t in row] for row in ids]


# ---- each loader gives a function from id lists to states (or None where there are none)


def torch_forward():
    import torch
    import transformers

    torch.set_num_threads(args.threads)
    model = transformers.AutoModelForTextEncoding.from_pretrained(
        args.model, dtype=torch.float32, attn_implementation="sdpa"
    ).eval()

    def forward(x, mask):
        with torch.inference_mode():
            return model(
                input_ids=torch.from_numpy(x), attention_mask=torch.from_numpy(mask)
            ).last_hidden_state.numpy()

    return forward


def load_sentence_transformers():
    import torch
    from sentence_transformers import SentenceTransformer, models

    torch.set_num_threads(args.threads)
    d_model = json.loads((args.model / "config.json").read_text())["d_model"]
    words = models.Transformer(str(args.model), max_seq_length=1_000_000)
    model = SentenceTransformer(
        device="cpu", modules=[words, models.Pooling(d_model, pooling_mode="mean")]
    )

    def run(ids):
        texts = [" ".join(row) for row in as_words(ids)]
        return list(model.encode(texts, batch_size=32, show_progress_bar=False))

    return run


def load_onnxruntime():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        args.model / "onnx/model.onnx", options, providers=["CPUExecutionProvider"]
    )
    return by_length(lambda x, mask: session.run(None, {"input_ids": x, "attention_mask": mask})[0])


def load_openvino():
    import openvino

    compiled = openvino.Core().compile_model(
        args.model / "openvino/model.xml",
        "CPU",
        {
            "INFERENCE_NUM_THREADS": args.threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
        },
    )
    request = compiled.create_infer_request()
    return by_length(
        lambda x, mask: request.infer(
            {"input_ids": x, "attention_mask": mask}, share_inputs=True, share_outputs=True
        )[0]
    )


def load_ctranslate2():
    """One decoding step of encoder and one-block decoder: a time, no states."""
    import ctranslate2

    model = ctranslate2.Translator(
        str(args.model / "ctranslate2"),
        device="cpu",
        inter_threads=1,
        compute_type="float32",
        intra_threads=args.threads,
    )

    def run(ids):
        model.translate_batch(
            as_words(ids),
            beam_size=1,
            min_decoding_length=1,
            max_decoding_length=1,
            max_input_length=0,
            batch_type="tokens",
            max_batch_size=args.batch_tokens,
        )

    return run


def encoder_share(model, lengths):
    """The encoder's part of the arithmetic in load_ctranslate2's run. Its decoder block projects
    every state to keys and values, and does one token and the vocabulary once per sequence."""
    c = json.loads((model / "config.json").read_text())
    inner, d_model = c["num_heads"] * c["d_kv"], c["d_model"]
    once = 6 * d_model * inner + 2 * d_model * c["d_ff"] + d_model * c["vocab_size"]
    decoder = 2 * (2 * d_model * inner * sum(lengths) + once * len(lengths))
    encoder = sum(harness.encoder_flops(model, lengths))
    return encoder / (encoder + decoder)


TORCH = ["torch", "transformers.models.t5.modeling_t5"]
PEERS = {  # name: (modules whose import is no part of loading, loader)
    "transformers": (TORCH, lambda: by_length(torch_forward())),
    "prottrans": (TORCH, lambda: over_batches(torch_forward(), batches_prottrans)),
    "sentence-transformers": (["sentence_transformers"], load_sentence_transformers),
    "onnxruntime": (["onnxruntime"], load_onnxruntime),
    "openvino": (["openvino"], load_openvino),
    "ctranslate2": (["ctranslate2"], load_ctranslate2),
}


# ---- memory and the measurement itself


def status_bytes(key):
    return int(Path("/proc/self/status").read_text().split(key + ":")[1].split()[0]) * 1024


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again from VmRSS


def measure(ids):
    modules, load = PEERS[args.peer]
    for module in modules:
        importlib.import_module(module)
    since = time.perf_counter()
    run = load()
    row = {"load_seconds": time.perf_counter() - since, "load_peak_bytes": status_bytes("VmHWM")}
    rising = sorted(ids, key=len)
    # First runs compile and allocate; a lone sequence is warmed up by its beginning.
    run([rising[0], rising[len(ids) // 2]] if len(ids) > 1 else [ids[0][:64]])
    if args.wait:
        print("ready", flush=True)
        sys.stdin.readline()
    loaded = status_bytes("VmRSS")
    forget_peak()
    since = time.perf_counter()
    states = run(ids)
    row["seconds"] = time.perf_counter() - since
    row["run_bytes"] = status_bytes("VmHWM") - loaded  # above what a loaded, idle program holds
    row["peak_rss_bytes"] = max(row["load_peak_bytes"], status_bytes("VmHWM"))
    row["tokens"] = sum(map(len, ids))
    row["tokens_per_second"] = row["tokens"] / row["seconds"]
    if args.peer == "ctranslate2":  # its encoder alone would be that much faster
        row["measured_tokens_per_second"] = row["tokens_per_second"]
        row["tokens_per_second"] /= encoder_share(args.model, list(map(len, ids)))
    return row, states


def main():
    ids = harness.read_ids(args.input)
    try:
        row, states = measure(ids)
        if states is not None:
            states = {f"r{i}": x for i, x in enumerate(states)}
            if args.save:
                from safetensors.numpy import save_file

                args.save.parent.mkdir(parents=True, exist_ok=True)
                save_file(states, args.save)
            if args.reference:
                from agreement import agreement
                from safetensors.numpy import load_file

                row.update(agreement(states, load_file(args.reference)))
    except Exception as e:  # whatever the peer throws is its result
        row = {"error": f"{type(e).__name__}: {e}"[:300]}
    print(json.dumps({"peer": args.peer, "threads": args.threads, **row}), flush=True)
    os._exit(0)  # some engines' threads take long to end


if __name__ == "__main__":
    main()
