// The page of a conversation by hand: a form for each request, buttons for approvals.
const forms = JSON.parse(byId("data").textContent);
const drawing = new LiveDrawing(byId("conversation"));
const lines = [];
let current = {};

async function send(line) {
  const { error, template } = await ask("do", { line });
  byId("error").textContent = error || "";
  byId("error").hidden = !error;
  if (template) (byId("line").value = template), byId("line").focus();
  return !error;
}

const isInput = (field) => field.type.startsWith("array of UserInput");
function drawFields() {
  const fields = forms[byId("method").value].map((field) => {
    const id = `field-${field.name}`;
    const isLong = isInput(field) || /object|array|Policy/.test(field.type);
    const widget = element(field.values.length ? "select" : isLong ? "textarea" : "input",
      { id, autocomplete: "off", spellcheck: "false", ...(isLong ? { rows: "2" } : {}) });
    if (field.values.length) widget.append(element("option", { value: "" }, "left out"), ...field.values.map((value) => element("option", { value }, value)));
    const words = isInput(field) ? "a text, or JSON" : field.values.length ? "" : field.type;
    return element("label", { for: id }, element("code", {}, field.name), field.required ? " (required) " : " ", words, widget);
  });
  const required = fields.filter((_, at) => forms[byId("method").value][at].required);
  const rest = fields.filter((one) => !required.includes(one));
  const fold = element("details", { class: "fold", ...(required.length ? {} : { open: "" }) }, element("summary", {}, `${rest.length} optional members`), ...rest);
  byId("fields").replaceChildren(...required, ...(rest.length ? [fold] : []));
  showInUse();
}
function showInUse() {
  const inUse = { threadId: current.thread, turnId: current.turn, expectedTurnId: current.turn };
  for (const [name, value] of Object.entries(inUse)) byId(`field-${name}`)?.setAttribute("placeholder", value ? `in use: ${value}` : "");
}
function valueOf(field, text) {
  if (isInput(field) && !text.trimStart().startsWith("[")) return [{ type: "text", text }];
  if (field.type.startsWith("string")) return field.values.length ? JSON.parse(text) : text;
  try { return JSON.parse(text); } catch { return text; }
}
byId("method").append(...Object.keys(forms).map((method) => element("option", {}, method)));
byId("method").value = "thread/start";
byId("method").addEventListener("change", drawFields);
drawFields();

byId("request").addEventListener("submit", (event) => {
  event.preventDefault();
  const method = byId("method").value;
  const params = {};
  for (const field of forms[method]) {
    const text = byId(`field-${field.name}`).value;
    if (text) params[field.name] = valueOf(field, text);
  }
  send(`${method} ${JSON.stringify(params)}`);
});
byId("prompt").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (await send(byId("line").value)) byId("line").value = "";
});
byId("model").addEventListener("submit", (event) => {
  event.preventDefault();
  send(`:model ${byId("model-does").value} ${byId("model-text").value}`);
});
byId("interrupt").addEventListener("click", () => send("turn/interrupt {}"));
byId("restart").addEventListener("click", () => send(":restart"));
byId("end").addEventListener("click", () => send(":quit"));

function drawQuestions(questions) {
  byId("questions").replaceChildren(...questions.map((question, number) => {
    const card = element("form", { class: "row card question" }, element("h2", {}, question.method), element("pre", { tabindex: "0" }, question.subject));
    if (number) return card.append(element("p", { class: "quiet" }, "is next")), card;
    const buttons = element("p", { class: "buttons" });
    for (const decision of question.decisions) {
      const button = element("button", { type: "button", ...(decision === "accept" ? { class: "primary" } : {}) }, decision);
      button.addEventListener("click", () => send(decision));
      buttons.append(button);
    }
    if (!question.decisions.length) {
      const answer = element("textarea", { rows: "3", "aria-label": "Result as JSON" });
      answer.value = "{}";
      card.append(answer);
      buttons.append(element("button", { class: "primary" }, "Answer"));
      card.addEventListener("submit", (event) => (event.preventDefault(), send(`:answer ${answer.value}`)));
    }
    card.append(buttons);
    return card;
  }));
}

const events = follow("events", {
  diagram: (change) => drawing.change(change),
  state: (state) => {
    if (JSON.stringify(state.questions) !== JSON.stringify(current.questions)) drawQuestions(state.questions);
    current = state;
    const parts = [state.thread || "no thread yet", state.turn && `${state.turn} runs`, `${state.messages} messages`, `${state.findings} findings`];
    if (state.gates.length) parts.push(`the model waits at ${state.gates.join(", ")}`);
    if (state.gone) parts.push("the server is gone");
    byId("state").textContent = parts.filter(Boolean).join(" · ");
    byId("interrupt").disabled = !state.turn;
    showInUse();
  },
  lines: ({ from, lines: added }) => {
    lines.splice(from, lines.length, ...added);
    byId("lines").textContent = lines.join("\n");
    byId("lines").scrollTop = byId("lines").scrollHeight;
  },
  ended: ({ status }) => {
    events.close();
    showLive(`ended, exit status ${status}`, status ? "fail" : "pass");
    for (const one of all("button, input, select, textarea", byId("main"))) one.disabled = one.closest(".controls") !== null;
  },
});
