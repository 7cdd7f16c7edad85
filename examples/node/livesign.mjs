// A client of livesign for Node: run handles, what shows, and remote execution over a socket. Needs @msgpack/msgpack, nothing else.
//
//   const livesign = new Livesign("/run/user/1000/livesign/livesign.sock");      // or { host, port, token }
//   await livesign.run({ conversation: "chat-7", message: 817, direct: true }, async (run) => {
//     run.thinking();
//     await run.tool("web_search", async () => { ... });
//   });                                                // left normally: done; an exception: error, and it goes on
//   livesign.execute("support", { set: async (call) => { ... }, typing_start: async (call) => { ... } });
//   livesign.subscribe((state) => console.log(state.run, state.phase, state.shown));      // what shows, with each change
//   await livesign.close();
//
// Every event has an id and is sent again over a new connection until it is acknowledged; runs are kept alive.

import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { decodeMultiStream, encode } from "@msgpack/msgpack";

const CAPACITY = 4096;
const PING_MS = 10_000;
const SILENCE_MS = 20_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
const DROPPABLE = new Set("queued waiting thinking tool compacting text progress alive typing_start".split(" "));
const ENDS = new Set(["done", "error", "cancelled", "silent", "clear", "merged"]);

/** A connection that is made again whenever it is lost. */
class Link {
  #address; #hello; #heard; #ready; #socket = null; #closed = false; #pause = FIRST_PAUSE_MS; #timer = null;
  #complaint = "";

  constructor(address, hello, ready, heard) {
    this.#address = typeof address === "string" ? { path: address } : { host: address.host, port: address.port };
    this.#hello = { type: "hello", protocol: 1, client: "livesign-node", token: address.token, ...hello };
    this.#ready = ready;
    this.#heard = heard;
    this.#connect();
  }

  send(event) {
    this.#socket?.write(encode(event, { ignoreUndefined: true }));
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.destroy();
  }

