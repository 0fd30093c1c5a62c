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

# Found by its devices' name alone.
mkdir modules
cp "$module" modules/libquintet_mydev.so
QUINTET_BACKEND_PATH=$folder/modules embed found.jsonl mydev
cmp found.jsonl yardstick.jsonl || fail "found.jsonl differs from the yardstick's"

generate() {  # OUTPUT DEVICES [MORE]
  "$quintet" generate --model "$source/tests/fixtures/decoders/t5" --input ids.jsonl \
    --output "$1" --devices "$2" --max-new-tokens 6 --quiet "${@:3}"
}
printf '{"id": "a", "input_ids": [3, 17, 9, 1]}\n' >ids.jsonl
generate yardstick.gen.jsonl reference:0
generate two.gen.jsonl mydev:0,mydev:1 --device-map even --backend "$module"
cmp two.gen.jsonl yardstick.gen.jsonl || fail "generated tokens differ from the yardstick's"

# A name that the module does not know ends with what it says.
code=0
said=$(embed none.jsonl mydev:7 --backend "$module" 2>&1) || code=$?
[[ $code == 2 && $said == *"there are mydev:0 and mydev:1"* ]] || fail "mydev:7 gave $code: $said"
echo "the example backend builds and works"
