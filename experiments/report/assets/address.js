// Follow the address: a section (#patching), a case (#run=A&case=B), or a list of cases (#run=A&set=B&depth=4).
// Figures above a section are drawn as they come into view and push the section down, so the page keeps the section in
// place until the layout settles or the reader moves on.
"use strict";
(() => {
  const { cases, dossier } = composcope;
  // The layout has settled after this many milliseconds and frames without a move; a busy machine shows few frames.
  const SETTLED = 2500, FRAMES = 60;
  let current = 0;

  // An address that somebody typed or cut off may be no encoded text: then it is taken as it is.
  function decoded(id) {
    try { return decodeURIComponent(id); } catch { return id; }
  }

  function go(id) {
    const target = document.getElementById(decoded(id));
    if (!target) return;
    composcope.unfold(target);
    const mine = ++current;
    let until = performance.now() + SETTLED, quiet = 0;
    const padding = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
    const leave = () => { current++; };
    const moves = ["wheel", "touchstart", "pointerdown", "keydown"];
    moves.forEach((name) => addEventListener(name, leave, { once: true, passive: true }));
    const step = () => {
      const settled = performance.now() > until && quiet > FRAMES;
      if (mine !== current || settled) { moves.forEach((name) => removeEventListener(name, leave)); return; }
      const before = scrollY;
      if (Math.abs(target.getBoundingClientRect().top - padding) > 2) target.scrollIntoView({ behavior: "instant", block: "start" });
      // A section near the end of the page cannot reach the top, so only what really moved counts.
      if (scrollY === before) quiet++; else { quiet = 0; until = performance.now() + SETTLED; }
      requestAnimationFrame(step);
    };
    step();
  }
  composcope.goTo = go;

  // Change only the part after #, which a page opened from a file may do.
  composcope.address = (wanted) => {
    const text = new URLSearchParams(Object.entries(wanted).filter(([, v]) => v !== null && v !== undefined && v !== "")).toString();
    history.replaceState(null, "", `#${text || "cases"}`);
  };

  // Find a run by its name on the page or by its folder's name.
  function runOf(index, name) {
    const called = index.runs.findIndex((r) => r.label === name);
    return called >= 0 ? called : index.runs.findIndex((r) => r.name === name);
  }

  function read() {
    const hash = location.hash.slice(1);
    if (!hash.includes("=")) { if (hash) go(hash); return; }
    const said = Object.fromEntries(new URLSearchParams(hash));
    cases.start().then((index) => {
      if (!index) return;
      const run = said.run === undefined ? composcope.run.at : runOf(index, said.run);
      if (run >= 0 && run !== composcope.run.at) composcope.showRun(run);
      if (said.case !== undefined) { dossier.open(said.case); go("case"); return; }
      cases.filter({ ...said, run: said.run === undefined ? "" : run });
      go("cases");
    });
  }

  document.addEventListener("click", (e) => {
    const link = e.target.closest("a[href^='#']");
    if (!link) return;
    const hash = link.getAttribute("href").slice(1);
    // A second click on the same link does not change the address, but it is followed again.
    if (`#${hash}` === location.hash || !hash.includes("=")) (hash.includes("=") ? read : () => go(hash))();
  });
  addEventListener("hashchange", read);
  composcope.ready.then(read);
})();
