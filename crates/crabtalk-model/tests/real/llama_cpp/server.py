"""Serves the model of model.py on a free port of loopback.

python3 server.py FILE

Writes the model to FILE, prints the server's address and ends with its input.
"""

import sys

import model
import xllamacpp

model.write(sys.argv[1])
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = model.CONTEXT
# One conversation at a time, so that what the cache holds is known.
params.n_parallel = 1
params.cpuparams.n_threads = 1
params.warmup = False
params.ui = False
params.offline = True
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
