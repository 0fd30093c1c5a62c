#!/usr/bin/env bash
# example_backend.sh SOURCE BUILD COMPILER SANITIZERS: installs BUILD into an empty folder, builds a
# copy of examples/backend against it, and uses the module; what mydev computes is what the yardstick
# computes, byte by byte.
set -euo pipefail
source=$1 build=$2 compiler=$3 sanitizers=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$folder/quintet" >/dev/null
cp -r "$source/examples/backend" "$folder/backend"
cd "$folder/backend"
cmake -S . -B build -DCMAKE_PREFIX_PATH="$folder/quintet" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror ${sanitizers:+-fsanitize=$sanitizers}" >/dev/null
cmake --build build >/dev/null
quintet=$folder/quintet/bin/quintet
module=$folder/backend/build/libmydev.so
cd "$folder"

listed=$("$quintet" devices --backend "$module" 2>&1)
[[ $listed == *mydev:0* && $listed == *mydev:1* ]] || fail "quintet devices does not list mydev: $listed"

embed() {  # OUTPUT DEVICES [MORE]
  "$quintet" embed --model "$source/examples/prott5-tiny" --input short.fasta --output "$1" \
    --devices "$2" --quiet "${@:3}"
}
printf '>a\nMKTAYIAKQR\n>b\nMSLLTEVETYVLSIIPSGPLKAEIAQRLEDVF\n' >short.fasta
embed yardstick.jsonl reference:0
embed one.jsonl mydev:0 --backend "$module"
embed two.jsonl mydev:0,mydev:1 --device-map even --backend "$module"
embed mixed.jsonl reference:0,mydev:1 --device-map even --backend "$module"
for output in one two mixed; do
  cmp "$output.jsonl" yardstick.jsonl || fail "$output.jsonl differs from the yardstick's"
done

generate() {  # MODEL OUTPUT DEVICES [MORE]
  "$quintet" generate --model "$source/tests/fixtures/decoders/$1" --input ids.jsonl \
    --output "$2" --devices "$3" --max-new-tokens 6 --quiet "${@:4}"
}
printf '{"id": "a", "input_ids": [3, 17, 9, 1]}\n' >ids.jsonl
for model in t5 gpt2; do
  generate $model yardstick.$model.jsonl reference:0
  generate $model two.$model.jsonl mydev:0,mydev:1 --device-map even --backend "$module"
  cmp two.$model.jsonl yardstick.$model.jsonl || fail "$model: tokens differ from the yardstick's"
done

# Every class, split in every way, as the spec file beside the example says; under sanitizers one.
"$folder/quintet/bin/quintet-conformance" --device-spec backend/spec.json \
  ${sanitizers:+--only T5EncoderModel --test test_reload} >conformance.txt 2>&1 ||
  fail "conformance: $(cat conformance.txt)"

refused() {  # CODE TEXT DEVICES [MORE]: embed ends with that code and says that text
  local code=0 said
  said=$(embed none.jsonl "$3" "${@:4}" 2>&1) || code=$?
  [[ $code == "$1" && $said == *"$2"* ]] || fail "$3 ${*:4} gave $code: $said"
}
refused 2 "there are mydev:0 and mydev:1" mydev:7 --backend "$module"
refused 2 "no libquintet_mydev.so is in" mydev:0
broken=$build/src/backends/test_modules
refused 2 "libtest_module_0.so: has no entry point" toy:0 --backend "$broken/libtest_module_0.so"
refused 2 "libtest_module_2.so: made for another quintet" toy:0 --backend "$broken/libtest_module_2.so"
refused 1 "the cable is unplugged" toy:0 --backend "$broken/libquintet_toy.so"

# Found by its devices' name alone, in a folder that the environment names or beside the program's;
# a module that cannot be used is a note there.
mkdir modules
cp "$module" modules/libquintet_mydev.so
QUINTET_BACKEND_PATH=$folder/modules embed found.jsonl mydev
cmp found.jsonl yardstick.jsonl || fail "found.jsonl differs from the yardstick's"
cp "$module" quintet/lib/quintet/libquintet_mydev.so
cp "$broken/libtest_module_2.so" quintet/lib/quintet/libquintet_old.so
embed installed.jsonl mydev:1
cmp installed.jsonl yardstick.jsonl || fail "installed.jsonl differs from the yardstick's"
listed=$("$quintet" devices 2>&1)
[[ $listed == *mydev:1* && $listed == *"note: "*libquintet_old.so* ]] || fail "quintet devices: $listed"
echo "the example backend builds and works"
