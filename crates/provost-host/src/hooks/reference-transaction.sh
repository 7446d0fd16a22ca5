if [ "$1" != prepared ]; then
  [ -x "$before" ] || exit 0
  exec "$before" "$@"
fi
line='
'
# A few lines are read here, because to start `cat` takes longer.
input=
count=0
while [ $count -lt 20 ] && IFS= read -r text; do
  input=$input$text$line
  count=$((count + 1))
done
[ $count -lt 20 ] || input=$input$(cat)
input=${input%"$line"}
chained() {
  [ -x "$before" ] || exit 0
  printf '%s\n' "$input" | "$before" "$@"
  exit
}
# From here to the end everything is decided without starting a program, because git asks about every
# ref of every fetch. Only what moves a bound branch is judged.
case $input in *' refs/heads/'*) ;; *) chained "$@" ;; esac
ask=
# Whether the branch $1 is about to lead elsewhere than it does; to pack refs, or to remove one, is no move.
moves() {
  case "$input$line" in *" $1$line"*) ;; *) return ;; esac
  now=none
  [ -f "$common/$1" ] && read -r now <"$common/$1"
  case "$input$line" in *" $now $1$line"*) return ;; esac
  case "$input$line" in *" 0000000000000000000000000000000000000000 $1$line"*) return ;; esac
  ask=yes
}
# The git directory of the checkout $1, as $found; empty if it cannot be told.
find_git() {
  found=$1/.git
  if [ -f "$found" ]; then
    read -r _ found <"$1/.git"
    case $found in /*) ;; *) found=$1/$found ;; esac
  fi
  [ -f "$found/HEAD" ] || found=
}
# Whether one of the branches moves that the checkout with the git directory $1 is on.
stands_on() {
  for note in HEAD rebase-merge/head-name rebase-apply/head-name; do
    [ -f "$1/$note" ] || continue
    read -r name <"$1/$note"
    name=${name#ref: }
    case $name in refs/heads/.invalid) ask=yes ;; refs/heads/*) moves "$name" ;; esac
  done
}
if [ -n "$GIT_DIR" ]; then found=$GIT_DIR; else find_git .; fi
here=$found
common=$found
if [ -f "$here/commondir" ]; then
  read -r rest <"$here/commondir"
  case $rest in /*) common=$rest ;; *) common=$here/$rest ;; esac
fi
# What is stored in another way than in plain files is not read here.
[ -n "$here" ] && [ ! -e "$common/reftable" ] || ask=yes
[ -n "$require" ] && [ -n "$here" ] && stands_on "$here"
scan() {
  [ -f "$1" ] || return
  known=
  while IFS= read -r text; do
    case $text in
      *'"checkout": "'*) rest=${text#*'"checkout": "'} ;;
      *'"branch": "'*) rest=${text#*'"branch": "'} ;;
      *'"bindings": []'*) known=yes; continue ;;
      *) continue ;;
    esac
    known=yes
    rest=${rest%'"'*}
    # A name with an escape in it is left to the program.
    case $rest in *'\'*) ask=yes ;; esac
    case $text in
      *'"branch": "'*) moves "$rest" ;;
      *) find_git "$rest"
         if [ -n "$found" ]; then
           stands_on "$found"
           # On no branch; which one it comes back to is known to git alone.
           read -r name <"$found/HEAD"
           case $name in 'ref: '*) ;; *) [ "$found/HEAD" -ef "$here/HEAD" ] && ask=yes ;; esac
         fi ;;
    esac
  done <"$1"
  # Bindings that cannot be read are not the same as none.
  [ -n "$known" ] || ask=yes
}
if [ -n "$PROVOST_ROOT" ]; then
  scan "$PROVOST_ROOT/hooks.json"
else
  for place in ./.provost "$common/../.provost" "$common/.provost"; do scan "$place/hooks.json"; done
fi
[ -n "$ask" ] || chained "$@"
