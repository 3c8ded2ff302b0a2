"""A server of the Model Context Protocol that wants a login, and the authorization
server that gives it: `auth_server.py FILE` writes its port to FILE.

It is stricter than most: a code counts once, for one client, address and challenge;
a token is renewed with the newest refresh token alone, and an old one revokes all.
What tests ask of it is at /control: `/control?revoke=access`, `revoke=all`,
`lasts=SECONDS`, `scope=SCOPE`, `secret=SECRET` (of `by:hand`), `state`. A client that was
registered by hand is `by:hand`, with the secret `s3cret/+`; one that describes itself
at an address is `https://me.example/crabtalk.json`.
"""

import base64
import hashlib
import json
import secrets
import sys
import urllib.parse

import mcp_server

WELL_KNOWN = "/.well-known/oauth-"


class State:
    lasts = 3600
    scope = "tools"
    clients = {
        "by:hand": {"secret": "s3cret/+"},
        "https://me.example/crabtalk.json": {},
    }
    codes = {}
    access = {}
    refresh = {}
    spent = set()
    counts = {"alone": 0, "registered": 0, "exchanged": 0, "renewed": 0, "refused": 0, "reused": 0}


class Handler(mcp_server.Handler):
    def base(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def say(self, status, body, headers=()):
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        if path == WELL_KNOWN + "protected-resource/mcp":
            self.say(200, {
                "resource": self.base() + "/mcp",
                "authorization_servers": [self.base()],
                "scopes_supported": [State.scope],
            })
        elif path == WELL_KNOWN + "authorization-server":

            self.say(200, {
                "issuer": self.base(),
                "authorization_endpoint": self.base() + "/authorize",
                "token_endpoint": self.base() + "/token",
                "registration_endpoint": self.base() + "/register",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                "authorization_response_iss_parameter_supported": True,
            })
        elif path == "/authorize":
            self.authorize(asked)
        elif path == "/control":
            self.control(asked)
        elif path == "/mcp":
            super().do_GET()
        else:
            self.say(404, {})

    def authorize(self, asked):
        client = State.clients.get(asked.get("client_id"))
        wrong = (
            client is None
            # Of one that is known otherwise any port of the loopback is.
            or asked.get("redirect_uri") not in client.get("redirect_uris", [asked.get("redirect_uri")])
            or asked.get("response_type") != "code"
            or asked.get("code_challenge_method") != "S256"
            or asked.get("resource") != self.base() + "/mcp"
            or not asked.get("state")
        )
        if wrong:
            return self.say(400, {"error": "invalid_request", "asked": asked})
        code = secrets.token_urlsafe()
        State.codes[code] = asked
        query = urllib.parse.urlencode({"code": code, "state": asked["state"], "iss": self.base()})
        self.send_response(302)
        self.send_header("Location", asked["redirect_uri"] + "?" + query)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def control(self, asked):
        if "lasts" in asked:
            State.lasts = int(asked["lasts"])
        if "scope" in asked:
            State.scope = asked["scope"]
        if "secret" in asked:
            State.clients["by:hand"]["secret"] = asked["secret"]
        if "revoke" in asked:
            State.access.clear()
            if asked["revoke"] == "all":
                State.refresh.clear()
        self.say(200, State.counts)

    def do_POST(self):
        if self.path == "/mcp":
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            scope = State.access.get(token)
            if scope is None:
                State.counts["refused"] += 1
                where = self.base() + WELL_KNOWN + "protected-resource/mcp"
                challenge = f'Bearer resource_metadata="{where}", scope="{State.scope}"'
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                return self.say(401, {"error": "invalid_token"}, [("WWW-Authenticate", challenge)])
            if State.scope not in scope.split():
                where = self.base() + WELL_KNOWN + "protected-resource/mcp"
                challenge = f'Bearer error="insufficient_scope", scope="{State.scope}", resource_metadata="{where}"'
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                return self.say(403, {"error": "insufficient_scope"}, [("WWW-Authenticate", challenge)])
            return super().do_POST()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/register":
            wanted = json.loads(body)
            if not all(uri.startswith("http://127.0.0.1:") for uri in wanted["redirect_uris"]):
                return self.say(400, {"error": "invalid_redirect_uri"})
            State.counts["registered"] += 1
            name = secrets.token_urlsafe(8)
            State.clients[name] = wanted
            return self.say(201, {"client_id": name, **wanted})
        if self.path == "/token":
            return self.token(self.proven(body))
        self.say(404, {})

    def proven(self, body):
        """What a form asks for, with the client that it is from; None: it is not."""
        asked = dict(urllib.parse.parse_qsl(body.decode()))
        how, _, pair = self.headers.get("Authorization", "").partition(" ")
        if how == "Basic":
            name, _, secret = base64.b64decode(pair).decode().partition(":")
            asked["client_id"] = urllib.parse.unquote_plus(name)
            asked["client_secret"] = urllib.parse.unquote_plus(secret)
        client = State.clients.get(asked.get("client_id"), {})
        return asked if asked.get("client_secret") == client.get("secret") else {}

    def token(self, asked):
        if not asked:
            return self.say(401, {"error": "invalid_client"})
        if asked.get("resource") != self.base() + "/mcp":
            return self.say(400, {"error": "invalid_target"})
        if asked.get("grant_type") == "authorization_code":
            began = State.codes.pop(asked.get("code"), None)
            verifier = hashlib.sha256(asked.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
            if (
                began is None
                or began["code_challenge"] != challenge
                or began["client_id"] != asked.get("client_id")
                or began["redirect_uri"] != asked.get("redirect_uri")
            ):
                return self.say(400, {"error": "invalid_grant"})
            State.counts["exchanged"] += 1
            return self.give(asked["client_id"], began.get("scope", ""))
        if asked.get("grant_type") == "client_credentials":
            if "secret" not in State.clients.get(asked.get("client_id"), {}):
                return self.say(400, {"error": "unauthorized_client"})
            State.counts["alone"] += 1
            access = "at-" + secrets.token_urlsafe()
            State.access[access] = asked.get("scope", "")
            return self.say(200, {
                "access_token": access, "token_type": "Bearer",
                "expires_in": State.lasts, "scope": asked.get("scope", ""),
            })
        if asked.get("grant_type") == "refresh_token":
            token = asked.get("refresh_token")
            if token in State.spent:
                # Somebody has a copy.
                State.counts["reused"] += 1
                State.access.clear()
                State.refresh.clear()
            known = State.refresh.pop(token, None)
            if known is None or known[0] != asked.get("client_id"):
                return self.say(400, {"error": "invalid_grant"})
            State.spent.add(token)
            State.counts["renewed"] += 1
            return self.give(*known)
        self.say(400, {"error": "unsupported_grant_type"})

    def give(self, client, scope):
        access, refresh = "at-" + secrets.token_urlsafe(), "rt-" + secrets.token_urlsafe()
        State.access[access] = scope
        State.refresh[refresh] = (client, scope)
        self.say(200, {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": State.lasts,
            "refresh_token": refresh,
            "scope": scope,
        })


if __name__ == "__main__":
    mcp_server.serve(sys.argv[1], Handler)
