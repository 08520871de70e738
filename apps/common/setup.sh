# shellcheck shell=bash disable=SC2034
# Sourced by apps/quickstart.sh and tests/run.sh: the Debian packages this project needs, and how
# it is configured and built. All that these functions print goes to stderr.

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)

# libzip's CMake file insists on the three zip tools.
build_packages=(g++ cmake ninja-build ccache
  libboost-dev libboost-program-options-dev libeigen3-dev libflint-arb-dev libflint-dev libfmt-dev
  libopenblas-dev librandom123-dev libtbb-dev libzip-dev nlohmann-json3-dev
  zipcmp zipmerge ziptool
  gnuplot-nox)
# tidy checks the page of `lipsa paper-tables`.
test_packages=(catch2 libbenchmark-dev tidy)
# llvm has the symbolizer: without it a sanitizer's report has no names.
check_packages=(clang clang-format clang-tidy libclang-rt-14-dev llvm)
# coqchk comes with coq.
proof_packages=(coq libcoq-coquelicot libcoq-interval)

say() { printf '\n== %s\n' "$*" >&2; }

fail() { # exit-code message
  printf '%s: %s\n' "$(basename -- "$0")" "$2" >&2
  exit "$1"
}

# Installs those of the named Debian packages that are not there; nothing to do is nothing done.
# Exit code 3: they cannot be installed.
install_missing() {
  local package missing=()
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local by_hand="install by hand: apt-get install --no-install-recommends ${missing[*]}"
  command -v apt-get >/dev/null ||
    fail 3 "apt-get is not there, so this is not Debian. Needed, by their names in Debian 12: ${missing[*]}"
  local sudo=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail 3 "neither root nor sudo; as root, $by_hand"
    sudo=(sudo)
  fi
  say "installing ${missing[*]}"
  local apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update >&2 </dev/null || printf 'apt-get update failed; trying with the lists at hand\n' >&2
  "${apt[@]}" install --no-install-recommends "${missing[@]}" >&2 </dev/null ||
    fail 3 "apt-get could not install the packages (its reason is above); $by_hand"
}

# configure PRESET [cmake options]
configure() {
  # Relative paths let ccache recognise a file in another clone; precompiled headers want the
  # sloppiness. An empty launcher is none.
  export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
  say "configuring: $1"
  (cd "$root" && CXX=g++ cmake --preset "$@" --log-level=WARNING \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)") >&2
}

# build PRESET [cmake --build options]
build() {
  say "building: $1"
  (cd "$root" && cmake --build --preset "$@" -j "$(nproc)") >&2
}
