#!/usr/bin/env node
// Serves a GGUF model with llama.cpp, through node-llama-cpp, the way llama-server does:
//
//   POST /v1/completions, /v1/chat/completions   (stream: true gives server-sent events)
//   GET  /health, /metrics, /v1/models, /slots
//   POST /slots/N?action=erase                   empties the KV cache of slot N
//   POST /slots/N?action=save|restore            {"filename": "x"}, below --slot-save-path
//
//   node serve.mjs --model model.gguf [--port 8000] [--slots 4] [--queue 64]
//
// The packages lie where LLAMA_MODULES says, else beside this file (README.md). SIGTERM: what
// is in flight is answered, then exit code 0.
import { createRequire } from "node:module";
import http from "node:http";
import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const BODY_LIMIT = 1 << 20;
const TOKENS_LIMIT = 4096;
const REPLACEMENT = "\ufffd"; // half of a character

const { values: options } = parseArgs({
  options: {
    model: { type: "string" },
    alias: { type: "string", default: "llama" },
    host: { type: "string", default: "127.0.0.1" },
    port: { type: "string", default: process.env.NEAP_PORT || "8000" },
    slots: { type: "string", default: "4" },
    queue: { type: "string", default: "64" },
    threads: { type: "string", default: "1" },
    "slot-save-path": { type: "string" },
  },
});

function whole(name, least, most) {
  const number = Number(options[name]);
  if (!Number.isInteger(number) || number < least || number > most) {
    console.error(`--${name}: expected a whole number from ${least} to ${most}`);
    process.exit(2);
  }
  return number;
}

async function library() {
  const folder = process.env.LLAMA_MODULES || path.dirname(new URL(import.meta.url).pathname);
  const require = createRequire(path.join(folder, "here.js"));
  return import(pathToFileURL(require.resolve("node-llama-cpp")));
}

class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function numberOf(body, field, standard, least, most, integer) {
  const value = body[field] ?? standard;
  if (typeof value !== "number" || !(value >= least && value <= most) ||
      (integer && !Number.isInteger(value))) {
    throw new Refusal(400, `${field}: expected a number from ${least} to ${most}`);
  }
  return value;
}

function queryOf(body, chat) {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new Refusal(400, "body: expected a JSON object");
  }
  let prompt = body.prompt;
  if (chat) {
    const good = Array.isArray(body.messages) && body.messages.length > 0 && body.messages.every(
      (m) => m && typeof m.role === "string" && typeof m.content === "string");
    if (!good) throw new Refusal(400, "messages: expected a list of {role, content}");
    prompt = body.messages.map((m) => `${m.role}: ${m.content}\n`).join("") + "assistant:";
  }
  if (typeof prompt !== "string") throw new Refusal(400, "prompt: expected a string");
  return {
    prompt: prompt || "\n",
    tokens: numberOf(body, "max_tokens", 16, 1, TOKENS_LIMIT, true),
    sampling: {
      temperature: numberOf(body, "temperature", 1, 0, 2, false),
      topP: numberOf(body, "top_p", 1, 0, 1, false),
      ...(body.seed == null ? {} : { seed: numberOf(body, "seed", 0, 0, 2 ** 32 - 1, true) }),
    },
    stream: body.stream === true,
    usage: body.stream_options?.include_usage === true,
  };
}

// Each slot has a part of the KV cache; requests wait for a free one, in order.
class Slots {
  constructor(sequences, queueLimit) {
    this.all = sequences.map((sequence, id) => ({ id, sequence, busy: false, saved: 0 }));
    this.waiting = [];
    this.queueLimit = queueLimit;
  }

  busy() {
    return this.all.filter((slot) => slot.busy).length;
  }

  async take() {
    const free = this.all.find((slot) => !slot.busy);
    if (free) {
      free.busy = true;
      return free;
    }
    if (this.waiting.length >= this.queueLimit) throw new Refusal(429, "too many requests wait");
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  giveBack(slot) {
    const next = this.waiting.shift();
    if (next) next(slot);
    else slot.busy = false;
  }
}

class Server {
  constructor(llama, model, slots) {
    this.model = model;
    this.slots = slots;
    this.llama = llama;
    this.draining = false;
    this.promptTokens = 0;
    this.generated = 0;
    this.busySeconds = 0;
  }

