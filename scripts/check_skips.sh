#!/bin/sh
# check_skips.sh RESULTS.xml ALLOWED.txt: counts the tests of a JUnit file that ctest wrote, and fails if one was
# skipped without being allowed to. A case of ctest is one test, or a whole gtest program, whose tests are then counted
# by what it printed. A line of ALLOWED.txt is "name pattern | condition"; the condition is "needs FOLDER", which allows
# the skip only where that folder (beside the repository) is absent and the test itself gave the condition as its reason.
set -eu
results=$1
allowed=$2

if [ ! -f "$results" ]; then
  echo "tests: no results were written"
  exit 1
fi

# A line per test: status|name|what it printed.
tests=$(sed 's/<testcase /\n<testcase /g' "$results" | awk '
  function tell(status, name, text) { gsub(/\|/, " ", text); print status "|" name "|" text }
  function attribute(line, key) {
    if (!match(line, " " key "=\"[^\"]*\"")) return ""
    return substr(line, RSTART + length(key) + 3, RLENGTH - length(key) - 4)
  }
  function finish() {
    if (name != "" && inner == 0) tell(status, name, output)
    # A program that failed outside its tests, or in the middle of one, is one failure more.
    if (inner > 0 && status == "fail" && failures == 0) tell("fail", name, output)
    name = ""; output = ""; part = ""; inner = 0; failures = 0
  }
  function inner_test(line, state) {
    match(line, /\] [^ ,(]*/)
    tell(state, name "." substr(line, RSTART + 2, RLENGTH - 2), part)
    part = ""; inner++
  }
  /<testcase / { finish(); name = attribute($0, "name"); status = attribute($0, "status") }
  { output = output " " $0; part = part " " $0 }
  status == "notrun" || status == "disabled" || name ~ /\./ { next }
  /\[ RUN      \]/ { part = "" }
  /\[       OK \] .* \([0-9]+ ms\)/ { inner_test($0, "run") }
  /\[  SKIPPED \] .* \([0-9]+ ms\)/ { inner_test($0, "notrun") }
  /\[  FAILED  \] .* \([0-9]+ ms\)/ { inner_test($0, "fail"); failures++ }
  END { finish() }
')

count() { printf '%s\n' "$tests" | grep -c "^$1|" || true; }

# $1: the test's name; $2: what it printed
is_allowed() {
  while IFS='|' read -r pattern condition; do
    pattern=$(echo "$pattern" | sed 's/^ *//; s/ *$//')
    condition=$(echo "$condition" | sed 's/^ *//; s/ *$//')
    # shellcheck disable=SC2254  # the pattern is meant as one
    case "$pattern" in
      '' | '#'*) ;;
      *)
        case "$1" in
          $pattern)
            case "$2" in
              *"$condition"*) [ ! -e "${condition#needs }" ] && return 0 ;;
            esac
            ;;
        esac
        ;;
    esac
  done <"$allowed"
  return 1
}

passed=$(count run)
failed=$(count fail)
skipped=$(($(count notrun) + $(count disabled)))
refused=0
skips=$(printf '%s\n' "$tests" | grep -E '^(notrun|disabled)\|' || true)
while IFS='|' read -r status name text; do
  [ -n "$status" ] || continue
  if ! is_allowed "$name" "$text"; then
    refused=$((refused + 1))
    echo "tests: $name was skipped, which tests/allowed_skips.txt does not allow here"
  fi
done <<EOF
$skips
EOF

echo "tests: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$refused" = 0 ] && [ "$passed" != 0 ]
