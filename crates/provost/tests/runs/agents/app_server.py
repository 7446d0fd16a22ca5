#!/usr/bin/env python3
"""Codex' app server by script, which keeps to the protocol, or breaks it in the way that its model is
named after.
"""

import json
import sys
import time

WAY = next(it for it in sys.argv if it.startswith("model=")).split("=")[1].strip('"')


def say(message):
    print(json.dumps(message), flush=True)


def notify(method, **params):
    say({"method": method, "params": {"threadId": "t-1", **params}})


def turn(status):
    notify("turn/completed", turn={"id": "u-1", "status": status, "error": None})


def work():
    with open("src/a.txt", "w") as file:
        file.write("good\n")
    notify("item/completed", item={"type": "agentMessage", "id": "m", "text": "done"})


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
        say({"id": number + (WAY == "other"), "result": {"userAgent": "it"}})
    elif method == "thread/start":
        say({"id": number, "result": {"thread": {} if WAY == "nameless" else {"id": "t-1"}}})
    elif method == "turn/start":
        say({"id": number, "result": {"turn": {"id": "u-1"}}})
        if WAY == "gone":
            sys.exit(0)
        if WAY in ("greedy", "curious"):
            for at in range(300 if WAY == "greedy" else 3):
                say({"id": f"s-{at}", "method": "item/tool/requestUserInput", "params": {}})
        work()
        turn("interrupted" if WAY == "interrupted" else "completed")
if WAY == "stays":
    time.sleep(600)