  async handle(request, response) {
    const url = new URL(request.url, "http://here");
    const route = `${request.method} ${url.pathname}`;
    try {
      if (route === "GET /health") {
        const ok = !this.draining;
        return answer(response, ok ? 200 : 503, { status: ok ? "ok" : "draining" });
      }
      if (route === "GET /metrics") return this.metrics(response);
      if (route === "GET /slots") return answer(response, 200, this.slots.all.map(slotRow));
      if (route === "GET /v1/models") {
        return answer(response, 200, {
          object: "list",
          data: [{ id: options.alias, object: "model", created: 0, owned_by: "llamacpp" }],
        });
      }
      const slot = /^POST \/slots\/(\d{1,4})$/.exec(route);
      if (slot) return await this.slotAction(Number(slot[1]), url, request, response);
      const chat = route === "POST /v1/chat/completions";
      if (!chat && route !== "POST /v1/completions") throw new Refusal(404, "no such path");
      await this.complete(queryOf(await bodyOf(request), chat), chat, response);
    } catch (error) {
      if (response.headersSent) return response.destroy();
      const status = error instanceof Refusal ? error.status : 500;
      answer(response, status, { error: { message: error.message, code: status } },
             status === 429 ? { "Retry-After": "1" } : {});
    }
  }

  async slotAction(id, url, request, response) {
    const slot = this.slots.all[id];
    const action = url.searchParams.get("action");
    if (!slot) throw new Refusal(404, `there is no slot ${id}`);
    if (slot.busy) throw new Refusal(409, `slot ${id} is in use`);
    slot.busy = true;
    try {
      const tokens = slot.sequence.contextTokens.length;
      if (action === "erase") {
        await slot.sequence.clearHistory();
        return answer(response, 200, { id_slot: id, n_erased: tokens });
      }
      if (action !== "save" && action !== "restore") {
        throw new Refusal(400, "action: expected erase, save or restore");
      }
      const folder = options["slot-save-path"];
      if (!folder) throw new Refusal(501, "started without --slot-save-path");
      const { filename } = await bodyOf(request);
      if (typeof filename !== "string" || !/^[\w.-]{1,128}$/.test(filename) || filename[0] === ".") {
        throw new Refusal(400, "filename: expected a plain name");
      }
      const file = path.join(folder, filename);
      if (action === "save") {
        const { fileSize } = await slot.sequence.saveStateToFile(file);
        return answer(response, 200,
                      { id_slot: id, filename, n_saved: tokens, n_written: fileSize });
      }
      await slot.sequence.loadStateFromFile(file, { acceptRisk: true });
      return answer(response, 200,
                    { id_slot: id, filename, n_restored: slot.sequence.contextTokens.length });
    } finally {
      this.slots.giveBack(slot);
    }
  }

  async complete(query, chat, response) {
    const gone = new Promise((resolve) => response.once("close", resolve));
    let left = false;
    gone.then(() => { left = true; });
    const slot = await this.slots.take();
    try {
      if (left) return;
      const all = this.model.tokenize(query.prompt);
      const prompt = all.slice(-slot.sequence.contextSize + 1);
      this.promptTokens += prompt.length;
      const reply = new Reply(query, chat, response);
      await slot.sequence.clearHistory();
      const began = performance.now();
      let count = 0;
      let pending = [];
      for await (const token of slot.sequence.evaluate(prompt, query.sampling)) {
        count += 1;
        this.generated += 1;
        pending.push(token);
        const text = this.model.detokenize(pending);
        if (!text.endsWith(REPLACEMENT) || pending.length >= 4) {
          reply.add(text);
          pending = [];
        }
        if (count >= query.tokens || left) break;
      }
      this.busySeconds += (performance.now() - began) / 1000;
      if (pending.length > 0) reply.add(this.model.detokenize(pending));
      reply.end(count >= query.tokens ? "length" : "stop",
                { prompt_tokens: prompt.length, completion_tokens: count,
                  total_tokens: prompt.length + count });
    } finally {
      this.slots.giveBack(slot);
    }
  }

