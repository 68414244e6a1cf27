// The list of conversations: open, rename, delete.
import { api } from "./api.js";
import { $, button, make } from "./dom.js";
import { t } from "./words.js";

const DAY = new Intl.DateTimeFormat(document.documentElement.lang || undefined, { day: "numeric", month: "short" });
const HOUR = new Intl.DateTimeFormat(document.documentElement.lang || undefined, { hour: "2-digit", minute: "2-digit" });

function when(text) {
  const date = new Date(text);
  return (date.toDateString() === new Date().toDateString() ? HOUR : DAY).format(date);
}

export class Threads {
  constructor({ list, more, agentName, onopen, ondeleted, onerror }) {
    Object.assign(this, { list, more, agentName, onopen, ondeleted, onerror, current: null, rows: [] });
    more.onclick = () => this.load(this.next);
  }

  async load(address = null) {
    try {
      const page = await api(address ?? "threads?limit=40");
      this.rows = address ? [...this.rows, ...page.results] : page.results;
      this.next = page.next;
      this.more.hidden = !page.next;
      this.draw();
    } catch (error) {
      this.onerror(error);
    }
  }

  find(id) { return this.rows.find((thread) => thread.id === id); }

  draw() {
    if (this.list.querySelector("form")) return; // somebody is typing a title
    this.list.replaceChildren(...this.rows.map((thread) => this.row(thread)));
    if (!this.rows.length) this.list.append(make("li", { class: "none", text: t("Your conversations will stand here.") }));
  }

  row(thread) {
    const title = thread.title || t("New conversation");
    const open = make("button", { class: "open", type: "button", onclick: () => this.onopen(thread) },
      make("b", { text: title, title }), make("small", { text: `${this.agentName(thread.agent)} · ${when(thread.updatedAt)}` }));
    const current = thread.id === this.current;
    if (current) open.setAttribute("aria-current", "page");
    const item = make("li", { class: current ? "thread current" : "thread" }, open);
    item.append(make("span", { class: "tools" },
      button("✎", () => this.rename(item, thread), { class: "icon", "aria-label": t("Rename “%s”", title), title: t("Rename") }),
      button("✕", () => this.delete(thread), { class: "icon", "aria-label": t("Delete “%s”", title), title: t("Delete") })));
    return item;
  }

  rename(item, thread) {
    const field = make("input", { value: thread.title, maxLength: 200, "aria-label": t("Title of the conversation") });
    const form = make("form", {}, field);
    let over = false; // taking the form away makes its field blur, which would end it once more
    const finish = async (save) => {
      if (over) return;
      over = true;
      form.remove();
      const title = field.value.trim();
      if (save && title && title !== thread.title) {
        try {
          Object.assign(thread, await api(`threads/${thread.id}`, { method: "PATCH", body: { title } }));
        } catch (error) { this.onerror(error); }
      }
      this.draw();
    };
    form.onsubmit = (event) => { event.preventDefault(); finish(true); };
    field.onkeydown = (event) => { if (event.key === "Escape") { event.stopPropagation(); finish(false); } };
    field.onblur = () => finish(true);
    item.replaceChildren(form);
    field.focus();
    field.select();
  }

  delete(thread) {
    const dialog = $("sure");
    dialog.returnValue = "no";
    dialog.onclose = async () => {
      if (dialog.returnValue !== "yes") return;
      try {
        await api(`threads/${thread.id}`, { method: "DELETE" });
        this.rows = this.rows.filter((one) => one !== thread);
        this.draw();
        this.ondeleted(thread);
      } catch (error) { this.onerror(error); }
    };
    dialog.showModal();
  }
}
