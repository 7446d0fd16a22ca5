failed=0
check() {
    got=$(sh src/slug.sh "$1")
    if [ "$got" = "$2" ]; then
        echo "ok: '$1' is '$got'"
    else
        echo "FAILED: '$1' is '$got', should be '$2'"
        failed=1
    fi
}
check 'Hello World' 'hello-world'
check 'Many   spaces' 'many-spaces'
exit $failed
