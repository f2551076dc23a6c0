#!/bin/sh
# Sets up, builds and runs all tests but the slow ones: ./test.sh [ctest options, e.g. -R config].
# The slow ones: ctest --test-dir build/release -L slow
# A skipped test must be listed in tests/allowed_skips.txt with a condition that holds; any other skip fails.
set -eu
cd "$(dirname "$0")"

BUILD=build/release
jobs=$(nproc)

./scripts/setup.sh
cmake --preset release -DZEROTH_BUILD_TESTS=ON  # quickstart.sh leaves the tests out
cmake --build --preset release --parallel "$jobs"

results="$BUILD/test_results.xml"
rm -f "$results"
status=0
ctest --test-dir "$BUILD" --parallel "$jobs" -LE slow --output-on-failure --test-output-size-passed 10000000 \
  --test-output-size-failed 10000000 --output-junit "$PWD/$results" "$@" </dev/null || status=$?
./scripts/check_skips.sh "$results" tests/allowed_skips.txt || status=1
exit "$status"
