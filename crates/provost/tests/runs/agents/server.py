"""An MCP server that keeps to the protocol, or breaks it in the way that its argument names."""

import json
import sys
import time

WAY = sys.argv[1]


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def work(call):
    thread = call["arguments"].get("threadId")
    print("called", call["name"], "with", thread, file=sys.stderr)
    with open("src/a.txt", "w") as file:
        file.write("worse\n" if WAY == "fixes" and not thread else "good\n")


if WAY == "silent":
    time.sleep(600)
for line in sys.stdin:
    asked = json.loads(line)
    method, number = asked.get("method"), asked.get("id")
    if method == "initialize":
        if WAY == "flood":
            while True:
                print("x" * 100_000)
        if WAY == "long":
            print("x" * (5 << 20), flush=True)
        say({"id": number + (WAY == "other"), "result": {
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "it", "version": "1"}}})
    elif method == "tools/list":
        say({"id": number, "result": {"tools": [
            {"name": name, "description": "a tool", "inputSchema": {"type": "object", "properties": {}}}
            for name in ("work", "go-on")]}})
    elif method == "tools/call":
        # The client refuses this request, and the server continues.
        say({"id": "s-1", "method": "sampling/createMessage", "params": {}})
        work(asked["params"])
        words = json.dumps({"status": "SUCCESS", "summary": asked["params"]["name"], "failure": None})
        say({"id": number, "result": {"content": [{"type": "text", "text": words}],
                                      "structuredContent": {"threadId": "t-1"}}})
if WAY == "stays":
    time.sleep(600)
