"""A server over standard streams, with nothing but the standard library."""

import json
import os
import subprocess
import sys
import threading
import time

if os.environ.get("FAILS"):
    print("cannot begin", file=sys.stderr)
    sys.exit(3)

LOCK = threading.Lock()
CANCELLED = threading.Event()
ANSWERS = {}


def send(message):
    with LOCK:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(said):
    return {"content": [{"type": "text", "text": said}]}


def call(request):
    params = request["params"]
    name, arguments = params["name"], params.get("arguments", {})
    if name == "echo":
        return text(arguments["text"] + os.environ.get("ENDING", ""))
    if name == "pid":
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        return text(f"{os.getpid()} {child.pid}")
    if name == "die":
        os._exit(9)
    if name == "steps":
        token = params["_meta"]["progressToken"]
        for step in range(3):
            send({"method": "notifications/progress",
                  "params": {"progressToken": token, "progress": step, "message": f"step {step}"}})
        return text("done")
    if name == "ask":
        gone = threading.Event()
        ANSWERS["q"] = [gone, None]
        send({"id": "q", "method": "elicitation/create", "params": {
            "message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}})
        gone.wait()
        return text(ANSWERS["q"][1]["action"])
    if name == "wait":
        CANCELLED.wait()
        return text("cancelled")
    if name == "was_cancelled":
        return text(str(CANCELLED.wait(20)))
    raise ValueError(name)


def answer(request):
    method = request["method"]
    try:
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}},
                      "serverInfo": {"name": "plain", "version": "7"}, "instructions": "Be kind."}
        elif method == "tools/list":
            names = ["echo", "pid", "die", "steps", "ask", "wait", "was_cancelled"]
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        elif method == "tools/call":
            result = call(request)
        else:
            send({"id": request["id"], "error": {"code": -32601, "message": "no " + method}})
            return
        send({"id": request["id"], "result": result})
    except Exception as error:
        send({"id": request["id"], "error": {"code": -32602, "message": repr(error)}})


for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        ANSWERS["q"][1] = message["result"]
        ANSWERS["q"][0].set()
    elif "id" in message:
        threading.Thread(target=answer, args=(message,), daemon=True).start()
    elif message["method"] == "notifications/cancelled":
        CANCELLED.set()
