// An agent's answer as safe Markdown. No images (they would carry data to other servers), no HTML, links only to the web and to mail.
import { Marked } from "./vendor/marked.esm.js";
import purify from "./vendor/purify.es.js";
import { button, copy } from "./dom.js";
import { markWithin, plain, protect } from "./marks.js";
import { t } from "./words.js";

const TAGS = ["p", "br", "hr", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li",
  "table", "thead", "tbody", "tr", "th", "td", "a", "span"];
const escaped = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const reader = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    heading({ tokens, depth }) {
      const level = Math.min(depth + 2, 6);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    html({ text }) { return escaped(text); },
    image({ text, href }) { return `<span class="no-image">[${t("image not shown")}: ${escaped(text || href || "")}]</span>`; },
    checkbox({ checked }) { return checked ? "☑ " : "☐ "; },
  },
});

purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  const href = node.getAttribute("href");
  if (!href) { node.replaceWith(...node.childNodes); return; }
  node.setAttribute("rel", "noopener noreferrer nofollow");
  node.setAttribute("target", "_blank");
  node.setAttribute("title", href);
});

export function render(node, text) {
  const html = reader.parse(protect(text));
  const safe = purify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["href", "title", "start", "class", "rel", "target"],
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of safe.querySelectorAll("a")) link.title = plain(link.title);
  markWithin(safe);
  node.replaceChildren(safe);
}

export function addCopyButtons(node) {
  for (const block of node.querySelectorAll("pre")) {
    const code = block.textContent;
    block.after(button(t("Copy code"), (event) => copy(code, event.target), { class: "plain" }));
  }
}
