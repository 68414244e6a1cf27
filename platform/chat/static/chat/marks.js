// What guardrails put in place of something ([EMAIL], a***e@****.com, [HASH:…]) is shown as a mark of its own.

const STAR = "\uE02A"; // stands for the asterisk of a mask while Markdown is read, so that it is no emphasis
const KINDS = "EMAIL|PHONE|CREDIT_CARD|CARD|SSN|IBAN|IP_ADDRESS|IP|MAC_ADDRESS|MAC|URL|DATE_OF_BIRTH|CRYPTO_WALLET|NAME|PERSON|ADDRESS|"
  + "NATIONAL_ID|PASSPORT|UUID|API_KEY|SECRET|KEY|TOKEN|PASSWORD|REDACTED|SYSTEM_PROMPT|REMOVED|BLOCKED";
const MARK = new RegExp([
  `\\[(?:(?:${KINDS})(?:_[A-Z0-9]+)*|HASH:[0-9a-f]{4,64})\\]`,
  `[^\\s${STAR}]*${STAR}\\S*[^\\s.,;:!?)]`,
  "\\+?X[X ().-]{3,}\\d{2,4}\\b",
].join("|"), "g");
const TOKEN = /\S*\*{3,}\S*/g;
const EMPHASIS = /^[^\w*]*\*{3}[^*]+\*{3}[^\w*]*$|^\*{3,}$/;

// Masks as one piece each; bold-italic text and rulers stay what they are.
export function protect(text) {
  return text.replace(TOKEN, (token) => (EMPHASIS.test(token) ? token : token.replaceAll("*", STAR)));
}

export const plain = (text) => text.replaceAll(STAR, "*");

function pieces(text) {
  const found = [];
  let at = 0;
  for (const match of text.matchAll(MARK)) {
    if (match[0].length < 4) continue;
    found.push(plain(text.slice(at, match.index)));
    const mark = document.createElement("span");
    mark.className = "redacted";
    mark.title = "A guardrail put this in place of something";
    mark.textContent = plain(match[0]);
    found.push(mark);
    at = match.index + match[0].length;
  }
  found.push(plain(text.slice(at)));
  return found;
}

export function setMarkedText(node, text) { node.replaceChildren(...pieces(protect(text))); }

export function markWithin(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const node of texts) {
    MARK.lastIndex = 0;
    if (node.data.includes(STAR) || MARK.test(node.data)) node.replaceWith(...pieces(node.data));
  }
}
