#!/bin/bash
# Proof: SIGKILL at 100 random moments of a run, at least 30 of them inside a save, and on from the
# newest checkpoint each time; in the end the weights are those of the run that nobody touched.
#   tests/processes/kill_test.sh [kills]
# Prints the counts and ends with 1 if a bit differs or a folder cannot be gone on from.
set -euo pipefail
cd "$(dirname "$0")/../.."
ZEROTH_TEST_KILLS=${1:-100} build/release/tests/zeroth_killed_test
