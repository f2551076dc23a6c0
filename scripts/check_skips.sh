#!/bin/sh
# check_skips.sh RESULTS.xml ALLOWED.txt: counts the tests of a JUnit file that ctest wrote, and fails if one was
# skipped without being allowed to. A line of ALLOWED.txt is "name pattern | condition"; the condition is
# "needs FOLDER", which allows the skip only where that folder (beside the repository) is absent and the test
# itself gave the condition as its reason.
set -eu
results=$1
allowed=$2

if [ ! -f "$results" ]; then
  echo "tests: no results were written"
  exit 1
fi

# One line per test: its element, with its output. ctest says run, fail, notrun or disabled.
tests=$(tr '\n' ' ' <"$results" | sed 's/<testcase /\n<testcase /g' | sed -n '/^<testcase /p')

count() { printf '%s\n' "$tests" | grep -c "^<testcase [^>]* status=\"$1\"" || true; }

name_of() { printf '%s\n' "$1" | sed 's/^<testcase name="\([^"]*\)".*/\1/'; }

# $1: the test's element; $2: its name
is_allowed() {
  while IFS='|' read -r pattern condition; do
    pattern=$(echo "$pattern" | sed 's/^ *//; s/ *$//')
    condition=$(echo "$condition" | sed 's/^ *//; s/ *$//')
    # shellcheck disable=SC2254  # the pattern is meant as one
    case "$pattern" in
      '' | '#'*) ;;
      *)
        case "$2" in
          $pattern)
            case "$1" in
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
skips=$(printf '%s\n' "$tests" | grep -E '^<testcase [^>]* status="(notrun|disabled)"' || true)
while IFS= read -r element; do
  [ -n "$element" ] || continue
  name=$(name_of "$element")
  if ! is_allowed "$element" "$name"; then
    refused=$((refused + 1))
    echo "tests: $name was skipped, which tests/allowed_skips.txt does not allow here"
  fi
done <<EOF
$skips
EOF

echo "tests: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$refused" = 0 ] && [ "$passed" != 0 ]
