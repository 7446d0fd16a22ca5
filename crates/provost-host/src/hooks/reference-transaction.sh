if [ "$1" != prepared ]; then
  [ -x "$before" ] || exit 0
  exec "$before" "$@"
fi
line='
'
# A few lines are read here, because to start `cat` takes longer. Of many lines only those about branches and
# HEAD are kept, unless a hook that was there before wants all of them.
matter=' (refs/heads/|HEAD$|main-worktree/|worktrees/)'
input=
count=0
while [ $count -lt 20 ] && IFS= read -r text; do
  input=$input$text$line
  count=$((count + 1))
done
if [ $count -eq 20 ]; then
  if [ -x "$before" ]; then more=$(cat); else more=$(LC_ALL=C grep -E "$matter"); fi
  # What cannot be read is left to the program, which refuses it.
  [ $? -le 1 ] || more=' refs/heads/ cannot be read'
  input=$input$more
fi
input=${input%"$line"}
chained() {
  [ -x "$before" ] || exit 0
  printf '%s\n' "$input" | "$before" "$@"
  exit
}
# From here to the end everything is decided without starting a program, because git asks about every
# ref of every fetch. Only what moves a bound branch, or the HEAD of a bound checkout, is judged.
ask=
head=
case "$input$line" in *" HEAD$line"*) head=yes ;; esac
# The HEAD of another checkout is hardly ever moved.
case $input in *' main-worktree/'* | *' worktrees/'*) head=yes; ask=yes ;; esac
case $head$input in yes* | *' refs/heads/'*) ;; *) chained "$@" ;; esac
zero=0000000000000000000000000000000000000000
packed() {
  [ -f "$common/packed-refs" ] && grep -F " $1" "$common/packed-refs"
}
# Whether the branch $1 is about to lead elsewhere than it does; to pack refs is no move. One that is bound by
# its name ($2) may not go either, because git renames another branch onto it by removing it.
moves() {
  now=none
  [ -f "$common/$1" ] && read -r now <"$common/$1"
  case "$input$line" in
    *" $1$line"*) ;;
    *"$zero refs/heads/"*)
      # A branch that is not there is made by renaming another one, of which git tells only that it goes.
      if [ "$now" = none ]; then case "$(packed "$1")$line" in *" $1$line"*) ;; *) ask=yes ;; esac; fi
      # Onto which branch it is renamed is known from the command line alone, before anything is gone.
      if [ "$2" = named ] && [ -r "/proc/$PPID/cmdline" ]; then
        IFS= read -r words <"/proc/$PPID/cmdline"
        case $words in *"${1#refs/heads/}"*) ask=yes ;; esac
      fi
      return ;;
    *) return ;;
  esac
  case "$input$line" in *" $now $1$line"*) return ;; esac
  case "$input$line" in
    *"$zero $1$line"*)
      [ "$2" = named ] || return
      case "$input$line" in
        *"$now $zero"*) case "$(packed "$1")$line" in *"$now $1$line"*) return ;; esac ;;
      esac ;;
  esac
  ask=yes
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
find_root
# What is stored in another way than in plain files is not read here.
[ -n "$here" ] && [ ! -e "$common/reftable" ] || ask=yes
[ -n "$require" ] && [ -n "$here" ] && stands_on "$here"
# Whether something moves that a bound checkout holds; $1 is its git directory.
holds() {
  # The program refuses where the checkout cannot be found.
  if [ ! -f "$1/HEAD" ]; then ask=yes; return; fi
  stands_on "$1"
  [ "$1" -ef "$here" ] || return
  # On no branch; which one it comes back to is known to git alone.
  read -r name <"$1/HEAD"
  case $head$name in 'ref: '*) ;; *) ask=yes ;; esac
}
scan() {
  [ -f "$1" ] || return
  known=
  given=
  while IFS= read -r text; do
    case $text in
      *'"checkout": "'*) rest=${text#*'"checkout": "'} ;;
      *'"branch": "'*) rest=${text#*'"branch": "'} ;;
      *'"git_dir": "'*) rest=${text#*'"git_dir": "'} ;;
      *'"bindings": []'*) known=yes; continue ;;
      *) continue ;;
    esac
    known=yes
    rest=${rest%'"'*}
    # A name with an escape in it is left to the program.
    case $rest in *'\'*) ask=yes ;; esac
    case $text in
      *'"branch": "'*) moves "$rest" named ;;
      # The git directory identifies a checkout, whose path follows. A path alone identifies none: it is of an
      # earlier build, or the checkout is gone.
      *'"git_dir": "'*) given=yes; holds "$rest" ;;
      *) [ -n "$given" ] || ask=yes
         given= ;;
    esac
  done <"$1"
  # Bindings that cannot be read are not the same as none.
  [ -n "$known" ] || ask=yes
}
is_installed || ask=yes
scan "$root/hooks.json"
[ -n "$ask" ] || chained "$@"
