#!/usr/bin/env bash
# From a bare Debian 12 to the first tables: installs what is missing, builds the release, runs
# `lipsa bound-sweep` with its defaults. Tables on stdout, the rest on stderr; safe to run again.
#
#   bash apps/quickstart.sh
#
# Exit code: 3 when packages cannot be installed, else that of the step that failed.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common/setup.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common/setup.sh"
(($# == 0)) || fail 2 "takes no arguments, got: $*"

install_missing "${build_packages[@]}"

# A tree that was configured with tests keeps them; nobody needs them here.
tests=()
[[ -f $root/build/release/build.ninja ]] || tests=(-DLIPSA_BUILD_TESTS=OFF)
configure release "${tests[@]}"
build release --target apps/all

cd "$root"
say "build/release/apps/lipsa bound-sweep"  # --resume: goes on where an interrupted run stopped
status=0
build/release/apps/lipsa bound-sweep --resume || status=$?

shopt -s globstar nullglob
kinds=(csv:'table' json:'rows, settings, times' png:'picture' svg:'picture' gp:'gnuplot script')
if ((status == 0 || status == 4)); then  # 4: a search did not settle; its row says so
  say "the tables are above; files:"
  for kind in "${kinds[@]}"; do
    for file in bound-sweep/**/*."${kind%%:*}"; do
      printf '  %-24s %s\n' "${kind#*:}" "$root/$file" >&2
    done
  done
fi
exit "$status"
