# Prints how many words a title has.
printf '%s\n' "$1" | tr ' ' '\n' | wc -l
