// What guardrails put in place of something ([EMAIL], a***e@****.com, [HASH:…]) is shown as a mark of its own.
// Everything here is linear in the text: it may be long, and somebody else wrote it.

const STAR = "\uE02A"; // stands for the asterisk of a mask while Markdown is read, so that it is no emphasis
const KINDS = "EMAIL|PHONE|CREDIT_CARD|CARD|SSN|IBAN|IP_ADDRESS|IP|MAC_ADDRESS|MAC|URL|DATE_OF_BIRTH|CRYPTO_WALLET|NAME|PERSON|ADDRESS|"
  + "NATIONAL_ID|PASSPORT|UUID|API_KEY|SECRET|KEY|TOKEN|PASSWORD|REDACTED|SYSTEM_PROMPT|REMOVED|BLOCKED";
const PLACE = new RegExp(`\\[(?:(?:${KINDS})(?:_[A-Z0-9]{1,20}){0,3}|HASH:[0-9a-f]{4,64})\\]|\\+?X[X ().-]{3,20}\\d{2,4}\\b`, "g");
const EMPHASIS = /^[^\w*]*\*{3}[^*]+\*{3}[^\w*]*$|^\*{3,}$/;
const AFTER = ".,;:!?)\"'”";

// Masks as one piece each; bold-italic text and rulers stay what they are.
export function protect(text) {
  if (!text.includes("***")) return text;
  return text.split(/(\s+)/).map((token) =>
    (token.includes("***") && !EMPHASIS.test(token) ? token.replaceAll("*", STAR) : token)).join("");
}

export const plain = (text) => text.replaceAll(STAR, "*");

function mark(text) {
  const node = document.createElement("span");
  node.className = "redacted";
  node.title = "A guardrail put this in place of something";
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
  return text.split(/(\s+)/).flatMap((token) => {
    if (!token.includes(STAR)) return placeholders(token);
    let end = token.length;
    while (AFTER.includes(token[end - 1])) end--;
    return [mark(token.slice(0, end)), token.slice(end)];
  });
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
