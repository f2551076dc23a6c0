#!/bin/sh
# clang-tidy over the sources that differ from main's last commit, or over all: scripts/tidy.sh [--all]
# Needs clang-tidy (package clang-tidy) and a configured build/release.
set -eu
cd "$(dirname "$0")/.."

if ! command -v clang-tidy >/dev/null 2>&1; then
  echo "tidy: clang-tidy is missing; install the package clang-tidy" >&2
  exit 6
fi
if [ "${1:-}" = "--all" ]; then
  files=$(git ls-files 'src/*.cpp' 'examples/*.cpp')
else
  files=$(git diff --name-only HEAD -- '*.cpp'; git ls-files --others --exclude-standard -- '*.cpp')
fi
if [ -z "$files" ]; then
  echo "tidy: nothing has changed; --all checks everything"
  exit 0
fi
# shellcheck disable=SC2086  # one word per file
clang-tidy -p build/release --quiet $files
