// The console's behaviour. Everything works on elements marked with data-attributes; no inline scripts.
"use strict";

(() => {
  const token = () => document.querySelector("input[name=csrfmiddlewaretoken]")?.value ?? "";

  async function post(url, fields) {
    const body = fields instanceof FormData ? fields : new URLSearchParams(fields);
    const response = await fetch(url, { method: "POST", headers: { "X-CSRFToken": token() }, body });
    if (!response.ok) throw new Error(`The server answered ${response.status}. Reload the page and try again.`);
    return response;
  }

  async function say(button, place, url, fields) {
    button.disabled = true;
    place.textContent = "…";
    try {
      const answer = await (await post(url, fields)).json();
      place.textContent = `${answer.ok ? "✓" : "✗"} ${answer.message}`;
    } catch (problem) {
      place.textContent = problem.message;
    } finally {
      button.disabled = false;
    }
  }

  // --- rows of nested settings

  function addRow(box) {
    const list = box.querySelector(":scope > [data-rows-list]");
    const template = box.querySelector(":scope > template");
    const taken = [...list.children].map((row) => Number(row.querySelector("input[type=hidden]")?.value) || 0);
    const index = taken.length ? Math.max(...taken) + 1 : 0;
    const holder = document.createElement("template");
    holder.innerHTML = template.innerHTML.replaceAll(box.dataset.token, String(index));
    list.append(holder.content);
    const row = list.lastElementChild;
    showFields(row);
    row.querySelector("input:not([type=hidden]), select, textarea")?.focus();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button, [data-copy]");
    if (!button) return;
    const row = button.closest("[data-row]");
    if (button.matches("[data-row-add]")) addRow(button.closest("[data-rows]"));
    if (button.matches("[data-row-remove]")) {
      const next = row.nextElementSibling ?? row.previousElementSibling;
      const box = row.closest("[data-rows]");
      row.remove();
      (next?.querySelector("input:not([type=hidden]), select, textarea") ?? box.querySelector("[data-row-add]"))?.focus();
    }
    if (button.matches("[data-row-up]") && row.previousElementSibling) { row.previousElementSibling.before(row); button.focus(); }
    if (button.matches("[data-row-down]") && row.nextElementSibling) { row.nextElementSibling.after(row); button.focus(); }
    if (button.matches("[data-copy]")) navigator.clipboard?.writeText(document.querySelector(button.dataset.copy).value);
    if (button.matches("[data-test-model]")) {
      const form = button.form;
      say(button, button.closest(".gh-inline").nextElementSibling, button.dataset.testModel, {
        model: form.elements.model?.value ?? "", credential: form.elements.credential?.value ?? "",
      });
    }
    if (button.matches("[data-test-connection]")) {
      say(button, button.parentElement.querySelector("[data-test-connection-result]"), button.dataset.testConnection, {});
    }
    if (button.matches("[data-try-run]")) runTrial(button);
    if (button.matches("[data-chain-up], [data-chain-down]")) moveChainRow(button);
  });

  // --- fields that are shown only while another field has a certain value

  function valueOf(scope, name) {
    const inputs = [...scope.querySelectorAll(`[data-option="${CSS.escape(name)}"]`)].filter((one) => one.closest("[data-options-scope], form") === scope);
    const chosen = inputs.filter((one) => (one.type === "checkbox" || one.type === "radio" ? one.checked : true));
    if (inputs.length === 1 && inputs[0].type === "checkbox") return [inputs[0].checked ? "true" : "false"];
    return chosen.map((one) => one.value);
  }

  function showFields(root) {
    for (const input of root.querySelectorAll("[data-show-if]")) {
      const scope = input.closest("[data-options-scope], form");
      const holder = input.closest(".gh-row__field, .form-row, .field-line") ?? input.parentElement.parentElement;
      const shown = input.dataset.showIf.split("&").every((condition) => {
        const [name, values] = condition.split("=");
        return valueOf(scope, name).some((value) => values.split("|").map((one) => one.toLowerCase()).includes(value.toLowerCase()));
      });
      holder.hidden = !shown;
      holder.style.display = shown ? "" : "none";
    }
    for (const box of root.querySelectorAll("[data-group-switch]")) {
      box.closest("[data-rows]").querySelector("[data-rows-list]").hidden = !box.checked;
    }
  }

  // --- lists: how many entries

  function countLines(area) {
    const count = area.value.split("\n").filter((line) => line.trim()).length;
    let note = area.nextElementSibling;
    if (!note?.matches("[data-line-count]")) {
      note = document.createElement("p");
      note.className = "gh-note";
      note.dataset.lineCount = "";
      area.after(note);
    }
    note.textContent = count === 1 ? area.dataset.countOne : area.dataset.countMany.replace("#", String(count));
  }

  // --- try a guardrail, try a pattern

  function trialFields(form, extra) {
    const fields = new FormData(form);
    for (const [name, value] of Object.entries(extra)) fields.set(name, value);
    return fields;
  }

  async function runTrial(button) {
    const panel = button.closest("[data-try-url]");
    const place = panel.querySelector("[data-try-result]");
    const text = panel.querySelector("[data-try-text]");
    const as = panel.querySelector("[data-try-as]:checked")?.value ?? "input";
    button.disabled = true;
    place.textContent = "…";
    try {
      const fields = trialFields(button.form ?? document.querySelector("form[id$=_form]"), {
        "try-kind": panel.dataset.kind, "try-object": panel.dataset.object, "try-text": text.value || text.placeholder, "try-as": as,
        ...(button.matches("[data-try-examples]") ? { "try-examples": "1" } : {}),
      });
      place.innerHTML = await (await post(panel.dataset.tryUrl, fields)).text(); // our own template, escaped by the server
    } catch (problem) {
      place.textContent = problem.message;
    } finally {
      button.disabled = false;
    }
  }

  let waiting;
  function tryPattern(sample) {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const panel = document.querySelector("[data-try-url]");
      const holder = sample.closest(".gh-try-pattern").parentElement;
      const pattern = holder.querySelector("[data-pattern]").value;
      const place = holder.querySelector("[data-pattern-result]");
      if (!panel || !pattern || !sample.value) { place.textContent = ""; return; }
      try {
        place.innerHTML = await (await post(panel.dataset.tryUrl, { "try-pattern": pattern, "try-text": sample.value })).text();
      } catch (problem) {
        place.textContent = problem.message;
      }
    }, 250);
  }

  // --- chains: moving a row by keyboard, the same as dragging it

  function moveChainRow(button) {
    const row = button.closest(".form-group");
    const table = row.parentElement;
    const rows = [...table.querySelectorAll(":scope > .form-group.has_original, :scope > .form-group.original")];
    const other = rows[rows.indexOf(row) + (button.matches("[data-chain-up]") ? -1 : 1)];
    if (!other) return;
    if (button.matches("[data-chain-up]")) other.before(row); else other.after(row);
    [...table.querySelectorAll(":scope > .form-group.has_original, :scope > .form-group.original")].forEach((one, index) => {
      const position = one.querySelector(`input[name$="-${table.dataset.orderingField}"]`);
      if (position) position.value = String(index);
    });
    button.focus();
  }

  function moveButton(direction, icon, label) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "gh-icon-button";
    button.setAttribute(`data-chain-${direction}`, "");
    button.setAttribute("aria-label", label);
    button.title = label;
    button.innerHTML = `<span class="material-symbols-outlined" aria-hidden="true">${icon}</span>`;
    return button;
  }

  function addMoveButtons() {
    for (const handle of document.querySelectorAll("table[data-ordering-field] [x-sort\\:handle]")) {
      const holder = document.createElement("span");
      holder.className = "gh-move";
      holder.append(moveButton("up", "arrow_upward", document.documentElement.lang === "de" ? "Nach oben" : "Move up"),
                    moveButton("down", "arrow_downward", document.documentElement.lang === "de" ? "Nach unten" : "Move down"));
      handle.after(holder);
    }
  }

  // --- models: asked of the providers when somebody first looks at the field

  async function offerModels(input) {
    const list = input.list;
    const url = list?.dataset.modelsUrl;
    if (!url) return;
    delete list.dataset.modelsUrl;
    try {
      const answer = await (await fetch(url)).json();
      list.replaceChildren(...answer.models.map((model) => new Option("", model)));
    } catch { /* the models that the page came with stay */ }
  }

  // --- cards that can be searched

  function filterCards(input) {
    const wanted = input.value.trim().toLowerCase();
    for (const card of document.querySelectorAll("[data-card]")) card.hidden = !card.textContent.toLowerCase().includes(wanted);
    for (const group of document.querySelectorAll("[data-card-group]")) group.hidden = !group.querySelector("[data-card]:not([hidden])");
  }

  // --- the chart on the home page

  function drawChart() {
    const canvas = document.querySelector("[data-findings-chart]");
    const source = document.getElementById("findings-data");
    if (!canvas || !source || !window.Chart) return;
    const data = JSON.parse(source.textContent);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    new window.Chart(canvas, {
      type: "bar",
      data: {
        labels: data.labels,
        datasets: [
          { label: data.names.findings, data: data.findings, backgroundColor: colour("--color-primary-500"), borderRadius: 3 },
          { label: data.names.failures, data: data.failures, backgroundColor: "#dc2626", borderRadius: 3 },
        ],
      },
      options: {
        maintainAspectRatio: false, animation: false,
        plugins: { legend: { position: "bottom", labels: { color: colour("--gh-quiet"), boxWidth: 12 } } },
        scales: {
          x: { stacked: true, grid: { display: false }, ticks: { color: colour("--gh-quiet") } },
          y: { stacked: true, beginAtZero: true, ticks: { precision: 0, color: colour("--gh-quiet") }, grid: { color: colour("--gh-line") } },
        },
      },
    });
  }

  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-lines]")) countLines(event.target);
    if (event.target.matches("[data-filter-cards]")) filterCards(event.target);
    if (event.target.matches("[data-pattern-sample]")) tryPattern(event.target);
    if (event.target.matches("[data-pattern]")) {
      const sample = event.target.parentElement.querySelector("[data-pattern-sample]");
      if (sample?.value) tryPattern(sample);
    }
  });
  document.addEventListener("focusin", (event) => { if (event.target.matches("input[list]")) offerModels(event.target); });
  document.addEventListener("change", (event) => { if (event.target.form || event.target.closest("[data-options-scope]")) showFields(document); });
  document.addEventListener("DOMContentLoaded", () => {
    showFields(document);
    document.querySelectorAll("[data-lines]").forEach(countLines);
    addMoveButtons();
    drawChart();
  });
})();
