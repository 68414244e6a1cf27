// What guardrails put in place of something ([EMAIL], a***e@****.com, [HASH:…]) is shown as a mark of its own.
// Everything here is linear in the text: it may be long, and somebody else wrote it.
import { t } from "./words.js";

const STAR = "\uE02A"; // stands for the asterisk of a mask while Markdown is read, so that it is no emphasis
const KINDS = "EMAIL|PHONE|CREDIT_CARD|CARD|SSN|IBAN|IP_ADDRESS|IP|MAC_ADDRESS|MAC|URL|DATE_OF_BIRTH|CRYPTO_WALLET|NAME|PERSON|ADDRESS|"
  + "NATIONAL_ID|PASSPORT|UUID|API_KEY|SECRET|KEY|TOKEN|PASSWORD|REDACTED|SYSTEM_PROMPT|REMOVED|BLOCKED";
const PLACE = new RegExp(`\\[(?:(?:${KINDS})(?:_[A-Z0-9]{1,20}){0,3}|HASH:[0-9a-f]{4,64})\\]|\\+?X[X ().-]{3,20}\\d{2,4}\\b`, "g");
const RULER = /^\s*(?:\*\s*){3,}$/;
const AFTER = ".,;:!?)\"'”";

const OPENS = /^[("']*\*{3}[^*]+$/;
const CLOSES = /^[^*]+\*{3}[.,;:!?)"']*$/;

// A mask within a token; bold or italic around it stays what it is, and so does bold-italic text.
function masked(token, isPaired) {
  if (!token.includes("***") || (isPaired && (OPENS.test(token) || CLOSES.test(token))) || /^[^\w*]*\*{3}[^*]+\*{3}[^\w*]*$/.test(token)) return token;
  const [, lead, mask, tail] = token.match(/^((?:\*{1,2}(?!\*))?)(.*?)((?:(?<!\*)\*{1,2}[.,;:!?)]*)?)$/);
  return lead + mask.replaceAll("*", STAR) + tail;
}

export function protect(text) {
  if (!text.includes("***")) return text;
  return text.split("\n").map((line) => {
    if (!line.includes("***") || RULER.test(line)) return line;
    const tokens = line.split(/(\s+)/);
    const isPaired = tokens.some((token) => OPENS.test(token)) && tokens.some((token) => CLOSES.test(token));
    return tokens.map((token) => masked(token, isPaired)).join("");
  }).join("\n");
}

export const plain = (text) => text.replaceAll(STAR, "*");

function mark(text) {
  const node = document.createElement("span");
  node.className = "redacted";
  node.title = t("A guardrail put this in place of something");
  node.textContent = plain(text);
  return node;
}

function placeholders(text) {
  const found = [];
  let at = 0;
  for (const match of text.matchAll(PLACE)) {
    found.push(text.slice(at, match.index), mark(match[0]));
    at = match.index + match[0].length;
  }
  return [...found, text.slice(at)];
}

function pieces(text) {
  if (!text.includes(STAR)) return placeholders(text);
  const found = [];
  let between = "";
  for (const token of text.split(/(\s+)/)) {
    if (!token.includes(STAR)) { between += token; continue; }
    let end = token.length;
    while (AFTER.includes(token[end - 1])) end--;
    const last = found.at(-1);
    // the groups of a card number are one mark
    if (between === " " && last instanceof Element) last.textContent += ` ${plain(token.slice(0, end))}`;
    else found.push(...placeholders(between), mark(token.slice(0, end)));
    between = token.slice(end);
  }
  return [...found, ...placeholders(between)];
}

export function setMarkedText(node, text) { node.replaceChildren(...pieces(protect(text))); }

export function markWithin(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const node of texts) {
    const found = pieces(node.data);
    if (found.length > 1) node.replaceWith(...found);
  }
}
