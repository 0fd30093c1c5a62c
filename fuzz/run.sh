#!/usr/bin/env bash
# fuzz/run.sh SECONDS [BUILD_DIR]: runs every fuzz target found in BUILD_DIR (build/fuzz) for SECONDS
# each, as many at a time as there are cores. Ends with 1 if one crashes, takes over 2 GiB or over
# 10 s for one input; the input at fault is then under BUILD_DIR/findings/. Built by:
#   cmake --preset fuzz && cmake --build --preset fuzz --target fuzzers
set -u
seconds=${1:?usage: fuzz/run.sh SECONDS [BUILD_DIR]}
here=$(cd "$(dirname "$0")" && pwd)
build=${2:-$here/../build/fuzz}
findings=$build/findings
mkdir -p "$findings"

run_one() {
  local target=$1 name log scratch status
  name=$(basename "$target")
  name=${name#fuzz_}
  log=$findings/$name.log
  scratch=$(mktemp -d)
  mkdir -p "$here/corpus/$name"
  # New inputs go to the first folder, which is thrown away; the seeds stay as they are.
  "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -max_len=65536 \
    -artifact_prefix="$findings/$name-" "$scratch" "$here/corpus/$name" >"$log" 2>&1
  status=$?
  rm -rf "$scratch"
  if [ $status -ne 0 ]; then
    echo "fuzz $name: FAILED, see $log"
    tail -n 40 "$log"
  else
    echo "fuzz $name: $(tail -n 1 "$log")"
  fi
  return $status
}
export -f run_one
export seconds here findings

targets=()
for target in "$build"/fuzz_*; do
  if [ -f "$target" ] && [ -x "$target" ]; then targets+=("$target"); fi
done
if [ ${#targets[@]} -eq 0 ]; then
  echo "no fuzz targets in $build; build them first (see the head of $0)" >&2
  exit 1
fi
printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'run_one "$0" || exit 1' || exit 1
