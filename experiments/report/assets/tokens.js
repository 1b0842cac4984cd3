// Text as the model reads it: one box per token, colored by a number.
"use strict";
composcope.tokens = (() => {
  const { el, showTip, hideTip } = composcope;

  // pieces: text of each token; about: {color(i), tell(i) -> lines, kind(i) -> class, can(i), pick(i), label}
  // One tab stop: the arrow keys go from token to token, Enter picks the marked one.
  function draw(pieces, about) {
    const spans = pieces.map((piece, i) => {
      const can = about.pick && about.can(i);
      const span = el("span", { class: `token ${can ? "can " : ""}${about.kind ? about.kind(i) : ""}`, "data-token": i });
      const color = about.color(i);
      if (color) span.style.backgroundColor = color;
      span.textContent = shown(piece);
      return span;
    });
    const keys = about.pick ? "arrow keys go over the tokens, Enter picks one" : "arrow keys go over the tokens";
    const box = el("div", { class: "tokens", role: "application", tabindex: 0, "aria-label": `${about.label}; ${keys}` });
    spans.forEach((span, i) => {
      box.append(span);
      if (pieces[i].includes("\n")) box.append(el("br"));
    });
    let here = -1;
    const place = (event) => { const t = event.target.closest("[data-token]"); return t ? Number(t.dataset.token) : null; };
    const pick = (i) => { if (about.pick && i !== null && i >= 0 && about.can(i)) about.pick(i); };
    box.addEventListener("mousemove", (event) => { const i = place(event); if (i === null) hideTip(); else showTip(event, about.tell(i)); });
    box.addEventListener("mouseleave", hideTip);
    box.addEventListener("blur", () => { hideTip(); if (here >= 0) spans[here].classList.remove("here"); here = -1; });
    box.addEventListener("click", (event) => pick(place(event)));
    box.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (by) {
        if (here >= 0) spans[here].classList.remove("here");
        here = Math.min(Math.max(here + by, 0), spans.length - 1);
        spans[here].classList.add("here");
        spans[here].scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
        const b = spans[here].getBoundingClientRect();
        showTip({ clientX: b.right, clientY: b.top, target: spans[here] }, about.tell(here));
        event.preventDefault();
      } else if (event.key === "Enter" || event.key === " ") { pick(here); event.preventDefault(); }
    });
    return box;
  }

  // White space and tokens that are part of a character leave a visible trace.
  function shown(piece) {
    if (piece === "") return "·";
    return piece.replace(/\r/g, "␍").replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/^ /, "\u00a0");
  }

  return { draw, shown };
})();
