// Conversations as sequence diagrams: a row for each message, in a grid with a column for each participant.
const MAX_ROWS_AT_ONCE = 300;
const STEP = /^[^.\[\]"\s]+$/;

// Draws the columns; returns the list of rows, which is empty.
function drawSheet(place, participants) {
  const head = element("div", { class: "heads" }, element("span", { class: "time" }, "ms"));
  for (const one of participants) head.append(element("b", { class: `head k-${one.kind}` }, visible(one.label)));
  const lines = element("div", { class: "lines", "aria-hidden": "true" }, element("i"));
  participants.forEach(() => lines.append(element("i")));
  const list = element("ol", { class: "steps" });
  const sheet = element("div", { class: "sheet" }, head, element("div", { class: "flow" }, lines, list));
  sheet.style.setProperty("--lanes", participants.length);
  place.replaceChildren(sheet);
  return list;
}

function drawConversation(place, diagram) {
  const names = diagram.participants.map((one) => one.id);
  const list = drawSheet(place, diagram.participants);
  let drawn = 0;
  const more = element("button", { type: "button", class: "more" });
  const drawMore = (until) => {
    const rows = diagram.rows.slice(drawn, until).map((row) => drawRow(row, names));
    list.append(...rows);
    drawn += rows.length;
    more.textContent = `Draw ${(diagram.rows.length - drawn).toLocaleString("en")} more rows`;
    more.hidden = drawn >= diagram.rows.length;
  };
  place.append(more);
  more.addEventListener("click", () => drawMore(drawn + MAX_ROWS_AT_ONCE));
  const wrong = diagram.rows.findIndex((row) => row.marks?.some((mark) => !mark.in_proof));
  drawMore(Math.max(MAX_ROWS_AT_ONCE, wrong + 20));
  if (wrong > 8) place.scrollTop = list.children[wrong].offsetTop - place.clientHeight / 3;
}

function drawRow(row, names) {
  const item = element("li", { class: `step r-${row.row} k-${row.kind || ""}` });
  item.append(element("span", { class: "time" }, (row.time * 1000).toFixed(1)));
  const from = names.indexOf(row.source), to = names.indexOf(row.target);
  const spread = (part, first, last) => (part.style.gridColumn = `${first + 2} / ${last + 3}`);
  if (from >= 0 && to >= 0) {
    const arrow = element("button", { type: "button", class: `arrow ${from < to ? "right" : "left"}` });
    spread(arrow, Math.min(from, to), Math.max(from, to));
    arrow.style.setProperty("--span", Math.abs(to - from) + 1);
    const label = row.row === "folded" ? `${row.count} × ${row.label}` : row.label;
    arrow.append(element("span", { class: "words" }, visible(row.row === "missing" ? `${label} ${row.marks?.length ? "never came" : "is owed"}` : label)));
    if (row.frame !== undefined) arrow.append(element("span", { class: "seq" }, `#${row.frame}`));
    if (row.row === "folded") arrow.append(element("span", { class: "said" }, visible(row.text || "")));
    arrow.append(element("span", { class: "line", "aria-hidden": "true" }));
    item.append(arrow);
    arrow.addEventListener("click", () => toggleDetail(item, row, arrow));
    arrow.setAttribute("aria-expanded", "false");
  } else {
    const over = (row.kind === "stderr" ? [] : row.over || []).map((one) => names.indexOf(one)).filter((one) => one >= 0);
    const words = row.row === "silence"
      ? `${row.seconds.toFixed(2)} s of silence${row.waiting_for ? `, ${row.waiting_for} outstanding` : ""}`
      : row.text;
    const note = element(row.detail ? "button" : "span", { class: "pill" }, visible(words));
    if (row.detail) {
      note.addEventListener("click", () => toggleDetail(item, row, note));
      note.setAttribute("aria-expanded", "false");
    }
    spread(note, over.length ? Math.min(...over) : 0, over.length ? Math.max(...over) : names.length - 1);
    item.append(note);
  }
  if (row.marks?.length) {
    const grave = row.marks.find((mark) => !mark.in_proof);
    item.classList.add(grave ? "wrong" : "proof");
    item.classList.add((grave || row.marks[0]).level.toLowerCase());
    const marks = element("span", { class: "marks" });
    for (const rule of new Set(row.marks.map((mark) => mark.rule))) marks.append(element("b", { class: "v" }, visible(rule)));
    item.append(marks);
  }
  return item;
}

function toggleDetail(item, row, arrow) {
  const open = item.querySelector(".detail");
  arrow.setAttribute("aria-expanded", String(!open));
  if (open) return open.remove();
  const detail = element("div", { class: "detail" });
  for (const mark of row.marks || []) {
    const where = mark.path ? ` at ${mark.path}` : "";
    detail.append(element("p", {}, element("b", { class: "v" }, visible(mark.rule)),
      visible(` ${mark.in_proof ? "follows from this message" : mark.level}${where}: ${mark.text || ""}`)));
  }
  if (row.row === "folded") detail.append(element("p", { class: "quiet" }, `messages #${row.first} to #${row.last}, in ${(row.seconds * 1000).toFixed(0)} ms`));
  if (row.because !== undefined) detail.append(element("p", { class: "quiet" }, `owed because of message #${row.because}`));
  const text = row.detail || row.text;
  if (text) {
    const code = element("pre", { tabindex: "0" });
    let value;
    try { value = JSON.parse(text); } catch { value = undefined; }
    if (value === undefined) code.textContent = visible(text);
    else writeJson(code, value, "", "", new Set((row.marks || []).map((mark) => mark.path).filter(Boolean)));
    detail.append(code);
  }
  item.append(detail);
}

// JSON over several lines, with the members at `paths` marked.
function writeJson(into, value, path, indent, paths) {
  if (paths.has(path)) {
    const mark = element("mark");
    into.append(mark);
    into = mark;
  }
  if (value === null || typeof value !== "object") return into.append(quoted(value));
  const isList = Array.isArray(value);
  const keys = Object.keys(value);
  if (!keys.length) return into.append(isList ? "[]" : "{}");
  into.append(isList ? "[" : "{");
  keys.forEach((key, number) => {
    const inner = `${indent}  `;
    const step = isList ? `${path}[${key}]` : !STEP.test(key) ? `${path}[${JSON.stringify(key)}]` : path ? `${path}.${key}` : key;
    into.append(`${number ? "," : ""}\n${inner}`);
    if (!isList) into.append(element("span", { class: "key-name" }, quoted(key)), ": ");
    writeJson(into, value[key], step, inner, paths);
  });
  into.append(`\n${indent}${isList ? "]" : "}"}`);
}
const quoted = (value) => visible(JSON.stringify(value));
