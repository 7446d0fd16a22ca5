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
# the environment never counts: bindings are read where they were when this hook was installed. A hook
# directory that another repository uses too says nothing about that one's root, which then is its usual one.
find_root() {
  if [ -n "$GIT_DIR" ]; then found=$GIT_DIR; else find_git .; fi
  here=$found
  common=$found
  if [ -f "$here/commondir" ]; then
    read -r rest <"$here/commondir"
    case $rest in /*) common=$rest ;; *) common=$here/$rest ;; esac
  fi
  [ -z "$common" ] || [ "$common" -ef "$repository" ] || root=
}
ask() {
  if [ ! -d "$repository" ]; then
    echo "error[HOOK_BROKEN]: $repository is gone, and this hook was installed for it" >&2
    echo "hint: install it again here: provost hook install" >&2
    exit 1
  fi
  if [ -n "$root" ]; then PROVOST_ROOT=$root; export PROVOST_ROOT; else unset PROVOST_ROOT; fi
  exec "$provost" hook run "$@" --process "$PPID" >&2
}
