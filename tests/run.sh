#!/usr/bin/env bash
# Installs what is missing, builds, runs every test through CTest. Stops at the first failure.
#
#   bash tests/run.sh            release with GCC, every test
#   bash tests/run.sh --quick    without those labelled slow
#   bash tests/run.sh --all      first: shell syntax, format, the program with Clang, each header
#                                compiled alone, clang-tidy, sanitisers
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../apps/common/setup.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/../apps/common/setup.sh"

all=false
filter=()
for argument in "$@"; do
  case $argument in
    --all) all=true ;;
    --quick) filter=(-LE slow) ;;
    *)
      sed -n '2,/^set/s/^#[ ]\{0,1\}//p' "$0" >&2
      [[ $argument == --help ]] && exit 0
      fail 2 "unknown option $argument"
      ;;
  esac
done

check() { # preset [ctest options]: builds a preset and runs its tests
  configure "$1" -DLIPSA_BUILD_TESTS=ON
  build "$1"
  say "testing: $1"
  (cd "$root" && ctest --preset "$@" -j "$(nproc)")
}

cd "$root"
if $all; then
  install_missing "${build_packages[@]}" "${test_packages[@]}" "${check_packages[@]}" "${proof_packages[@]}"

  say "shell syntax"
  for script in .ci/run apps/*.sh apps/*/*.sh datasets/*.sh tests/*.sh; do
    bash -n "$script"
  done

  say "format"
  find lib apps tests -name '*.[ch]pp' -exec clang-format --dry-run -Werror {} +

  check clang

  # Of the tests only what their compilation says: Catch2 makes clang-tidy slower than all the rest.
  say "clang-tidy"
  run-clang-tidy -quiet -j "$(nproc)" -p build/clang "^$root/(lib|apps)/.*\.cpp$"

  check asan
else
  install_missing "${build_packages[@]}" "${test_packages[@]}"
fi
# Last, so that the closing line of the log is that of the whole.
check release "${filter[@]}"
