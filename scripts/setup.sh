#!/bin/sh
# Installs what building and testing Zeroth needs, from the system's own packages. Does nothing where all is
# there already. Needs root or sudo only when something is missing.
set -eu

# The same names on Debian 12 (tested), Debian 13 and Ubuntu 24.04 (from universe).
PACKAGES="cmake ninja-build g++ pkg-config git
libtorch-dev libdnnl-dev
nlohmann-json3-dev libfmt-dev libpcre2-dev libutf8proc-dev libxxhash-dev libminizip-dev zlib1g-dev
libopenmpi-dev openmpi-bin liburing-dev libhwy-dev
libyaml-cpp-dev libgtest-dev"

say() { printf 'setup: %s\n' "$*"; }

# The wanted packages that dpkg does not know as installed.
missing_packages() {
  # shellcheck disable=SC2086  # one word per package
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $PACKAGES 2>/dev/null | sed -n 's/^installed //p' | tr '\n' ' ')
  for package in $PACKAGES; do
    case " $installed " in
      *" $package "*) ;;
      *) printf '%s ' "$package" ;;
    esac
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    say "root or sudo is needed to run: $*" >&2
    exit 6
  fi
}

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
  say "this system has no apt. Install these by its own means (Debian's names), then build with" >&2
  say "  cmake --preset release && cmake --build --preset release" >&2
  say "$PACKAGES" | tr '\n' ' ' >&2
  printf '\n' >&2
  say "that is: CMake 3.25+, Ninja, a C++20 compiler, LibTorch 1.13 or newer, oneDNN, nlohmann-json, fmt, PCRE2, utf8proc, xxHash, zlib, liburing, Highway, GoogleTest" >&2
  exit 6
fi

missing=$(missing_packages)
if [ -z "$missing" ]; then
  say "every package is installed"
  exit 0
fi

say "installing: $missing"
as_root apt-get update -q
# shellcheck disable=SC2086  # one word per package
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
say "done"
