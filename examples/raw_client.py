"""The smallest client: a plain socket and msgpack, nothing of livesign's own.

``python raw_client.py SOCKET`` plays one short run and prints what livesign answers.
"""

import socket
import sys
import time

import msgpack

RUN = {"conversation": "chat-7", "message": 817}  # with several accounts: "account": "support"
EVENTS = [
    {"type": "received", "direct": True, **RUN},
    {"type": "thinking", **RUN},
    {"type": "done", "id": "last", **RUN},  # an event with an id is acknowledged
]

livesign = socket.socket(socket.AF_UNIX)
livesign.connect(sys.argv[1] if len(sys.argv) > 1 else sys.exit("usage: raw_client.py SOCKET"))
for event in EVENTS:
    livesign.sendall(msgpack.packb(event))
    time.sleep(1)  # so that there is something to see

livesign.shutdown(socket.SHUT_WR)  # only because this run is over: an open connection keeps runs alive
answers = msgpack.Unpacker()
while data := livesign.recv(4096):
    answers.feed(data)
print(*answers, sep="\n")
livesign.close()
