import json
import sys
import time

import jsonschema

payload = open(sys.argv[1], "rb").read()
schema = json.load(open(sys.argv[2], "rb"))
validator = jsonschema.Draft202012Validator(schema)
rounds = int(sys.argv[3])
began = time.perf_counter()
for _ in range(rounds):
    assert validator.is_valid(json.loads(payload))
print("jsonschema", (time.perf_counter() - began) / rounds * 1e6)
