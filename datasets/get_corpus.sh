#!/usr/bin/env bash
# Puts an English text in the public domain, the King James Bible, into a folder, as a corpus of
# characters for `lipsa`: one verse a line, the first 90 % in kjv.train.txt, the next 5 % in
# kjv.valid.txt, the rest in kjv.test.txt. The text comes from the Debian package bible-kjv, which is
# installed if it is missing; nothing else is downloaded. Safe to run again: what is there stays.
#
#   bash datasets/get_corpus.sh FOLDER
#
# Exit code: 2 for a wrong argument, 3 when the package cannot be installed or holds another text,
# 5 when the files cannot be written.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../apps/common/setup.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/../apps/common/setup.sh"

usage='usage: bash datasets/get_corpus.sh FOLDER'
if [[ ${1:-} == --help ]]; then
  sed -n '2,/^set/s/^#[ ]\{0,1\}//p' "$0"
  exit 0
fi
(($# == 1)) || fail 2 "takes one folder, got $# arguments; $usage"
[[ -n $1 && $1 != -* ]] || fail 2 "not a folder: '$1'; $usage"
folder=${1%/}
[[ -n $folder ]] || folder=/

# What bible-kjv 4.38 of Debian 12 gives; the rows of datasets/README.md.
sums='
69fa66f31ac1af235ecf48e58a0d3fab609cc88d5927fe86950de119014698d3  kjv.train.txt
e0362303ff8237894c17a7ed4b61c0dac0b529beea50104fa8b3a75318d63d9b  kjv.valid.txt
9cd9765785c0bd19701f05073f086f9db7e95393b00a6c781a906c13d5074a0a  kjv.test.txt'

# intact FOLDER: whether it holds the three files as expected.
intact() { (cd "$1" && sha256sum --check --status --strict <<<"${sums#?}") 2>/dev/null; }

if [[ -d $folder ]]; then
  if intact "$folder"; then
    printf 'kjv.train.txt, kjv.valid.txt and kjv.test.txt are in %s already\n' "$folder" >&2
    exit 0
  fi
  for part in train valid test; do # one of them may be missing, after a run that was interrupted
    file=kjv.$part.txt
    [[ ! -e $folder/$file ]] || grep -F " $file" <<<"$sums" |
      (cd "$folder" && sha256sum --check --status --strict) ||
      fail 5 "$folder/$file is there and is another text: move it away, or take another folder"
  done
fi
cannot_write() { fail 5 "cannot write to the folder $folder"; }
mkdir -p -- "$folder" 2>/dev/null || cannot_write

install_missing bible-kjv
command -v bible >/dev/null || fail 3 "bible-kjv is installed, but its program 'bible' is not found"

temporary=$(mktemp -d -- "$folder/.get_corpus.XXXXXX") || cannot_write
trap 'rm -rf -- "$temporary"' EXIT

# One verse a line, after its reference ("Ge1:1 "). The program looks for its data in the current
# folder first: -p takes only those of the package.
bible -p /usr/lib/ -f 'gen1:1-rev22:21' </dev/null >"$temporary/verses" 2>"$temporary/errors" ||
  fail 3 "bible ended with an error: $(head -n 1 "$temporary/errors")"
LC_ALL=C sed -E 's/^[0-9]?[A-Za-z]+[0-9]+:[0-9]+ //' "$temporary/verses" >"$temporary/text" ||
  cannot_write

verses=$(wc -l <"$temporary/text")
train=$((verses * 90 / 100)) valid=$((verses * 5 / 100))
part() { sed -n "$1p" "$temporary/text" >"$temporary/kjv.$2.txt" || cannot_write; }
part "1,$train" train
part "$((train + 1)),$((train + valid))" valid
part "$((train + valid + 1)),\$" test

intact "$temporary" || fail 3 "bible-kjv $(dpkg-query -W -f '${Version}' bible-kjv 2>/dev/null) does\
 not give the text of version 4.38 (Debian 12): $verses verses, expected 31102; nothing was written"
for part in train valid test; do
  mv -f -- "$temporary/kjv.$part.txt" "$folder/kjv.$part.txt" || cannot_write
done
printf '%s verses in %s: kjv.train.txt, kjv.valid.txt, kjv.test.txt\n' "$verses" "$folder" >&2
