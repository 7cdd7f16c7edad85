// A bot in Node: livesign shows what it does, and hands the calls back to the bot's own client.
// `npm install && node bot.mjs SOCKET` against a livesign with an account on platform "remote".

import { setTimeout as pause } from "node:timers/promises";
import { Livesign } from "./livesign.mjs";

const livesign = new Livesign(process.argv[2]);
await livesign.execute("bot", {
  set: async (call) => console.log("set", call.emoji), // say, telegram.setMessageReaction(...)
  clear: async () => console.log("clear"),
  typing_start: async () => {},
});

await livesign.run({ conversation: "chat-7", message: 817, direct: true }, async (run) => {
  run.thinking();
  await pause(300);
  await run.tool("web_search", () => pause(300));
});
await pause(500); // until the last mark is off
await livesign.close();
