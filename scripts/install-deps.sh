#!/usr/bin/env bash
# Installs the Debian packages that the build and the tests need, and only those that are missing.
# Further packages may be named as arguments.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config ccache
  libhwy-dev nlohmann-json3-dev libcli11-dev libfmt-dev libhdf5-dev hdf5-tools
  opencl-headers opencl-clhpp-headers ocl-icd-opencl-dev
  zlib1g-dev libhwloc-dev libxxhash-dev libmd-dev libutf8proc-dev libre2-dev libgtest-dev libgmock-dev
  "$@"
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [[ $status == *"ok installed"* ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "This system has no apt-get; install what these Debian packages hold: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "Missing packages: ${missing[*]}. Install them as root, or install sudo." >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
