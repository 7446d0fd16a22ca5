# Prints a title as a slug: lower case, words joined by one dash.
printf '%s\n' "$1" | tr 'A-Z ' 'a-z-'
