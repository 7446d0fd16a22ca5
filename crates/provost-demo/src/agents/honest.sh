# An honest agent: does what its contract asks for, and says so.
cat > src/slug.sh <<'PROGRAM'
# Prints a title as a slug: lower case, words joined by one dash.
printf '%s\n' "$1" | tr 'A-Z' 'a-z' | tr -s ' ' '-'
PROGRAM
sh tests/slug_test.sh
