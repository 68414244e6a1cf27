// What a person wrote, what an agent answered, and the notices between them.
import { button, copy, make } from "./dom.js";
import { addCopyButtons, render } from "./markdown.js";
import { setMarkedText } from "./marks.js";
import { t } from "./words.js";

const SLOW_FROM = 20000; // characters from which a growing text is drawn less often

export class Mine {
  constructor(text) {
    this.body = make("div", { class: "body" });
    this.under = make("div", { class: "under" });
    this.node = make("article", { class: "message user", "aria-label": t("You") }, this.body, this.under);
    this.set(text);
  }

  set(text) {
    this.text = text;
    setMarkedText(this.body, text);
  }

  note(words, ...buttons) { this.under.replaceChildren(words, ...buttons); }

  block() { this.node.classList.add("blocked"); }

  withhold() {
    this.node.classList.add("withheld");
    this.body.textContent = t("A guardrail stopped this message. Its text was not kept.");
  }

  // How the server keeps it, which is what the agent saw.
  stored(message) {
    const text = textOf(message);
    if (message.status === "blocked") this.block();
    if (message.withheld) { this.note(t("A guardrail stopped this message. Its text was not kept.")); return; }
    if (text && text !== this.text) {
      this.set(text);
      this.note(t("Changed by a guardrail before the agent saw it"));
    }
  }
}

export class Answer {
  constructor() {
    this.text = "";
    this.drawn = 0;
    this.body = make("div", { class: "body" });
    this.under = make("div", { class: "under" });
    this.node = make("article", { class: "message agent answering", "aria-label": t("Answer") }, this.body);
  }

  add(text) {
    this.text += text;
    if (this.timer) return;
    const pause = this.text.length > SLOW_FROM ? 400 : 60;
    this.timer = setTimeout(() => this.draw(), Math.max(0, this.drawn + pause - performance.now()));
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.drawn = performance.now();
    render(this.body, this.text);
    this.node.dispatchEvent(new CustomEvent("drawn", { bubbles: true }));
  }

  end() {
    this.draw();
    this.node.classList.remove("answering");
    addCopyButtons(this.body);
    this.under.replaceChildren(button(t("Copy"), (event) => copy(this.text, event.target), { class: "plain" }));
    this.node.append(this.under);
  }

  block() { this.node.classList.add("blocked"); }
}

export class Thought {
  constructor() {
    this.text = make("p");
    this.node = make("details", { class: "thought" }, make("summary", { text: t("Thoughts") }), this.text);
  }

  add(text) { this.text.append(text); }
}

export const textOf = (message) =>
  message.parts.filter((part) => part.type === "text").map((part) => part.text).join("");

export function guardNotice(reason, { runId, processorId, canAudit } = {}) {
  const by = processorId ? make("small", { text: `${t("Guardrail")}: ${processorId}` }) : null;
  if (by && canAudit && runId) by.append(" · ", make("a", { href: `/admin/audit/violation/?q=${runId}`, text: t("See the audit") }));
  return make("div", { class: "guard", "data-kind": "blocked" }, make("b", { text: t("Stopped by a guardrail") }), make("span", { text: reason }), by);
}

const KIND_WORDS = {
  model_api: t("The model's provider did not answer properly."),
  ModelAPIError: t("The model's provider did not answer properly."),
  processor_failed: t("A guardrail could not do its work, so nothing was let through."),
  ProcessorFailed: t("A guardrail could not do its work, so nothing was let through."),
  audit_unavailable: t("What guardrails found could not be recorded, so the answer was stopped."),
  AuditUnavailable: t("What guardrails found could not be recorded, so the answer was stopped."),
  budget_exceeded: t("The answer reached its limit of time, steps or tokens."),
  BudgetExceeded: t("The answer reached its limit of time, steps or tokens."),
  processor_contract: t("A guardrail of this agent is faulty. Tell the agent's owner."),
  ContractError: t("A guardrail of this agent is faulty. Tell the agent's owner."),
  Interrupted: t("The answer was interrupted."),
};

export function problemNotice(error, ...buttons) {
  const words = KIND_WORDS[error?.code] ?? KIND_WORDS[error?.name] ?? error?.message ?? t("Something went wrong.");
  return make("div", { class: "problem", role: "alert", "data-code": error?.code ?? "" },
    make("b", { text: t("No answer") }), make("span", { text: words }), buttons.length ? make("div", { class: "row" }, ...buttons) : null);
}

export const aside = (text) => make("div", { class: "aside", text });
