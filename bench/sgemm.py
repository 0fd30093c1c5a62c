"""One core's float32 matrix-product rate with the OpenBLAS that numpy from PyPI carries, printed as
one JSON line. sgemm.py --core 0 --model MODEL [--rows 512]

"square" is a 2048 x 2048 x 2048 product; "model" are the products of one encoder block at that many
rows, X [rows, d_in] * W [d_out, d_in]^T, all their arithmetic over all their time.
"""

import argparse
import json
import os
import statistics
import time
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--core", type=int, required=True)
parser.add_argument("--model", type=Path, required=True)
parser.add_argument("--rows", type=int, default=512)
args = parser.parse_args()
os.sched_setaffinity(0, [args.core])
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.pop("OPENBLAS_CORETYPE", None)  # the kernel that OpenBLAS itself takes for this CPU
import numpy as np
import threadpoolctl


def seconds(m, n, k, least=0.4):
    """Median time of one product, over at least that many seconds and five runs."""
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (n, k)))
    y = np.empty((m, n), np.float32)
    times = []
    np.matmul(x, w.T, out=y)
    while sum(times) < least or len(times) < 5:
        since = time.perf_counter()
        np.matmul(x, w.T, out=y)
        times.append(time.perf_counter() - since)
    return statistics.median(times)


def block_products(config):
    inner, d_model, d_ff = config["num_heads"] * config["d_kv"], config["d_model"], config["d_ff"]
    return [(3 * inner, d_model), (d_model, inner), (d_ff, d_model), (d_model, d_ff)]


config = json.loads((args.model / "config.json").read_text())
products = [(args.rows, n, k) for n, k in block_products(config)]
flops = [2.0 * m * n * k for m, n, k in products]
blas = next(i for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas")
print(
    json.dumps(
        {
            "square_gflops": 2 * 2048**3 / seconds(2048, 2048, 2048) / 1e9,
            "model_gflops": sum(flops) / sum(seconds(*p) for p in products) / 1e9,
            "blas": f"{blas['internal_api']} {blas['version']} {blas.get('architecture', '')}",
        }
    )
)
