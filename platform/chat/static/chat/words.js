// The page's own words, in the person's language; the server sends the translations along (chat/words.py).

const words = JSON.parse(document.getElementById("facts").textContent).words;

export const t = (text, ...values) => values.reduce((all, value) => all.replace("%s", () => value), words[text] ?? text);
