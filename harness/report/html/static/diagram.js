function drawConversation(place, diagram) {
  place.replaceChildren(element("p", {}, visible(diagram.title)));
}
