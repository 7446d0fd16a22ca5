failed=0
check() {
    got=$(sh src/words.sh "$1")
    if [ "$got" = "$2" ]; then
        echo "ok: '$1' has $got words"
    else
        echo "FAILED: '$1' has $got words, should be $2"
        failed=1
    fi
}
check 'Hello World' 2
check 'Many   spaces' 2
exit $failed
