#!/bin/bash
# Makes the attacks that are listed in the file `attacks`, one after the other, each for itself.
# The lines between `--- NAME` and `=== STATUS` are what it printed.
cd "$(dirname "$0")" || exit 2
. ./targets
while read -r name; do
    case "$name" in
    files.sh/*) program="sh files.sh" ;;
    processes.sh/*) program="bash processes.sh" ;;
    sockets.py/*) program="python3 sockets.py" ;;
    memory.py/*) program="python3 memory.py" ;;
    kernel.c/*) program="./kernel" ;;
    *) exit 2 ;;
    esac
    printf -- '\n--- %s\n' "$name"
    # $program is split into several arguments on purpose.
    # shellcheck disable=SC2086
    timeout 5 $program "${name#*/}" 2>&1
    printf '\n=== %s\n' "$?"
done < attacks
