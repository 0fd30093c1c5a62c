#!/usr/bin/env bash
# Compiles the OpenCL kernels as CUDA C++, which the words of kernels/dialect.h allow: what is not
# between "#if defined(__OPENCL_VERSION__)" and its end must pass. Skips where there is no nvcc.
set -euo pipefail

kernels="$(cd "$(dirname "$0")/.." && pwd)/src/backends/opencl/kernels"
if ! command -v nvcc > /dev/null; then
  echo "skipped: no nvcc on PATH"
  exit 0
fi
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
for kernel in "$kernels"/*.cl; do
  name="$(basename "$kernel")"
  { printf "#define %s\n" "ROWS_PER_GROUP 8" "CHUNK 8192" "EDIT_SET 0" "EDIT_FILL_ROW 2"; cat "$kernels/dialect.h" "$kernels/arithmetic.h" "$kernel"; } > "$folder/$name.cu"
  nvcc -ptx --fmad=false -Werror all-warnings -diag-suppress 177 -o "$folder/$name.ptx" \
    "$folder/$name.cu"
  echo "$name: $(grep -c '^\.visible \.entry\|\.entry ' "$folder/$name.ptx" || true) kernels"
done
