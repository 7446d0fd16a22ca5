#!/bin/sh
# Attacks on files of the host, by the tools that every machine has.
# Ends with 0 if it got out; what it could read goes to its output.
set -eu
git="$HOST/repository/.git"
case "$1" in
control) true ;;
read_secret) cat "$HOST/secret" ;;
append_secret) echo x >> "$HOST/target" ;;
truncate_secret) : > "$HOST/target" ;;
overwrite_by_dd) dd if=/dev/zero of="$HOST/target" bs=1 count=1 conv=notrunc ;;
chmod_secret) chmod 0666 "$HOST/target" && [ "$(stat -c %a "$HOST/target")" = 666 ] ;;
change_times) touch -d 2001-01-01 "$HOST/target" ;;
rename_secret) mv "$HOST/target" "$HOST/moved" && mv "$HOST/moved" "$HOST/target" ;;
remove_file) rm "$HOST/doomed" && : > "$HOST/doomed" ;;
create_beside) : > "$HOST/created" && rm "$HOST/created" ;;
through_symlink) ln -sfn "$HOST" link && cat link/secret ;;
through_dots) cat "../host/secret" ;;
hard_link) ln -f "$HOST/target" hard && echo x >> hard ;;
list_home) ls "$HOST/home" && cat "$HOST/home/.netrc" ;;
become_owner) : > owner && chmod 4755 owner && [ "$(stat -c %a owner)" = 4755 ] && rm owner ;;
system_file) cat /etc/shadow ;;
git_hook) printf '#!/bin/sh\n' > "$git/hooks/post-checkout" && chmod +x "$git/hooks/post-checkout" ;;
git_config) git config --file "$git/config" core.fsmonitor "$PWD/evil" ;;
git_ref) echo 0123456789012345678901234567890123456789 > "$git/refs/heads/main" ;;
git_commit) git --git-dir="$git" cat-file -p "$BLOB" ;;
tar_out) tar -C / -cf - "${HOST#/}/secret" 2> /dev/null | tar -xOf - ;;
shared_memory) cat "/dev/shm/$NAME" ;;
write_beside_program) : > /usr/local/bin/provost-escape && rm /usr/local/bin/provost-escape ;;
kernel_setting) cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern ;;
control_group) mkdir "/sys/fs/cgroup/$NAME" && rmdir "/sys/fs/cgroup/$NAME" ;;
*) exit 127 ;;
esac
