"""The page at ``/``: chats, their messages with marks, who types, the count of calls. No other assets."""

from __future__ import annotations

_HTML = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>livesign sandbox</title>
<style>
:root { --ground: #f3f4f6; --card: #fff; --ink: #1c2430; --soft: #6b7686; --line: #e2e6eb; --user: #eef1f5;
  --bot: #dcebff; --mark: #fff; --live: #178a4c; --bad: #b3372f; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root {
  --ground: #14181e; --card: #1c222b; --ink: #e4e8ee; --soft: #92a0b3; --line: #2c3540; --user: #28313c;
  --bot: #1d3c63; --mark: #2b3542; --live: #4cc38a; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: 4px 18px; align-items: baseline; padding: 14px 20px;
  background: var(--card); border-bottom: 1px solid var(--line); }
h1 { font-size: 17px; margin: 0; }
header span, .note, .who, .empty { color: var(--soft); font-size: 13px; }
#link { margin-left: auto; }
#link.up { color: var(--live); }
#link.down { color: var(--bad); }
main { display: flex; flex-wrap: wrap; gap: 16px; padding: 16px 20px; align-items: flex-start; }
#chats { flex: 3 1 480px; display: grid; gap: 16px; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(270px, 1fr)); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; overflow: hidden; }
h2 { font-size: 14px; margin: 0; padding: 10px 14px; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
h2 .note { font-weight: normal; margin-left: 6px; }
.log { display: flex; flex-direction: column; gap: 10px; padding: 12px 14px; max-height: 360px;
  overflow-y: auto; }
.message { max-width: 88%; align-self: flex-start; }
.message.bot { align-self: flex-end; text-align: right; }
.text { display: inline-block; text-align: left; background: var(--user); padding: 7px 11px;
  border-radius: 12px; white-space: pre-wrap; overflow-wrap: anywhere; }
.bot .text { background: var(--bot); }
.marks { margin: -4px 8px 0; display: flex; flex-wrap: wrap; gap: 4px; }
.bot .marks { justify-content: flex-end; }
.marks span { background: var(--mark); border: 1px solid var(--line); border-radius: 11px; padding: 0 7px;
  font: 15px/20px "Apple Color Emoji", "Segoe UI Emoji", "Noto Color Emoji", system-ui, sans-serif; }
footer { color: var(--soft); font-size: 13px; padding: 0 14px 9px; min-height: 28px; }
footer i { display: inline-block; width: 5px; height: 5px; margin-right: 3px; border-radius: 50%;
  background: currentColor; animation: beat 1.2s infinite; }
footer i:nth-child(2) { animation-delay: .2s; }
footer i:nth-child(3) { animation-delay: .4s; margin-right: 7px; }
@keyframes beat { 0%, 60%, 100% { opacity: .25; } 30% { opacity: 1; } }
aside { flex: 1 1 260px; max-width: 420px; }
table { width: 100%; border-collapse: collapse; font-size: 13px; }
td { padding: 4px 14px; border-top: 1px solid var(--line); }
tr:first-child td { border-top: 0; }
td:last-child { text-align: right; font-variant-numeric: tabular-nums; }
.bad { color: var(--bad); }
.empty { padding: 14px; margin: 0; }
</style>
</head>
<body>
<header><h1>livesign sandbox</h1>
<span id="platform"></span><span id="totals"></span><span id="link"></span></header>
<main><div id="chats"></div>
<aside><section><h2>Calls<span class="note" id="total"></span></h2>
<table id="counts"></table></section></aside>
</main>
<script>
"use strict";
const byId = id => document.getElementById(id);
function node(tag, cls, text) {
  const made = document.createElement(tag);
  if (cls) made.className = cls;
  if (text !== undefined) made.textContent = text;
  return made;
}
function counted(number, word) { return number + " " + word + (number === 1 ? "" : "s"); }
function showMessage(message) {
  const box = node("div", message.bot ? "message bot" : "message");
  const thread = message.thread === null ? "" : " \\u00b7 thread " + message.thread;
  box.append(node("div", "who", (message.from || "message " + message.id) + thread));
  box.append(node("div", "text", message.text || "\\u2026"));
  if (message.marks.length) {
    const marks = node("div", "marks");
    for (const mark of message.marks) {
      const shown = node("span", "", mark.emoji);
      shown.title = mark.account;
      marks.append(shown);
    }
    box.append(marks);
  }
  return box;
}
function showTyping(typing) {
  const line = node("div");
  const thread = typing.thread === null ? "" : " in thread " + typing.thread;
  line.append(node("i"), node("i"), node("i"), typing.account + " is typing" + thread);
  return line;
}
function showChat(chat) {
  const card = node("section");
  const title = node("h2", "", chat.id);
  if (chat.direct !== null) title.append(node("span", "note", chat.direct ? "direct" : "group"));
  const log = node("div", "log");
  log.append(...chat.messages.slice(-30).map(showMessage));
  const foot = node("footer");
  foot.append(...chat.typing.map(showTyping));
  card.append(title, log, foot);
  return card;
}
const drawn = new Map();
function showState(state) {
  byId("totals").textContent = [counted(state.chat_count, "chat"), counted(state.marks, "mark"),
    state.typing + " typing"].join(" \\u00b7 ");
  const cards = [];
  const seen = new Set();
  for (const chat of state.chats.sort((a, b) => a.id < b.id ? -1 : 1)) {
    seen.add(chat.id);
    const key = JSON.stringify([chat.messages, chat.direct, chat.typing.map(t => [t.account, t.thread])]);
    if (drawn.get(chat.id)?.key !== key) drawn.set(chat.id, {key, card: showChat(chat)});
    cards.push(drawn.get(chat.id).card);
  }
  for (const id of drawn.keys()) if (!seen.has(id)) drawn.delete(id);
  const chats = byId("chats");
  if (!cards.length) cards.push(node("p", "empty", "No chats yet."));
  if (cards.length !== chats.children.length || cards.some((card, i) => chats.children[i] !== card)) {
    chats.replaceChildren(...cards);
    for (const log of chats.querySelectorAll(".log")) log.scrollTop = log.scrollHeight;
  }
}
function showCalls(calls) {
  byId("total").textContent = calls.total;
  const rows = [];
  for (const [op, outcomes] of Object.entries(calls.counts)) {
    for (const [outcome, count] of Object.entries(outcomes)) {
      const row = node("tr");
      const good = outcome === "ok" || outcome === "already_done";
      row.append(node("td", "", op.replace("_", " ")));
      row.append(node("td", good ? "" : "bad", outcome.replace("_", " ")));
      row.append(node("td", "", count));
      rows.push(row);
    }
  }
  byId("counts").replaceChildren(...rows);
}
async function read(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(answer.status);
  return answer.json();
}
async function refresh() {
  try {
    showState(await read("/v1/state?recent=24"));
    showCalls(await read("/v1/calls?last=0"));
    byId("link").textContent = "live";
    byId("link").className = "up";
  } catch (error) {
    byId("link").textContent = "not reachable";
    byId("link").className = "down";
  }
  setTimeout(refresh, 400);
}
read("/v1/health").then(({platform}) => {
  const seconds = platform.typing_lifetime_ms / 1000;
  const life = "typing lasts " + (seconds ? seconds + " s" : "until stopped");
  byId("platform").textContent = "reactions: " + platform.reactions.replace("_", "/") + " \\u00b7 " + life;
}, () => {});
refresh();
</script>
</body>
</html>
"""

PAGE = _HTML.encode()
"""The page as it is sent."""
