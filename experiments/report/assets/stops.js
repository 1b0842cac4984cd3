// One tab stop per chart: the arrow keys go through its legend and panels as if they were one list.
"use strict";
composcope.stops = (() => {
  const PARTS = ".legend button, svg[role=application], canvas[role=application]";
  const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  const parts = (box) => [...box.querySelectorAll(PARTS)];

  // Only one part can be reached with Tab: the one that had the focus last, at first the first panel.
  function only(box, at) {
    parts(box).forEach((node, i) => { node.tabIndex = i === at ? 0 : -1; });
  }

  // Make the parts of a chart one stop. at: the part to begin with; focus: whether it had the focus before it was drawn again.
  function join(box, at = -1, focus = false) {
    const all = parts(box), panel = all.findIndex((node) => !node.matches("button"));
    const first = all[at] ? at : Math.max(panel, 0);
    only(box, first);
    if (focus && all[first]) all[first].focus({ preventScroll: true });
  }

  // The part with the focus, or -1.
  const held = (box) => parts(box).indexOf(document.activeElement);

  // Listen in a chart's box, which stays while its parts are drawn again.
  function listen(box) {
    const move = (from, by, row) => {
      const all = parts(box), next = all[all.indexOf(from) + by];
      if (!next) return false;
      next.focus();
      next.dispatchEvent(new CustomEvent("entered", { detail: { by, row } }));
      return true;
    };
    box.addEventListener("focusin", () => { const at = held(box); if (at >= 0) only(box, at); });
    box.addEventListener("keydown", (e) => {
      const by = STEPS[e.key];
      if (by && e.target.matches(".legend button")) { move(e.target, by); e.preventDefault(); }
    });
    // A panel whose end is reached asks for its neighbor; where there is none, it keeps the focus.
    box.addEventListener("beyond", (e) => { if (move(e.target, e.detail.by, e.detail.row)) e.preventDefault(); });
  }

  // Ask for the panel before or after this one; returns whether there is one. row: where a map was left.
  const leave = (node, by, row) => !node.dispatchEvent(new CustomEvent("beyond", { bubbles: true, cancelable: true, detail: { by, row } }));

  return { STEPS, join, held, listen, leave };
})();
