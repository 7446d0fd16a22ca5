#!/bin/bash
# Attacks on processes of the host, and on what a program inherits.
# Ends with 0 if it got out; what it could read goes to its output.
set -eu
case "$1" in
control) true ;;
read_environment) tr '\0' '\n' < "/proc/$VICTIM/environ" ;;
read_arguments) tr '\0' '\n' < "/proc/$VICTIM/cmdline" ;;
read_open_file) cat "/proc/$VICTIM/fd/9" ;;
root_of_victim) cat "/proc/$VICTIM/root$HOST/secret" ;;
directory_of_victim) cat "/proc/$VICTIM/cwd/secret" ;;
root_of_parent) cat "/proc/$PPID/root$HOST/secret" ;;
signal_victim) kill -USR1 "$VICTIM" ;;
stop_victim) kill -STOP "$VICTIM" && kill -CONT "$VICTIM" ;;
slow_victim) renice -n 5 -p "$VICTIM" ;;
inherited_variable) [ -n "${INHERITED-}" ] && printf '%s\n' "$INHERITED" ;;
inherited_descriptor) cat <&9 ;;
tcp_by_shell) exec 3<> "/dev/tcp/127.0.0.1/$TCP" && cat <&3 ;;
udp_by_shell) exec 3<> "/dev/udp/127.0.0.1/$UDP" && echo x >&3 && head -n 1 <&3 ;;
new_user_namespace) unshare --user --map-root-user true ;;
mount_in_namespace) unshare --user --map-root-user --mount mount -t tmpfs none /mnt ;;
enter_namespace) nsenter --target "$VICTIM" --mount cat "$HOST/secret" ;;
# The server may listen on every address.
list_connections) grep -qi "$(printf ':%04X ' "$TCP")" /proc/net/tcp ;;
host_name) [ "$(uname -n)" = "$HOST_NAME" ] ;;
outlive)
    # Outside every group, session and parent that the sandbox may kill.
    (setsid sh -c 'trap "" HUP TERM INT; sleep 1.5; : > outlived' > /dev/null 2>&1 < /dev/null &)
    ;;
*) exit 127 ;;
esac
