#!/bin/sh
# A fresh Debian in a folder, which tests enter with chroot: it has its own Python and what the README asks for. It is made
# once, by root, with debootstrap. The first argument is the suite, such as bookworm. The script prints the folder; with
# --find it makes nothing, and fails if there is none.
set -eu
suite=$1
packages=python3,python3-venv,git,make,curl,ca-certificates
folder=${XDG_CACHE_HOME:-$HOME/.cache}/stream-server/$suite-$(echo "$packages" | cksum | cut -d' ' -f1)
if [ ! -e "$folder" ]; then
  [ "${2:-}" != --find ] || exit 1
  mkdir -p "${folder%/*}"
  rm -rf "$folder.part"
  # The script is that of unstable, because an older debootstrap does not know the name of each suite.
  debootstrap --variant=minbase --include="$packages" "$suite" "$folder.part" "" sid >"$folder.log" 2>&1 || {
    cat "$folder.log" >&2
    exit 1
  }
  mv "$folder.part" "$folder"
fi
echo "$folder"
