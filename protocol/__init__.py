"""The wire of livesign: events, replies, codec and clients. No gevent, no pykka, no clock."""
