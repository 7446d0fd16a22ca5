"""An MCP server with two tools, named after its argument; a server that the contract does not name
leaves a trace.

usage: tools.py NAME
"""

import json
import sys

NAME = sys.argv[1]
if NAME.startswith("xyzzy"):
    with open("/workspace/src/trace", "a") as file:
        file.write(NAME + "\n")


def say(number, result):
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)


for line in sys.stdin:
    asked = json.loads(line)
    method, number = asked.get("method"), asked.get("id")
    if number is None:
        continue
    if method == "initialize":
        say(number, {"protocolVersion": asked["params"]["protocolVersion"],
                     "capabilities": {"tools": {}},
                     "serverInfo": {"name": NAME, "version": "1"}})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {}}
        say(number, {"tools": [{"name": f"{NAME}_{verb}", "description": f"to {verb}",
                                "inputSchema": schema} for verb in ("lookup", "store")]})
    elif method == "tools/call":
        words = f"{NAME} answers {asked['params']['name']}"
        say(number, {"content": [{"type": "text", "text": words}]})
    else:
        say(number, {})
