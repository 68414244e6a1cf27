// Making elements. Text is always set as text; nothing here takes HTML.
import { t } from "./words.js";

export const $ = (id) => document.getElementById(id);

export function make(tag, values = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === null) continue;
    if (name === "text") node.textContent = value;
    else if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const button = (text, onclick, values = {}) => make("button", { type: "button", text, onclick, ...values });

export async function copy(text, from) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = make("textarea", { class: "hidden", value: text });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  const before = from.textContent;
  from.textContent = t("Copied");
  setTimeout(() => { from.textContent = before; }, 1500);
}

export function say(text) { $("said").textContent = text; }