  metrics(response) {
    const rows = [
      ["prompt_tokens_total", "counter", this.promptTokens],
      ["tokens_predicted_total", "counter", this.generated],
      ["tokens_predicted_seconds_total", "counter", this.busySeconds.toFixed(6)],
      ["requests_processing", "gauge", this.slots.busy()],
      ["requests_deferred", "gauge", this.slots.waiting.length],
    ];
    const text = rows.map(([name, kind, value]) =>
      `# TYPE llamacpp:${name} ${kind}\nllamacpp:${name} ${value}\n`).join("");
    response.writeHead(200, { "Content-Type": "text/plain; version=0.0.4" }).end(text);
  }
}

function slotRow(slot) {
  return { id: slot.id, n_ctx: slot.sequence.contextSize, is_processing: slot.busy,
           n_past: slot.sequence.contextTokens.length };
}

// One answer: whole at the end, or events as they come.
class Reply {
  constructor(query, chat, response) {
    this.query = query;
    this.chat = chat;
    this.response = response;
    this.parts = [];
    this.base = { id: `cmpl-${Math.random().toString(16).slice(2)}`, model: options.alias,
                  created: Math.floor(Date.now() / 1000) };
  }

  add(text) {
    if (this.query.stream) this.event(text, null);
    else this.parts.push(text);
  }

  event(text, reason, usage) {
    if (!this.response.headersSent) {
      this.response.writeHead(200, { "Content-Type": "text/event-stream" });
    }
    const object = this.chat ? "chat.completion.chunk" : "text_completion";
    const choice = this.chat ? { delta: text ? { content: text } : {} } : { text };
    const choices = usage ? [] : [{ index: 0, finish_reason: reason, ...choice }];
    const body = { ...this.base, object, choices, ...(usage ? { usage } : {}) };
    this.response.write(`data: ${JSON.stringify(body)}\n\n`);
  }

  end(reason, usage) {
    if (this.query.stream) {
      this.event("", reason);
      if (this.query.usage) this.event("", null, usage);
      this.response.end("data: [DONE]\n\n");
      return;
    }
    const text = this.parts.join("");
    const choice = this.chat ? { message: { role: "assistant", content: text } } : { text };
    const object = this.chat ? "chat.completion" : "text_completion";
    answer(this.response, 200, { ...this.base, object, usage,
                                 choices: [{ index: 0, finish_reason: reason, ...choice }] });
  }
}

function answer(response, status, body, headers = {}) {
  const data = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { "Content-Type": "application/json",
                               "Content-Length": data.length, ...headers }).end(data);
}

async function bodyOf(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > BODY_LIMIT) throw new Refusal(413, `the body is over ${BODY_LIMIT} bytes`);
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString() || "{}");
  } catch {
    throw new Refusal(400, "body: expected JSON");
  }
}

async function main() {
  const port = whole("port", 0, 65535);
  const slotCount = whole("slots", 1, 64);
  const queueLimit = whole("queue", 0, 100000);
  const threads = whole("threads", 1, 256);
  if (!options.model) {
    console.error("--model: expected a GGUF file");
    process.exit(2);
  }
  const { getLlama, LlamaLogLevel } = await library();
  const llama = await getLlama({ gpu: false, build: "never", skipDownload: true,
                                 progressLogs: false, maxThreads: threads,
                                 logLevel: LlamaLogLevel.error });
  const model = await llama.loadModel({ modelPath: path.resolve(options.model) });
  const context = await model.createContext({ sequences: slotCount, threads,
                                              contextSize: model.trainContextSize });
  const sequences = Array.from({ length: slotCount }, () => context.getSequence());
  const server = new Server(llama, model, new Slots(sequences, queueLimit));
  const listener = http.createServer((request, response) => server.handle(request, response));
  listener.requestTimeout = 60_000;
  listener.maxConnections = 512;
  const stop = () => {
    server.draining = true;
    listener.close(() => process.exit(0));
    listener.closeIdleConnections();
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  listener.listen(port, options.host, () => {
    console.log(`serving ${options.alias} on http://${options.host}:${listener.address().port}`);
  });
}

await main();
