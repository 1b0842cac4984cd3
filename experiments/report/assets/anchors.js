// Links within the page. What stands above a section is drawn as it comes into view and pushes the section down: the
// page stays at the section until it has settled, or until the reader moves on.
"use strict";
(() => {
  const SETTLED = 2500;
  let current = 0;

  function go(id) {
    const target = document.getElementById(decodeURIComponent(id));
    if (!target) return;
    const mine = ++current, until = performance.now() + SETTLED;
    const padding = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
    const leave = () => { current++; };
    const moves = ["wheel", "touchstart", "pointerdown", "keydown"];
    moves.forEach((name) => addEventListener(name, leave, { once: true, passive: true }));
    const step = () => {
      if (mine !== current || performance.now() > until) { moves.forEach((name) => removeEventListener(name, leave)); return; }
      if (Math.abs(target.getBoundingClientRect().top - padding) > 2) target.scrollIntoView({ behavior: "instant", block: "start" });
      requestAnimationFrame(step);
    };
    step();
  }

  composcope.goTo = go;
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a[href^='#']");
    if (link) go(link.getAttribute("href").slice(1));
  });
  addEventListener("hashchange", () => go(location.hash.slice(1)));
  if (location.hash) go(location.hash.slice(1));
})();
