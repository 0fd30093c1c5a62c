#!/usr/bin/env bash
# Compiles the OpenCL kernels' work-group forms as CUDA C++, which the words of kernels/dialect.h
# allow. Skips where there is no nvcc. linear_wide.cl is made of vectors and is OpenCL's own.
set -euo pipefail

kernels="$(cd "$(dirname "$0")/.." && pwd)/src/backends/opencl/kernels"
if ! command -v nvcc > /dev/null; then
  echo "skipped: no nvcc on PATH"
  exit 0
fi
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

check() {  # KERNEL DEFINES...
  cat "$kernels/dialect.h" "$kernels/arithmetic.h" "$kernels/$1.cl" > "$folder/$1.cu"
  nvcc -ptx --fmad=false -Werror all-warnings -diag-suppress 177 "${@:2}" -o "$folder/$1.ptx" "$folder/$1.cu"
  echo "$1.cl ${*:2}: $(grep -c '\.entry ' "$folder/$1.ptx") kernels"
}

for table in "" -DTABLE_BFLOAT16 -DTABLE_FLOAT16; do
  check rows -DROWS_PER_GROUP=8 ${table:+"$table"} -DACCUMULATE
done
check logits -DROWS_PER_GROUP=8 -DCHUNK=8192 -DEDIT_SET=0 -DEDIT_FILL_ROW=2
check attention -DD_KV=64 -DGROUP_X=16 -DGROUP_Y=16 -DROWS=2
check caches -DD_KV=64 -DHEADS=8 -DPAGE=24 -DGROUP=64
for stored in 0 1 2; do
  check weights -DWIDTH=64 -DSTORED=$stored -DSOURCE=$stored -DSTEPS=16
  check linear -DWIDTH=64 -DPANELS=1 -DGROUP_COLS=16 -DGROUP_ROWS=16 -DTILE_ROWS=4 -DDEPTH=16 \
    -DSTORED=$stored -DGATED=1 -DACTIVATION=2
done
