"""A model by script, for the real Codex, Claude Code and Gemini CLI programs.

A list of turns is for one conversation. Where several agents ask the model, SCRIPT is an object: the
first word of the objective of an agent, and its turns. In "input" of a call, $CHILD1 and $CHILD2 stand for the children that the conversation named first.

usage: model.py SCRIPT LOG [CERTIFICATE KEY [ADDRESS PORT]]

Speaks the Responses API of OpenAI, the Messages API of Anthropic and the Gemini API of Google, as
far as the programs need them. SCRIPT is a JSON list of turns: {"shell": COMMAND}, {"tool": NAME,
"input": OBJECT} for a tool of Claude Code, {"call": NAME} for the offered tool whose name ends like that, {"read": PATH} by
the tool for that, where there is one, {"program": EXPRESSION} for the one tool of newer models of Codex, {"text": WORDS}, {"answer": OBJECT} for an answer that a schema is bound to, or {"status": NUMBER} for a refusal; after the last one
it says "done". A turn with "wait" is answered only after so many seconds. A turn with "tokens" says that it wrote so many. Each request for a turn becomes a line of LOG, and the tokens of each reply one of
LOG.served. SCRIPT may be {"scenes": [{"when": WORDS, "turns": TURNS}]} instead: a
request gets a turn of the first scene whose words it has, by how many it got before. Prints its
port.
"""

import json
import re
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG = open(sys.argv[2], "a")
LOCK = threading.Lock()
TAKEN = {}
CONTENT_USAGE = {"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 5,
                 "totalTokenCount": 15}


def turns():
    # Read anew each time: a test may write the turns once it knows where everything is.
    return json.load(open(sys.argv[1]))


def served(*tokens):
    """Notes the tokens of a reply beside the log: those read, those of them cached, those written."""
    with LOCK, open(sys.argv[2] + ".served", "a") as file:
        file.write(json.dumps(tokens) + "\n")


def all_of(words, text):
    return not [word for word in words if word not in text]


def taken(request):
    """How many turns of the model a request has."""
    said = [message for message in request.get("messages", []) if message["role"] == "assistant"]
    calls = [item for item in request.get("input", [])
             if item.get("type") in ("function_call", "custom_tool_call")
             or item.get("role") == "assistant"]
    return len(said) + len(calls)


def take(request, text):
    """The next turn of the conversation, and its number among all turns."""
    all, words = turns(), ""
    if isinstance(all, dict) and "scenes" in all:
        scene = next((it for it in all["scenes"] if all_of(it["when"], text)), {"turns": []})
        number = taken(request)
        list = scene["turns"]
        return (list[number] if number < len(list) else {"text": "done"}), number
    if isinstance(all, dict):
        found = re.search(r"# Objective(?:\\+n)+(\w+)", json.dumps(request))
        words = found.group(1) if found else ""
        all = all.get(words, [])
    with LOCK:
        number = TAKEN.get(words, 0)
        TAKEN[words] = number + 1
        total = sum(TAKEN.values()) - 1
    turn = all[number] if number < len(all) else {"text": "done"}
    return filled(turn, request), total


def filled(turn, request):
    """The turn with the names of children in the place of $CHILD1 and so on."""
    if "$CHILD" not in json.dumps(turn):
        return turn
    said = json.dumps(request)
    children = list(dict.fromkeys(re.findall(r'child[\\\\"]+:\s*[\\\\"]+(run_\w+)', said)))
    text = json.dumps(turn)
    for number, child in enumerate(children, 1):
        text = text.replace(f"$CHILD{number}", child)
    return json.loads(text)


def written(turn):
    """The tokens that the model says it wrote."""
    return turn.get("tokens", 5)


def note(line):
    with LOCK:
        LOG.write(json.dumps(line) + "\n")
        LOG.flush()


def offered(tools, end, group=None):
    """The name of the tool whose name ends like that, and the group that it is in."""
    for tool in tools:
        name = tool.get("name", "")
        if name.endswith(end):
            return name, group
        for inner in ("tools", "functionDeclarations"):
            found = offered(tool.get(inner, []), end, name or None)
            if found:
                return found
    return None


def code(turn):
    """A turn as the program that a model writes where its one tool runs programs."""
    if "shell" in turn:
        call = f"tools.exec_command({json.dumps({'cmd': turn['shell'], 'yield_time_ms': 30000})})"
    elif "call" in turn:
        # The description leaves tools of servers out.
        found = f"ALL_TOOLS.find(tool => tool.name.endsWith({json.dumps(turn['call'])})).name"
        call = f"tools[{found}]({json.dumps(turn.get('input', {}))})"
    else:
        call = turn["program"]
    return f'// @exec: {{"yield_time_ms": 60000}}\nconst result = await {call};\ntext(result);'


