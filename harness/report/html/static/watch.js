// The page of a run while it goes on: counts, lanes, findings and plays, from its events.
const VERDICTS = ["ERROR", "FAIL", "KNOWN", "PASS", "NOT_EXERCISED", "NOT_APPLICABLE"];
const chosen = JSON.parse(byId("data").textContent);
const slug = (word) => word.toLowerCase().replaceAll("_", "-");
const badge = (word) => element("b", { class: `v ${slug(word)}` }, visible(word).replaceAll("_", " "));
let run, scheduled = 0;

function begin(name) {
  run = { name, started: {}, began: 0, last: 0, lanes: new Map(), plays: new Map(), findings: [], counted: 0, ended: null, gone: false };
  byId("played").replaceChildren();
  byId("findings").replaceChildren();
}

// A row that opens to its conversation, which is asked for then.
function conversationRow(scenario, title, level, more) {
  const place = element("div", { class: "drawing", tabindex: "0", role: "group", "aria-label": "Conversation as a sequence diagram" });
  const row = element("details", { class: `row ${slug(level)}` },
    element("summary", {}, badge(level), element("span", { class: "what" }, ...title), element("span", { class: "seconds" }, more)),
    element("div", { class: "body" }, place));
  const name = run.name;
  row.addEventListener("toggle", async () => {
    if (!row.open || place.dataset.drawn) return;
    place.dataset.drawn = "yes";
    const diagram = await ask(`conversation?${new URLSearchParams({ run: name, scenario })}`);
    if (diagram.error) place.textContent = visible(diagram.error);
    else drawConversation(place, diagram);
  });
  return row;
}

const on = {
  "run-started": (event) => { run.started = event; run.began = event.at; },
  "play-started": (event) => {
    if (event.again) run.findings = run.findings.filter((one) => one.scenario !== event.scenario);
    run.lanes.set(event.lane, { scenario: event.scenario, began: event.at, step: "" });
  },
  "step-started": (event) => {
    const lane = run.lanes.get(event.lane);
    run.lanes.set(event.lane, { scenario: event.scenario, step: event.step, waits: event.waits_for, bound: event.bound, since: event.at, began: lane?.scenario === event.scenario ? lane.began : event.at });
  },
  "plays-counted": (event) => { run.counted = event.plays; },
  found: (event) => { run.findings.push(event); },
  "play-ended": (event) => {
    run.lanes.delete(event.lane);
    const title = [element("span", { class: "id" }, visible(event.scenario)), element("span", { class: "title" }, ` ${visible(event.reason)}${event.provisional ? " is replayed alone" : ""}`)];
    const row = conversationRow(event.scenario, title, event.verdict, `${event.seconds.toFixed(1)} s`);
    row.classList.add("play");
    run.plays.get(event.scenario)?.row.remove();
    run.plays.set(event.scenario, { verdict: event.verdict, row });
    byId("played").prepend(row);
  },
  "run-ended": (event) => { run.ended = event; run.lanes.clear(); },
};

function drawFindings() {
  const byRule = Map.groupBy(run.findings, (one) => one.rule);
  const place = byId("findings");
  if (place.dataset.drawn === `${run.name} ${run.findings.length}`) return;
  place.dataset.drawn = `${run.name} ${run.findings.length}`;
  const open = new Set(all("details[open]", place).map((one) => one.dataset.finding));
  place.replaceChildren(...[...byRule].map(([rule, found]) => {
    const [first] = found;
    const title = [element("span", { class: "id" }, visible(rule)), element("span", { class: "actual" }, ` ${visible(first.text)}`)];
    const row = conversationRow(first.scenario, title, first.level, found.length > 1 ? `${found.length} times` : "");
    row.classList.add("finding");
    row.dataset.finding = rule;
    row.open = open.has(rule);
    return row;
  }));
}

function duration(seconds) {
  return seconds < 100 ? `${Math.max(0, seconds).toFixed(0)} s` : `${(seconds / 60).toFixed(1)} min`;
}

function waitWords({ step, waits, bound, since }) {
  if (!waits) return step ? ` waits: ${step}` : "";
  const waited = Math.min(Math.max(0, Date.now() / 1000 - since), bound);
  return ` waits for ${waits}, ${waited.toFixed(0)} s of ${Number(bound.toFixed(1))} s (${step})`;
}

function draw() {
  scheduled = 0;
  if (!run) return;
  const { started, plays, lanes, ended } = run;
  const counts = Object.fromEntries(VERDICTS.map((word) => [word, 0]));
  for (const { verdict } of plays.values()) counts[verdict] = (counts[verdict] || 0) + 1;
  const done = plays.size || run.counted, total = Math.max(started.total || 0, plays.size);
  byId("title").textContent = visible(`${started.activity || "run"} of ${started.target || "?"}`);
  byId("about").textContent = visible(`${run.name}: ${started.command || ""}`);
  byId("meter").hidden = false;
  const bar = byId("meter").querySelector("svg");
  bar.replaceChildren();
  let left = 0;
  for (const [word, count] of Object.entries(counts)) {
    if (!count) continue;
    const rect = document.createElementNS(bar.namespaceURI, "rect");
    const width = (1000 * count) / total;
    for (const [name, value] of Object.entries({ class: slug(word), x: left, y: 0, width, height: 10 })) rect.setAttribute(name, value);
    left += width;
    bar.append(rect);
  }
  const numbers = [element("b", {}, total ? `${done} of ${total} played` : `${done} plays`)];
  for (const [word, count] of Object.entries(counts)) if (count) numbers.push(element("span", {}, element("span", { class: `key ${slug(word)}` }), `${count} ${word.toLowerCase().replaceAll("_", " ")}`));
  const took = run.last - run.began;
  if (!ended && !run.gone && total && done) numbers.push(element("span", { class: "quiet" }, `about ${duration((took * (total - done)) / done)} left`));
  if (ended) numbers.push(element("span", { class: "quiet" }, `in ${duration(took)}`));
  byId("numbers").replaceChildren(...numbers);
  byId("links").replaceChildren(...(ended && started.activity === "run" ? [element("a", { href: `report?${new URLSearchParams({ run: run.name })}` }, "Open the whole report")] : []));
  byId("lanes").replaceChildren(...[...lanes].sort().map(([name, lane]) => element("li", {}, element("span", { class: "quiet" }, visible(name)), element("span", {}, element("code", {}, visible(lane.scenario)), visible(waitWords(lane))), element("span", { class: "seconds" }, duration(Date.now() / 1000 - lane.began)))));
  drawFindings();
  byId("findings-count").textContent = run.findings.length || "";
  byId("plays-count").textContent = plays.size || "";
  byId("lanes").parentElement.hidden = Boolean(ended) || run.gone;
  byId("lanes-none").hidden = lanes.size > 0;
  byId("findings-none").hidden = run.findings.length > 0;
  byId("plays-none").hidden = plays.size > 0;
  if (ended) showLive(visible(ended.verdict), ended.status === 0 ? "pass" : "fail");
  else if (run.gone) showLive("killed: its process is gone", "error");
  else showLive("live", "info");
}
const schedule = () => { scheduled ||= setTimeout(draw, 100); };

follow(`events?${new URLSearchParams({ run: chosen })}`, {
  begin: (event) => { begin(event.run); schedule(); },
  progress: (event) => {
    run.last = event.at;
    on[event.event]?.(event);
    schedule();
  },
  gone: () => { run.gone = true; run.lanes.clear(); schedule(); },
});
setInterval(() => run && run.lanes.size && draw(), 1000);
