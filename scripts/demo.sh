#!/usr/bin/env bash
# Embeds the example proteins with the small random checkpoint and shows what was written.
set -euo pipefail
quintet=$1
model=examples/prott5-tiny
output=build/demo/proteins.h5
mkdir -p build/demo

echo "== The plan (from config.json and file headers alone)"
"$quintet" plan --model "$model" --input examples/proteins.fasta
echo
echo "== quintet embed --model $model --input examples/proteins.fasta --output $output"
"$quintet" embed --model "$model" --input examples/proteins.fasta --output "$output" --overwrite
echo
echo "== What is in $output: one dataset per protein, [residues, d_model]"
h5ls "$output"
echo
echo "The checkpoint's weights are random: it shows the program at work and says nothing about proteins."
