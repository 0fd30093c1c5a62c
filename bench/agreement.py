"""How far two programs' states of the same records are apart: agreement.py A.safetensors
REFERENCE.safetensors prints {"relative_l2", "largest_difference", "smallest_cosine"}.
"""

import json
import sys

import numpy as np
from safetensors.numpy import load_file


def agreement(states, reference):
    """Both {record id: [n_tokens, d_model]}; pooled states compare with the reference's mean."""
    if set(states) != set(reference):
        return {"error": f"{len(set(states) ^ set(reference))} records are in one file only"}
    a = [np.atleast_2d(states[k]).astype(np.float64) for k in reference]
    b = [reference[k].astype(np.float64) for k in reference]
    if next(iter(states.values())).ndim == 1:
        b = [x.mean(0, keepdims=True) for x in b]
    for k, x, y in zip(reference, a, b):
        if x.shape != y.shape:
            return {"error": f"record {k}: {x.shape} for {y.shape}"}
    a, b = np.vstack(a), np.vstack(b)
    cosine = (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return {
        "relative_l2": float(f"{np.linalg.norm(a - b) / np.linalg.norm(b):.3g}"),
        "largest_difference": float(f"{np.abs(a - b).max():.3g}"),
        "smallest_cosine": round(float(cosine.min()), 7),
    }


if __name__ == "__main__":
    print(json.dumps(agreement(load_file(sys.argv[1]), load_file(sys.argv[2]))))
