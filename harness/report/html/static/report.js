"use strict";
// Filters, keyboard, links and conversations of a report. Text of a server is only ever set as text.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const byId = (id) => document.getElementById(id);
const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
// As harness.protocol.escapes: characters that act on a terminal or turn the text are shown, not done.
const visible = (text) =>
  String(text).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (one) => {
    if (one === "\n") return one;
    const code = one.codePointAt(0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, "0")}` : code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });

const index = JSON.parse(byId("index")?.textContent || "{}");
const plays = all("#plays > .play");
const words = plays.map((play) => play.querySelector("summary").textContent.toLowerCase());
const filters = byId("filters");

function applyFilters() {
  const wanted = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdicts = all("[data-verdict]:checked", filters).map((box) => box.dataset.verdict);
  const chosen = Object.fromEntries(all("select", filters).map((one) => [one.dataset.filter, one.value]));
  const ofRule = chosen.rule ? new Set(index.rules[chosen.rule] || []) : null;
  let shown = 0;
  plays.forEach((play, number) => {
    const fits =
      wanted.every((word) => words[number].includes(word)) &&
      (!verdicts.length || verdicts.includes(play.dataset.verdict)) &&
      (!chosen.area || play.dataset.area === chosen.area) &&
      (!chosen.capability || play.dataset.capability.split(" ").includes(chosen.capability)) &&
      (!chosen.tag || play.dataset.tag.split(" ").includes(chosen.tag)) &&
      (!ofRule || ofRule.has(number));
    play.hidden = !fits;
    shown += fits;
  });
  byId("shown").textContent = `${shown.toLocaleString("en")} of ${plays.length.toLocaleString("en")}`;
  byId("none").hidden = shown > 0;
}
if (filters) {
  filters.addEventListener("input", applyFilters);
  filters.addEventListener("reset", () => setTimeout(applyFilters));
  filters.addEventListener("submit", (event) => event.preventDefault());
  applyFilters();
}
// The table of a matrix.
const rowFilters = byId("row-filters");
function applyRowFilters() {
  const wanted = byId("search").value.toLowerCase();
  const only = byId("only-differences").checked;
  const lines = all("#matrix tbody tr");
  byId("matrix").style.setProperty("--targets", lines[0].cells.length - 1);
  for (const line of lines) {
    line.hidden = (only && !("differs" in line.dataset)) || !line.cells[0].textContent.toLowerCase().includes(wanted);
  }
  const shown = lines.filter((line) => !line.hidden).length;
  byId("shown").textContent = `${shown.toLocaleString("en")} of ${lines.length.toLocaleString("en")}`;
  byId("none").hidden = shown > 0;
}
if (rowFilters) {
  rowFilters.addEventListener("input", applyRowFilters);
  rowFilters.addEventListener("submit", (event) => event.preventDefault());
  applyRowFilters();
}
function filterByRule(rule) {
  filters.reset();
  filters.querySelector("[data-filter=rule]").value = rule;
  applyFilters();
  byId("scenarios").scrollIntoView();
}

// Links: what they lead to is opened and shown, though a filter hides it.
function followLink() {
  let id = location.hash.slice(1);
  try { id = decodeURIComponent(id); } catch { return; }
  const target = id && byId(id);
  if (!target || target.id === "main") return;
  if (target.hidden) filters ? (filters.reset(), applyFilters()) : (target.hidden = false);
  for (let one = target; one; one = one.parentElement) if (one.localName === "details") one.open = true;
  target.scrollIntoView({ block: "start" });
  (target.querySelector("summary") || target).focus({ preventScroll: true });
}
addEventListener("hashchange", followLink);

// What is filled in when a row is opened: the rules that it was judged by.
function fillPlay(play) {
  const place = play.querySelector(".judged");
  if (!place || place.childElementCount) return;
  const number = plays.indexOf(play);
  const judged = Object.keys(index.rules).filter((rule) => index.rules[rule].includes(number));
  if (!judged.length) return;
  const items = judged.map((rule) => element("li", {}, element("a", { href: `#rule/${encodeURIComponent(rule)}` }, rule)));
  place.append(element("details", { class: "fold" },
    element("summary", {}, `Judged by ${judged.length} rules`), element("ul", { class: "chips" }, ...items)));
}
document.addEventListener("toggle", (event) => {
  const opened = event.target;
  if (!opened.open) return;
  if (opened.matches(".play")) fillPlay(opened);
  if (opened.matches(".conversation")) openConversation(opened);
}, true);

async function unpack(number) {
  const bytes = Uint8Array.from(atob(byId(`conversation-${number}`).textContent), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}
async function openConversation(fold) {
  if (fold.dataset.drawn) return;
  fold.dataset.drawn = "yes";
  const place = fold.querySelector(".drawing");
  try {
    drawConversation(place, await unpack(fold.dataset.conversation));
  } catch (error) {
    place.textContent = `This conversation cannot be drawn: ${error}`;
  }
}

// Keyboard.
const rows = () => all("details.row").filter((row) => !row.hidden && !row.parentElement.closest("details:not([open])"));
function move(step) {
  const visibleRows = rows();
  const current = document.activeElement?.closest?.("details.row");
  let at = visibleRows.indexOf(current);
  if (at < 0) {
    const below = visibleRows.findIndex((row) => row.getBoundingClientRect().top > 60);
    at = below < 0 ? visibleRows.length : below;
    if (step > 0) at -= 1;
  }
  const next = visibleRows[Math.min(Math.max(at + step, 0), visibleRows.length - 1)];
  next?.querySelector("summary").focus({ preventScroll: true });
  next?.querySelector("summary").scrollIntoView({ block: "nearest" });
}
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (document.querySelector("dialog[open]")) return;
    if (typing) {
      if (event.target.type === "search" && event.target.value) (event.target.value = ""), filters ? applyFilters() : applyRowFilters();
      event.target.blur();
    } else {
      const open = event.target.closest("details[open]");
      if (open) (open.open = false), open.querySelector("summary").focus();
    }
    return;
  }
  if (typing) return;
  const does = {
    "/": () => byId("search")?.focus(),
    j: () => move(1),
    k: () => move(-1),
    "?": () => byId("help").showModal(),
  }[event.key];
  if (does) event.preventDefault(), does();
});
document.addEventListener("click", (event) => {
  const rule = event.target.closest("[data-rule]");
  if (rule) filterByRule(rule.dataset.rule);
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    navigator.clipboard?.writeText(copy.dataset.copy).then(() => {
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    });
  }
  const link = event.target.closest('a[href^="#"]');
  if (link && link.getAttribute("href") === location.hash) followLink();
});
byId("help-open").addEventListener("click", () => byId("help").showModal());

// Light and dark: as the system, until one is chosen.
const root = document.documentElement;
byId("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("harness-theme", root.dataset.theme); } catch { /* a file may not store */ }
});
try { root.dataset.theme = localStorage.getItem("harness-theme") || ""; } catch { /* as above */ }

// Print: findings are open on paper, and closed again.
let closed = [];
addEventListener("beforeprint", () => {
  closed = all("details.group:not([open]), details.finding:not([open]), details.area.wrong:not([open])");
  closed.forEach((one) => (one.open = true));
});
addEventListener("afterprint", () => closed.forEach((one) => (one.open = false)));
addEventListener("DOMContentLoaded", () => all(".conversation[open]").forEach(openConversation));
followLink();
