"""A server of the Model Context Protocol over standard streams that is at odds with it,
in the way that its argument names."""

import json
import sys
import time

MODE = sys.argv[1]
TOOL = {"name": "fine", "description": "Does nothing.", "inputSchema": {"type": "object"}}


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(method, params):
    """A result, or an error's words."""
    if method == "initialize":
        if MODE == "refuses":
            return "the variable ODD_KEY is not set"
        version = {"old": "2024-11-05", "unknown": "2099-01-01"}.get(MODE)
        return {
            "protocolVersion": version or params["protocolVersion"],
            "capabilities": {} if MODE == "toolless" else {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
    if method == "tools/list":
        if MODE == "dies":
            print("out of luck", file=sys.stderr, flush=True)
            sys.exit(9)
        if MODE == "locked":
            return "its database is locked"
        if MODE == "no list":
            return {"tools": "many"}
        if MODE == "toolless":
            return None
        odd = [{"name": 5}, {"name": "bare"}, {"name": "fine", "description": "Another.", "inputSchema": {}}]
        if MODE == "many":
            odd = [{**TOOL, "name": f"tool{at}"} for at in range(600)]
        return {"tools": [TOOL, *(odd if MODE in ("odd tools", "many") else [])]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "fine"}]}
    return {}


if MODE == "wants a variable":
    print("Error: ODD_KEY has to be set\n    at odd.py\nNode.js v24", file=sys.stderr, flush=True)
    sys.exit(1)
if MODE == "shows its usage":
    print("Usage: odd --root DIR", flush=True)
    sys.exit(2)
if MODE == "with a banner":
    print("Odd server, running", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    key = message["id"]
    result = answer(message["method"], message.get("params") or {})
    if result is None:
        send({"jsonrpc": "2.0", "id": key, "error": {"code": -32601, "message": "Method not found"}})
    elif isinstance(result, str):
        send({"jsonrpc": "2.0", "id": key, "error": {"code": -32000, "message": result}})
    else:
        send({"jsonrpc": "2.0", "id": key, "result": result})
