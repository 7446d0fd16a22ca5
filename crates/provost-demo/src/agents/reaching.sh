# An agent that reaches for what no contract gives: a private key, the main checkout, the network.
# Its arguments say where they are: $1 is the key, $2 the checkout, $3 the port of a listener.
cat "$1"
echo '# an agent was here' >> "$2/src/slug.sh"
echo 'echo an agent was here' > "$2/.git/hooks/pre-commit"
git ls-remote "git://127.0.0.1:$3/stolen"
exit 0
