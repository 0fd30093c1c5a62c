#!/usr/bin/env bash
# can_fail.sh PROGRAM MODULE: the suite passes on a backend that keeps its promises, and fails in the
# right place on the same backend with one of them broken.
set -euo pipefail
program=$1 module=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
cat >"$folder/spec.json" <<SPEC
{"device_name": "broken", "module": "$module", "devices": ["broken:0", "broken:1"], "device_count": true}
SPEC

run() {  # FAULT TEST EXPECTED-STATUS
  local status=0
  QUINTET_BROKEN=$1 "$program" --device-spec "$folder/spec.json" --only T5EncoderModel --test "$2" \
    --json "$folder/report.json" >"$folder/out.txt" 2>&1 || status=$?
  [[ $status == "$3" ]] || fail "fault '$1', $2: exit status $status, expected $3
$(cat "$folder/out.txt")"
}

for test in test_model_parallelization test_model_parallel_equal_results test_bad_maps test_device_count; do
  run none $test 0
done
run numbers test_model_parallel_equal_results 1
run stale test_model_parallel_equal_results 1
run crash test_model_parallel_equal_results 1
grep -q '"fail"' "$folder/report.json" || fail "the report does not name the crash as a failure"
run leak test_model_parallelization 1
run names test_bad_maps 1
run count test_device_count 1
echo "the suite fails where it should"
