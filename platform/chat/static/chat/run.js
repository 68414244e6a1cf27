// One run on the screen. Text of the current step can be withdrawn; everything is set as text, never as HTML.

const PLACEHOLDER = /(\[[A-Z][A-Z_-]{2,}\])/;

function element(tag, className, text) {
  const node = document.createElement(tag);
  node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function marked(node, text) {
  node.replaceChildren(...text.split(PLACEHOLDER).map((piece) =>
    PLACEHOLDER.test(piece) ? element("span", "mark", piece) : document.createTextNode(piece)));
}

export class Run {
  constructor(id, log, decide) {
    Object.assign(this, { id, log, decide, seq: 0, ended: false, tools: new Map(), step: [] });
    this.bubble = null;
    this.text = "";
  }

  add(node) { this.log.append(node); this.step.push(node); return node; }

  take(chunk) {
    const payload = chunk.payload ?? {};
    const handlers = {
      "text-delta": () => this.delta(payload.text),
      "text-end": () => this.close(),
      "tool-call": () => this.tool(payload.toolCallId, `${payload.toolName} ${JSON.stringify(payload.args ?? {})}`),
      "tool-result": () => this.toolEnds(payload.toolCallId, "done"),
      "tool-error": () => this.toolEnds(payload.toolCallId, `failed: ${payload.error}`),
      "tool-call-approval": () => this.approval(payload),
      "data-tool-progress": () => this.progress(chunk.data ?? {}),
      "step-retry": () => this.withdraw(),
      "log-reset": () => this.withdraw(),
      "step-finish": () => { this.close(); this.step = []; },
      "tripwire": () => this.notice(`Stopped by a guardrail: ${payload.reason}`),
      "error": () => this.notice(`The answer failed: ${payload.error?.message ?? "unknown reason"}`),
      "abort": () => this.add(element("div", "tool", "Stopped.")),
    };
    handlers[chunk.type]?.();
  }

  delta(text) {
    if (!this.bubble) { this.bubble = this.add(element("div", "message")); this.text = ""; }
    this.text += text;
    this.bubble.textContent = this.text;
  }

  close() {
    if (this.bubble) marked(this.bubble, this.text);
    this.bubble = null;
  }

  withdraw() {
    for (const node of this.step) node.remove();
    this.step = [];
    this.bubble = null;
    this.tools.clear();
  }

  tool(id, label) {
    const card = this.add(element("div", "tool", `Tool ${label}`));
    card.append(element("span", "state", " …"));
    this.tools.set(id, card);
    return card;
  }

  toolEnds(id, words) {
    const card = this.tools.get(id);
    if (!card) return;
    card.querySelector("progress")?.remove();
    card.querySelector(".decide")?.remove();
    card.querySelector(".state").textContent = ` ${words}`;
  }

  progress(data) {
    const card = this.tools.get(data.toolCallId);
    if (!card) return;
    let bar = card.querySelector("progress");
    if (!bar) {
      bar = document.createElement("progress");
      bar.max = 1;
      bar.setAttribute("aria-label", "Progress");
      card.append(" ", bar);
    }
    bar.value = data.fraction ?? (data.percent ?? 0) / 100;
    card.querySelector(".state").textContent = ` ${data.message ?? ""}`;
  }

  approval({ toolCallId, toolName, args }) {
    const card = this.tools.get(toolCallId) ?? this.tool(toolCallId, `${toolName} ${JSON.stringify(args ?? {})}`);
    card.querySelector(".state").textContent = " waits for approval";
    const row = element("div", "decide");
    for (const [label, approved] of [["Approve", true], ["Decline", false]]) {
      const button = element("button", "", label);
      button.type = "button";
      button.onclick = () => { row.remove(); this.decide(toolCallId, approved, ""); };
      row.append(button);
    }
    card.append(row);
  }

  notice(text) { this.close(); this.log.append(element("div", "notice", text)); }

  end(status) {
    this.close();
    this.ended = status !== "waiting";
    if (status === "interrupted") this.notice("The answer was interrupted. Send your message again.");
  }

  static stored(log, message) {
    const blocked = message.status === "blocked" ? " blocked" : "";
    if (message.withheld) log.append(element("div", `message user${blocked}`, "(withheld by a guardrail)"));
    for (const part of message.parts) {
      if (part.type === "text") {
        const bubble = element("div", `message ${message.role === "user" ? "user" : ""}${blocked}`);
        marked(bubble, part.text);
        log.append(bubble);
      } else if (part.type === "notice") log.append(element("div", "notice", `Stopped by a guardrail: ${part.reason}`));
      else if (part.type === "error") log.append(element("div", "notice", `The answer failed: ${part.error?.message}`));
      else if (part.type === "tool-invocation") log.append(element("div", "tool", `Tool ${part.toolInvocation.toolName} · ${part.toolInvocation.state}`));
    }
  }
}