def responses(request, turn, number):
    """The events of one turn, as the Responses API has them."""
    tools = list(request.get("tools") or [])
    for item in request["input"]:
        if item.get("type") == "additional_tools":
            tools += item["tools"]
    names = {tool.get("name") for tool in tools}
    if "read" in turn:
        turn = {"shell": "cat " + turn["read"]}
    runs = next((inner for tool in tools if tool.get("name") == "functions"
                 for inner in tool["tools"] if inner["name"] == "exec"), None)
    if runs and turn.keys() & {"shell", "call", "program"}:
        item = {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}",
                "namespace": "functions", "name": "exec",
                "input": code(turn)}
    elif "shell" in turn:
        name, arguments = "shell", {"command": ["bash", "-lc", turn["shell"]]}
        if "exec_command" in names:
            name, arguments = "exec_command", {"cmd": turn["shell"]}
        elif "shell_command" in names:
            name, arguments = "shell_command", {"command": turn["shell"]}
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
                "name": name, "arguments": json.dumps(arguments)}
    elif "call" in turn:
        name, group = offered(tools, turn["call"])
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
                "name": name, "arguments": json.dumps(turn.get("input", {}))}
        if group:
            item["namespace"] = group
    else:
        text = json.dumps(turn["answer"]) if "answer" in turn else turn["text"]
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant",
                "content": [{"type": "output_text", "text": text}]}
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4},
             "output_tokens": written(turn), "output_tokens_details": None,
             "total_tokens": 10 + written(turn)}
    identity = f"resp_{number}"
    return [
        {"type": "response.created", "response": {"id": identity}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": identity, "usage": usage}},
    ]


def messages(request, turn, number):
    """The events of one turn, as the Messages API has them."""
    tool = None
    if "shell" in turn:
        tool = ("Bash", {"command": turn["shell"], "description": "a step"})
    elif "tool" in turn:
        tool = (turn["tool"], turn["input"])
    elif "call" in turn:
        tool = (offered(request["tools"], turn["call"])[0], turn.get("input", {}))
    elif "read" in turn:
        tool = ("Read", {"file_path": turn["read"]})
    elif "answer" in turn:
        tool = ("StructuredOutput", turn["answer"])
    if tool:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(tool[1])}
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": turn["text"]}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant",
               "model": request.get("model", "m"), "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": {"input_tokens": 6, "output_tokens": 1,
                                                "cache_read_input_tokens": 4}}
    reason = "tool_use" if tool else "end_turn"
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
         "usage": {"output_tokens": written(turn)}},
        {"type": "message_stop"},
    ]


def content(request, turn, number):
    """The pieces of one turn, as the Gemini API has them."""
    if "shell" in turn:
        arguments = {"command": turn["shell"], "description": "a step"}
        parts = [[{"functionCall": {"name": "run_shell_command", "args": arguments}}]]
    elif "read" in turn:
        arguments = {"file_path": turn["read"]}
        parts = [[{"functionCall": {"name": "read_file", "args": arguments}}]]
    elif "call" in turn:
        name = offered(request["tools"], turn["call"])[0]
        parts = [[{"functionCall": {"name": name, "args": turn.get("input", {})}}]]
    else:
        text = json.dumps(turn["answer"]) if "answer" in turn else turn["text"]
        # In two pieces: who reads must put them together.
        parts = [[{"text": text[:3]}], [{"text": text[3:]}]]
    pieces = [{"candidates": [{"content": {"role": "model", "parts": part}, "index": 0}],
               "modelVersion": request["model"]} for part in parts]
    pieces[-1]["candidates"][0]["finishReason"] = "STOP"
    pieces[-1]["usageMetadata"] = dict(CONTENT_USAGE, candidatesTokenCount=written(turn),
                                       totalTokenCount=10 + written(turn))
    return pieces


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self):
        self.reply(200, "text/plain", b"")

    def other(self, path):
        """Notes a request that is no turn beside the log."""
        with LOCK, open(sys.argv[2] + ".others", "a") as file:
            file.write(f"{self.command} {path}\n")

    def do_GET(self):
        self.other(self.path.partition("?")[0])
        self.reply(200, "application/json", b'{"data": [], "models": []}')

    def route(self):
        first = turns()[:1] if isinstance(turns(), list) else []
        if first and "status" in first[0]:
            return self.refuse(first[0]["status"])
        score = json.dumps({"complexity_reasoning": "it is easy", "complexity_score": 10})
        part = {"content": {"role": "model", "parts": [{"text": score}]}, "finishReason": "STOP"}
        served(10, 4, 5)
        self.reply(200, "application/json", json.dumps(
            {"candidates": [part], "usageMetadata": CONTENT_USAGE}).encode())

    def refuse(self, status):
        with LOCK, open(sys.argv[2] + ".refused", "a") as file:
            file.write(f"{time.time()}\n")
        error = {"type": "error", "error": {"type": "refused", "message": "no such model",
                                            "code": status, "status": "REFUSED"}}
        self.reply(status, "application/json", json.dumps(error).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        make = {"/v1/responses": responses, "/backend-api/codex/responses": responses,
                "/v1/messages": messages}.get(path)
        if path.endswith(":generateContent"):
            # Gemini asks another model first which model it should ask.
            return self.route()
        if path.endswith(":streamGenerateContent"):
            make = content
        if make is None:
            self.other(path)
            return self.reply(200, "application/json", b'{"input_tokens": 10, "totalTokens": 10}')
        request = json.loads(body)
        if make is content:
            # There the model is part of the address.
            request["model"] = path.rpartition("/")[2].partition(":")[0]
        turn, number = take(request, body.decode())
        key = next((self.headers[name] for name in ("Authorization", "X-Api-Key", "X-Goog-Api-Key")
                    if self.headers[name]), None)
        note({"key": key, "account": self.headers["ChatGPT-Account-ID"],
              "beta": self.headers["anthropic-beta"], "request": request})
        if "status" in turn:
            return self.refuse(turn["status"])
        time.sleep(turn.get("wait", 0))
        served(10, 4, written(turn))
        events = make(request, turn, number)
        named = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
        lines = [f"{name}data: {json.dumps(event)}\n\n" for name, event in zip(named, events)]
        self.reply(200, "text/event-stream", "".join(lines).encode())


place = (sys.argv[5], int(sys.argv[6])) if len(sys.argv) > 5 else ("127.0.0.1", 0)
server = ThreadingHTTPServer(place, Model)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[3:5])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
