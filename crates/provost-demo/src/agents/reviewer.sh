# A reviewer that tries a title no test has, on the tree as it would land.
title='One  more   title'
got=$(sh "$PROVOST_TREE/src/words.sh" "$title")
if [ "$got" = 3 ]; then
    verdict=PASS summary="'$title' has 3 words, and it says so"
else
    verdict=FAIL summary="'$title' has 3 words, and it says $got"
fi
cat > "$PROVOST_RESULT" <<RESULT
{ "verdict": "$verdict", "summary": "$summary", "violations": [], "findings": [] }
RESULT
