// The smallest client: a plain socket and msgpack, nothing of livesign's own.
// `npm install && node raw_client.mjs SOCKET` plays one short run and prints what livesign answers.

import { connect } from "node:net";
import { decodeMultiStream, encode } from "@msgpack/msgpack";

const run = { conversation: "chat-7", message: 818 }; // with several accounts: account: "support"
const events = [
  { type: "received", direct: true, ...run },
  { type: "thinking", ...run },
  { type: "done", id: "last", ...run }, // an event with an id is acknowledged
];

if (process.argv.length < 3) throw new Error("usage: node raw_client.mjs SOCKET");
const livesign = connect(process.argv[2]);
for (const event of events) {
  livesign.write(encode(event));
  await new Promise((done) => setTimeout(done, 1000)); // so that there is something to see
}

livesign.end(); // only because this run is over: an open connection keeps runs alive
for await (const answer of decodeMultiStream(livesign)) console.log(answer);
