"""Serves the model of model.py on a free port of loopback.

python3 server.py FILE CONTEXT

Writes the model, which reads CONTEXT tokens, to FILE. Prints the server's
address and ends with its input.
"""

import sys

import model
import xllamacpp

path, context = sys.argv[1], int(sys.argv[2])
model.write(path, context)
params = xllamacpp.CommonParams()
params.model.path = path
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = context
# One conversation at a time, so that what the cache holds is known.
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.warmup = False
params.ui = False
params.offline = True
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
