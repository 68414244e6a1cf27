// The chat page: frames of the WebSocket become messages on the screen. A run lives on the server; this page only watches.
import { Run } from "./run.js";

const $ = (id) => document.getElementById(id);
const log = $("log"), threads = $("threads"), agent = $("agent");
const state = { socket: null, thread: null, runs: new Map(), current: null, retry: 500, waiting: new Map() };

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function scroll() { log.scrollTop = log.scrollHeight; }

function send(frame) {
  if (state.socket?.readyState !== WebSocket.OPEN) return false;
  state.socket.send(JSON.stringify(frame));
  return true;
}

function connect() {
  const socket = state.socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/chat/`);
  socket.onopen = () => {
    $("link").textContent = "";
    state.retry = 500;
    for (const frame of state.waiting.values()) send(frame);
    for (const run of state.runs.values()) if (!run.ended) send({ type: "run.resume", runId: run.id, after: run.seq });
  };
  socket.onmessage = (event) => receive(JSON.parse(event.data));
  socket.onclose = (event) => {
    if (event.code === 4401) { location.reload(); return; }
    $("link").textContent = "Connection lost. Trying again …";
    setTimeout(connect, state.retry);
    state.retry = Math.min(state.retry * 2, 10000);
  };
}

function receive(frame) {
  if (frame.type === "run.started") {
    state.waiting.delete(frame.clientMessageId);
    state.thread = frame.threadId;
    watch(frame.runId);
    loadThreads();
  } else if (frame.type === "chunk") {
    const run = state.runs.get(frame.runId);
    if (!run || frame.seq <= run.seq) return;
    run.seq = frame.seq;
    run.take(frame.chunk);
    scroll();
  } else if (frame.type === "run.ended") {
    const run = state.runs.get(frame.runId);
    if (!run) return;
    run.end(frame.status);
    if (state.current === run) idle();
    loadThreads();
  } else if (frame.type === "error") {
    state.waiting.delete(frame.clientMessageId);
    log.append(element("div", "notice", frame.message));
    idle();
    scroll();
  }
}

function watch(id) {
  const run = new Run(id, log, (toolCallId, approved, reason) =>
    send({ type: "tool.decide", runId: id, toolCallId, approved, reason, after: run.seq }));
  state.runs.set(id, run);
  state.current = run;
  $("stop").hidden = false;
  $("send").hidden = true;
  return run;
}

function idle() {
  state.current = null;
  $("stop").hidden = true;
  $("send").hidden = false;
}

function clear() {
  log.replaceChildren();
  state.runs.clear();
  idle();
}

function greet() {
  const about = agent.selectedOptions[0]?.dataset.about;
  log.append(element("p", "empty", agent.options.length
    ? `${agent.selectedOptions[0].textContent}. ${about || "Ask something."}`
    : "No agent is published yet. An editor can publish one in the console."));
}

async function fetchJson(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

async function loadThreads() {
  const page = await fetchJson("/api/v1/threads");
  threads.replaceChildren(...page.results.map((thread) => {
    const item = element("li"), button = element("button", "", thread.title || "New conversation");
    button.setAttribute("aria-current", String(thread.id === state.thread));
    button.onclick = () => openThread(thread);
    item.append(button);
    return item;
  }));
}

async function openThread(thread) {
  state.thread = thread.id;
  agent.value = thread.agent;
  clear();
  const page = await fetchJson(`/api/v1/threads/${thread.id}/messages`);
  for (const message of page.results) Run.stored(log, message);
  if (page.activeRun) {
    watch(page.activeRun);
    send({ type: "run.resume", runId: page.activeRun, after: 0 });
  }
  scroll();
  loadThreads();
}

$("form").onsubmit = (event) => {
  event.preventDefault();
  const text = $("text").value;
  if (!text.trim() || state.current) return;
  log.querySelector(".empty")?.remove();
  log.append(element("div", "message user", text));
  const frame = { type: "message.send", agent: agent.value, threadId: state.thread, text, clientMessageId: crypto.randomUUID() };
  state.waiting.set(frame.clientMessageId, frame);
  send(frame);
  $("text").value = "";
  scroll();
};
$("text").onkeydown = (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); $("form").requestSubmit(); }
};
document.onkeydown = (event) => { if (event.key === "Escape" && state.current) $("stop").click(); };
$("stop").onclick = () => { if (state.current) send({ type: "run.stop", runId: state.current.id }); };
$("new").onclick = () => { state.thread = null; clear(); greet(); loadThreads(); $("text").focus(); };
agent.onchange = () => $("new").click();

connect();
greet();
loadThreads();
