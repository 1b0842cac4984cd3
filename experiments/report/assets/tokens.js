// Text as the model reads it: one box a token, colored by a number.
"use strict";
composcope.tokens = (() => {
  const { el, showTip, hideTip } = composcope;

  // pieces: text of each token; about: {color(i), tell(i) -> lines, kind(i) -> class, pick(i), label}
  function draw(pieces, about) {
    const spans = pieces.map((piece, i) => {
      const can = about.pick && about.can(i);
      const span = el(can ? "button" : "span", { class: `token ${about.kind ? about.kind(i) : ""}`, type: can ? "button" : null, "data-token": i });
      const color = about.color(i);
      if (color) span.style.backgroundColor = color;
      span.textContent = shown(piece);
      return span;
    });
    const box = el("div", { class: "tokens", role: "group", "aria-label": about.label });
    spans.forEach((span, i) => {
      box.append(span);
      if (pieces[i].includes("\n")) box.append(el("br"));
    });
    const place = (event) => { const t = event.target.closest("[data-token]"); return t ? Number(t.dataset.token) : null; };
    const tell = (event) => { const i = place(event); if (i === null) hideTip(); else showTip(event, about.tell(i)); };
    box.addEventListener("mousemove", tell);
    box.addEventListener("focusin", (e) => { const b = e.target.getBoundingClientRect(); const i = place(e); if (i !== null) showTip({ clientX: b.right, clientY: b.top }, about.tell(i)); });
    ["mouseleave", "focusout"].forEach((kind) => box.addEventListener(kind, hideTip));
    if (about.pick) box.addEventListener("click", (e) => { const i = place(e); if (i !== null && about.can(i)) about.pick(i); });
    return box;
  }

  // White space and tokens that are part of a character leave a visible trace.
  function shown(piece) {
    if (piece === "") return "·";
    return piece.replace(/\r/g, "␍").replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/^ /, "\u00a0");
  }

  return { draw, shown };
})();