  #connect() {
    const socket = connect(this.#address);
    let last = Date.now();
    const pings = setInterval(() => {
      if (Date.now() - last > SILENCE_MS) socket.destroy();
      else if (this.#socket === socket) this.send({ type: "ping" });
    }, PING_MS);
    socket.on("connect", async () => {
      socket.write(encode(this.#hello, { ignoreUndefined: true }));
      try {
        for await (const reply of decodeMultiStream(socket)) {
          last = Date.now();
          if (reply.type === "welcome") {
            this.#socket = socket;
            this.#pause = FIRST_PAUSE_MS;
            this.#complaint = "";
            this.#ready(reply);
          } else if (reply.type === "closing") {
            this.#complain(reply.reason);
            socket.end();
          } else if (this.#socket === socket) this.#heard(reply); // a refused hello is told by the closing after it
        }
      } catch { /* the socket's end is all that matters */ }
    });
    socket.on("error", (error) => this.#complain(error.message));
    socket.on("close", () => {
      clearInterval(pings);
      if (this.#socket === socket) this.#socket = null;
      if (this.#closed) return;
      this.#timer = setTimeout(() => this.#connect(), this.#pause * (0.5 + Math.random() / 2));
      this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE_MS);
    });
  }

  /** Say once why there is no connection. */
  #complain(reason) {
    if (reason !== this.#complaint && !this.#closed) console.warn(`no connection to livesign: ${reason}`);
    this.#complaint = reason;
  }
}

/** One run. Made by `Livesign.run` or `Livesign.open`. */
export class Run {
  #livesign; #names; #calls = 0; ended = null;

  constructor(livesign, { conversation, account, message, run, thread, lease_ms, ...received }) {
    this.#livesign = livesign;
    this.#names = { conversation, account, message, run, thread };
    const type = Object.keys(received).length ? "received" : "progress";
    this.opening = { type, lease_ms, ...received, ...this.#names };
    livesign.send(this.opening);
  }

  get key() { return [this.#names.account, this.#names.conversation, this.#names.run ?? this.#names.message].join("\n"); }

  tell(type, fields = {}) {
    if (ENDS.has(type)) this.ended = type;
    return this.#livesign.send({ type, ...fields, ...this.#names });
  }

  queued() { this.tell("queued"); }
  waiting(on = "user") { this.tell("waiting", { on }); }
  thinking() { this.tell("thinking"); }
  text(visible = true) { this.tell("text", { visible }); }
  progress() { this.tell("progress"); }
  sending(final = false) { this.tell("sending", { final }); }
  sent(final = false, ok = true) { this.tell("sent", { final, ok }); }
  done(reason) { this.tell("done", { reason }); }
  error(reason) { this.tell("error", { reason }); }
  cancelled(reason) { this.tell("cancelled", { reason }); }
  silent(reason) { this.tell("silent", { reason }); }

  /** A tool, for as long as `work` takes. Tools may be nested and run side by side. */
  async tool(name, work) { return this.#span("tool", "tool_end", { name, call: String(++this.#calls) }, "call", work); }

  /** A helper run that keeps this one open, for as long as `work` takes. */
  async child(child, work) { return this.#span("child", "child_end", { child }, "child", work); }

  async #span(begin, end, fields, id, work) {
    this.tell(begin, fields);
    let ok = false;
    try {
      const result = await work();
      ok = true;
      return result;
    } finally {
      this.tell(end, { [id]: fields[id], ok });
    }
  }
}

/** A session with livesign. `address`: path of its Unix socket, or { host, port, token }. */
export class Livesign {
  #address; #link; #prefix = randomUUID().slice(0, 8); #count = 0; #waiting = new Map(); #idle = []; #open = new Map();
  #executors = []; #subscriptions = []; #beat;

  constructor(address, { session = randomUUID() } = {}) {
    this.#address = address;
    this.#link = new Link(address, { session }, () => this.#begin(), (reply) => this.#heard(reply));
    this.#beat = setInterval(() => {
      for (const run of this.#open.values()) run.tell("alive");
    }, PING_MS);
    this.#beat.unref();
  }

  /** Hand over an event; returns its id. Never waits. Events worth little when late give way in a full buffer. */
  send(event) {
    const id = event.id ?? `${this.#prefix}-${++this.#count}`;
    if (this.#waiting.size >= CAPACITY) {
      const [victim] = [...this.#waiting].find(([, each]) => DROPPABLE.has(each.type)) ?? [];
      if (victim === undefined && !DROPPABLE.has(event.type)) throw new Error("too many events wait for livesign");
      if (victim === undefined) return id;
      this.#waiting.delete(victim);
    }
    this.#waiting.set(id, { ...event, id });
    this.#link.send({ ...event, id });
    return id;
  }

  /** A run that the caller ends: `run.done()`, `run.error()`, `run.cancelled()` or `run.silent()`. */
  open(fields) {
    const run = new Run(this, fields);
    this.#open.set(run.key, run);
    return run;
  }

  /** A run for as long as `work(run)` takes. */
  async run(fields, work) {
    const run = this.open(fields);
    try {
      const result = await work(run);
      if (!run.ended) run.done();
      return result;
    } catch (error) {
      if (!run.ended) error?.name === "AbortError" ? run.cancelled(error.name) : run.error(error?.name);
      throw error;
    }
  }

  /** Have `onState(state)` called with what shows of every run, or of one account or conversation: first of the runs that
   * are open, then with each change; after a reconnect anew. Of a run that has ended, `mark` is what people saw, once
   * `final`. Needs the grant to subscribe. */
  subscribe(onState, { account, conversation } = {}) {
    const event = { type: "subscribe", account, conversation: conversation?.toString() };
    this.#subscriptions.push({ event, onState });
    this.#link.send(event);
  }

  /** Make the calls of a remote account: `functions` by op (set, remove, clear, typing_start, typing_stop).
   * A function returns nothing, or { outcome, handle, retry_after_ms, scope, detail }; what it throws is bad_request.
   * Resolves when livesign has agreed. */
  execute(account, functions) {
    const hello = { role: "execute" };
    return new Promise((resolve, reject) => {
      const link = new Link(
        this.#address, hello, () => link.send({ type: "subscribe", what: "calls", account, id: "calls" }),
        async (reply) => {
          if (reply.type === "ack" && reply.id === "calls") resolve();
          const refusal = reply.type === "rejected" && `${reply.code}: ${reply.detail}`;
          if (refusal && reply.id === "calls") reject(new Error(refusal));
          else if (refusal) console.warn(`livesign rejected an answer: ${refusal}`);
          if (reply.type !== "call") return;
          const answer = await outcomeOf(functions[reply.op], reply);
          link.send({ type: "call_result", call_id: reply.call_id, ...answer });
        },
      );
      this.#executors.push(link);
    });
  }

  /** Wait until everything is acknowledged, `timeoutMs` at most; resolves to whether it is. */
  async flush(timeoutMs = 5000) {
    let timer;
    const late = new Promise((resolve) => { timer = setTimeout(resolve, timeoutMs); });
    if (this.#waiting.size) await Promise.race([new Promise((resolve) => this.#idle.push(resolve)), late]);
    clearTimeout(timer);
    return !this.#waiting.size;
  }

  /** Wait for the last acks, then disconnect; resolves to whether all have come. */
  async close(timeoutMs = 2000) {
    const complete = await this.flush(timeoutMs);
    clearInterval(this.#beat);
    for (const link of [this.#link, ...this.#executors]) link.close();
    return complete;
  }

  #begin() {
    // What a livesign that was started anew has to hear of runs that are open; then what it has not acknowledged.
    for (const { event } of this.#subscriptions) this.#link.send(event);
    for (const run of this.#open.values()) this.#link.send(run.opening);
    for (const event of this.#waiting.values()) this.#link.send(event);
  }

  #heard(reply) {
    if (reply.type === "state") return this.#tell(reply);
    if (reply.type === "gap") for (const { event } of this.#subscriptions) this.#link.send(event); // some were not read in time
    if (reply.type !== "ack" && reply.type !== "rejected") return;
    if (reply.type === "rejected") console.warn(`livesign rejected an event: ${reply.code}: ${reply.detail}`);
    this.#waiting.delete(reply.id);
    for (const [key, run] of this.#open) if (run.ended) this.#open.delete(key);
    if (!this.#waiting.size) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #tell(state) {
    for (const { event, onState } of this.#subscriptions) {
      if (![undefined, state.account].includes(event.account)) continue;
      if (![undefined, state.conversation].includes(event.conversation)) continue;
      try {
        onState(state);
      } catch (error) {
        console.error(error);
      }
    }
  }
}

async function outcomeOf(work, call) {
  if (!work) return { outcome: "bad_request", detail: `there is no function for ${call.op}` };
  try {
    return { outcome: "ok", ...(await work(call)) };
  } catch (error) {
    const retry_after_ms = error?.retry_after_ms;
    return { outcome: retry_after_ms === undefined ? "bad_request" : "rate_limited", retry_after_ms, detail: error?.name };
  }
}
