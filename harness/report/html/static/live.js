// Pages that follow the events of their own server.
history.replaceState(null, "", location.pathname + location.hash); // The token is in the cookie now.

function showLive(words, tone = "known") {
  byId("live").textContent = words;
  byId("live").className = `live-state ${tone}`;
}

// `handlers` take the data of an event by its name. The browser reconnects by itself.
function follow(path, handlers) {
  const source = new EventSource(path);
  source.addEventListener("open", () => showLive("live", "pass"));
  source.addEventListener("error", () => showLive(source.readyState === EventSource.CLOSED ? "not connected" : "reconnecting"));
  for (const [name, handle] of Object.entries(handlers)) source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  return source;
}

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    const answer = await fetch(path, options);
    return answer.headers.get("Content-Type") === "application/json" ? await answer.json() : { error: await answer.text() };
  } catch {
    return { error: "The command does not answer; it has probably ended." };
  }
}

// A diagram that grows: rows from `from` on are replaced.
class LiveDrawing {
  constructor(place) {
    this.place = place;
    this.names = "";
  }
  change({ participants, from, rows }) {
    const followsEnd = this.place.scrollHeight - this.place.scrollTop - this.place.clientHeight < 80;
    const names = JSON.stringify(participants);
    if (names !== this.names || from === 0) {
      this.list = drawSheet(this.place, participants);
      this.names = names;
    }
    while (this.list.children.length > from) this.list.lastChild.remove();
    const ids = participants.map((one) => one.id);
    this.list.append(...rows.map((row) => drawRow(row, ids)));
    if (followsEnd) this.place.scrollTop = this.place.scrollHeight;
  }
}

const recording = byId("recording");
if (recording) {
  const drawing = new LiveDrawing(recording);
  follow(`events?recording=${recording.dataset.file}`, { diagram: (change) => drawing.change(change) });
}
