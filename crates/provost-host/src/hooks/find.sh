# The git directory of the checkout $1, as $found; empty if it cannot be told.
find_git() {
  found=$1/.git
  if [ -f "$found" ]; then
    read -r _ found <"$1/.git"
    case $found in /*) ;; *) found=$1/$found ;; esac
  fi
  [ -f "$found/HEAD" ] || found=
}
# The git directory of this checkout and the one that all checkouts share, as $here and $common. The root of
# the environment never counts: bindings are read where they were when this hook was installed.
find_root() {
  if [ -n "$GIT_DIR" ]; then found=$GIT_DIR; else find_git .; fi
  here=$found
  common=$found
  if [ -f "$here/commondir" ]; then
    read -r rest <"$here/commondir"
    case $rest in /*) common=$rest ;; *) common=$here/$rest ;; esac
  fi
}
# Whether git runs this hook for the repository that it was installed for; a path alone does not tell.
is_installed() {
  [ -n "$common" ] && [ "$common" -ef "$repository" ]
}
ask() {
  if ! is_installed; then
    if [ -d "$repository" ]; then
      echo "error[HOOK_BROKEN]: this hook was installed for $repository, not for ${common:-this place}" >&2
    else
      echo "error[HOOK_BROKEN]: $repository is gone, and this hook was installed for it" >&2
    fi
    echo "hint: install it again here: provost hook install" >&2
    exit 1
  fi
  PROVOST_ROOT=$root
  export PROVOST_ROOT
  exec "$provost" hook run "$@" --process "$PPID" >&2
}
