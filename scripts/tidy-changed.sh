#!/usr/bin/env bash
# clang-tidy over the sources that differ from BASE (an argument; default: the commit that this
# branch left origin/main at, or the last commit where there is none). A header counts as its source.
set -euo pipefail
base=${1:-$(git merge-base origin/main HEAD 2>/dev/null || true)}
if [[ -z $base || $base == "$(git rev-parse HEAD)" ]]; then
  base=$(git rev-parse -q --verify HEAD~1 || git hash-object -t tree /dev/null)
fi
mapfile -t changed < <(git diff --name-only --diff-filter=d "$base" -- 'src/*' 'apps/*' |
  sed -n 's/\.h$/.cpp/p; /\.cpp$/p' | sort -u)
files=()
for file in "${changed[@]}"; do
  # Tests and what the compile commands do not know are left out.
  [[ -f $file && $file != *_test.cpp ]] && grep -q "/$file\"" build/release/compile_commands.json && files+=("$file")
done
echo "${#files[@]} files differ from $base"
[[ ${#files[@]} -eq 0 ]] && exit 0
printf '%s\n' "${files[@]}" | xargs -P 2 -n 2 clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option -p build/release
