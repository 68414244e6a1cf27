// A tool call: what was asked, how far it is, what came back; and the question to a person, if one must approve.
import { button, make } from "./dom.js";
import { setMarkedText } from "./marks.js";
import { t } from "./words.js";

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value));

function rows(value) {
  const pairs = value && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : [["", value]];
  return make("dl", {}, ...pairs.flatMap(([name, one]) => {
    const cell = make("dd");
    setMarkedText(cell, shown(one) ?? "");
    return [make("dt", { text: name }), cell];
  }));
}

export class ToolCard {
  constructor(name, args) {
    this.open = true;
    this.state = make("span", { class: "state", text: t("running …") });
    this.head = make("div", { class: "head" }, make("b", { text: String(name).replaceAll("_", " ") }), this.state);
    this.node = make("div", { class: "tool", role: "group", "aria-label": `${t("Tool")} ${name}` }, this.head);
    if (args && Object.keys(args).length) this.node.append(rows(args));
  }

  set(words, kind = "") {
    this.state.textContent = words;
    this.node.classList.remove("done", "wrong", "asks");
    if (kind) this.node.classList.add(kind);
  }

  progress({ fraction, percent, message }) {
    if (!this.bar) {
      this.bar = make("progress", { max: 100, "aria-label": t("Progress") });
      this.node.append(this.bar);
    }
    this.bar.value = percent ?? (fraction ?? 0) * 100;
    this.set(message ? String(message) : `${Math.round(this.bar.value)} %`);
  }

  done(result) {
    this.settle(t("done"), "done");
    if (result !== undefined && result !== null) {
      this.node.append(make("details", {}, make("summary", { text: t("Result") }), rows(result)));
    }
  }

  fail(error) {
    const words = typeof error === "string" ? error : error?.message ?? t("failed");
    this.settle(/declined/i.test(words) ? t("declined") : t("failed"), "wrong");
    this.node.append(make("div", { text: words }));
  }

  settle(words, kind) {
    this.open = false;
    this.bar?.remove();
    this.question?.remove();
    this.bar = this.question = null;
    this.set(words, kind);
  }

  ask(decide, mayDecide) {
    if (this.question) return;
    this.set(t("waits for approval"), "asks");
    if (!mayDecide) {
      this.question = make("div", { text: t("Somebody who may approve tools has to decide. You can leave; the answer goes on afterwards.") });
    } else {
      const reason = make("input", { type: "text", maxLength: 500, placeholder: t("optional") });
      const choose = (approved) => {
        this.settle(approved ? t("approved") : t("declined"));
        this.open = true;
        decide(approved, reason.value.trim());
      };
      this.question = make("div", { class: "decide" },
        make("label", {}, t("Reason"), reason),
        make("div", { class: "row" }, button(t("Decline"), () => choose(false), { class: "quiet" }), button(t("Approve"), () => choose(true))));
    }
    this.node.append(this.question);
  }
}
