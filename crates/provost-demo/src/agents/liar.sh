# An agent that changes a comment and reports success.
echo '# Collapses repeated spaces.' >> src/slug.sh
task=$(sed -n 's/.*"task_id":"\([^"]*\)".*/\1/p' "$PROVOST_CONTRACT")
cat > "$PROVOST_RESULT" <<RESULT
{
  "task_id": "$task",
  "status": "SUCCESS",
  "summary": "Repaired the slug. All tests pass.",
  "evidence_refs": {},
  "failure": null
}
RESULT
