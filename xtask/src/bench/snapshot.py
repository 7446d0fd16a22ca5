import hashlib
import json
import os
import sys

files = {}
for directory, below, names in os.walk(sys.argv[1]):
    if directory == sys.argv[1]:
        below.remove(".git")
    for name in names:
        path = os.path.join(directory, name)
        with open(path, "rb") as file:
            files[os.path.relpath(path, sys.argv[1])] = hashlib.sha256(file.read()).hexdigest()
json.dumps(files, sort_keys=True)
