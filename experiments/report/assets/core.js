// Shared by all views: loading data scripts, building nodes (text only, never markup), theme, tooltip.
"use strict";
const composcope = (() => {
  const root = document.documentElement;
  // Where this page's data files are below data/.
  const folder = root.dataset.path || "";
  const waiting = new Map();
  const loaded = new Map();

  // Data files call this: see report/scripts.py.
  function load(name, text) {
    const value = JSON.parse(text);
    loaded.set(name, value);
    const wait = waiting.get(name);
    if (wait) wait.resolve(value);
  }

  // Load data/NAME.js once (or the block of that name in this page); fetch does not work from a file, a script tag does.
  function need(name) {
    if (loaded.has(name)) return Promise.resolve(loaded.get(name));
    if (waiting.has(name)) return waiting.get(name).promise;
    const block = document.querySelector(`script[data-name="${CSS.escape(name)}"]`);
    if (block) { loaded.set(name, JSON.parse(block.textContent)); block.remove(); return Promise.resolve(loaded.get(name)); }
    const wait = {};
    wait.promise = new Promise((resolve, reject) => { wait.resolve = resolve; wait.reject = reject; });
    waiting.set(name, wait);
    const tag = document.createElement("script");
    tag.src = `data/${folder}${name.split("/").map(encodeURIComponent).join("/")}.js`;
    tag.onerror = () => { waiting.delete(name); wait.reject(new Error(`data/${folder}${name}.js is missing; it must be next to this page`)); };
    // A page that was copied alone has no data: say so once, at the top.
    if (!waiting.size || name === "cases") wait.promise.catch(() => { const said = document.getElementById("missing"); if (said && !loaded.size) { said.hidden = false; document.querySelector("[data-place=case]")?.replaceChildren(); } });
    document.head.append(tag);
    return wait.promise;
  }

  // el("p", {class: "x"}, "text", node): strings become text nodes.
  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    apply(node, attributes);
    node.append(...children.filter((c) => c !== null && c !== undefined).map((c) => (c instanceof Node ? c : String(c))));
    return node;
  }

  function svg(tag, attributes, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    apply(node, attributes);
    node.append(...children.map((c) => (c instanceof Node ? c : String(c))));
    return node;
  }

  function apply(node, attributes) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : String(value));
    }
  }

  // Open the folded parts around a node, and the one that a section consists of.
  function unfold(node) {
    const own = node.querySelector(":scope > details.whole");
    for (let part = own || node.closest("details"); part; part = part.parentNode.closest("details")) part.open = true;
  }

  // What an object has under a name from outside, such as a case's id: "constructor" may be one.
  const own = (object, name) => (object && Object.hasOwn(object, name) ? object[name] : null);

  // Text of unknown direction and content, shown as it is.
  const text = (value, attributes) => el("div", { class: "text", dir: "auto", ...attributes }, value);

  const wished = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  let chosen = null;
  try { chosen = localStorage.getItem("composcope-theme"); } catch { /* storage can be switched off */ }
  const repaint = [];
  function theme(name) {
    root.dataset.theme = name;
    repaint.forEach((draw) => draw());
  }
  theme(chosen || wished());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!chosen) theme(wished()); });
  function toggle() {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("composcope-theme", chosen); } catch { /* the choice lasts for this visit */ }
    theme(chosen);
  }

  // The run that the whole page shows: its number in the list of runs, and the listeners for changes.
  const run = { at: 0, listeners: [] };
  function showRun(at) {
    run.at = at;
    run.listeners.forEach((tell) => tell(at));
  }

  // The run that a row of a figure is about: by its folder's name, and where several have that name by its label, too.
  function runOf(runs, row) {
    const named = runs.flatMap((r, i) => (row.run ? r.name === row.run : r.label === row.model) ? [i] : []);
    return named.find((i) => runs[i].label === row.model) ?? named[0] ?? -1;
  }

  let tip = null, about = null;
  // event: where to show it, and the node (target) that it is about.
  function showTip(event, lines) {
    if (!tip) { tip = el("div", { id: "tip", role: "status" }); document.body.append(tip); }
    tip.textContent = lines.filter(Boolean).join("\n");
    tip.style.display = "block";
    const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const y = event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18;
    tip.style.left = `${Math.max(4, x)}px`;
    tip.style.top = `${Math.max(4, y)}px`;
    about = { node: event.target, ...placeOf(event.target) };
  }
  function hideTip() { if (tip) tip.style.display = "none"; about = null; }
  function placeOf(node) { const b = node.getBoundingClientRect(); return { left: b.left, top: b.top }; }

  // The tooltip stays on the screen while what it is about scrolls away, so it goes. A scroll that ended before it was
  // shown may be told only now, so what counts is whether the node has moved since.
  addEventListener("scroll", () => {
    if (!about) return;
    const now = placeOf(about.node);
    if (Math.hypot(now.left - about.left, now.top - about.top) > 2) hideTip();
  }, { capture: true, passive: true });

  // Escape hides the tooltip and closes the case that has the focus.
  document.addEventListener("keydown", (e) => {
    if (e.key !== "Escape") return;
    hideTip();
    const at = document.activeElement, inside = at && at.closest(".case");
    const head = inside ? inside.previousElementSibling : at && at.matches(".item[aria-expanded='true']") ? at : null;
    if (head) { head.focus(); head.click(); }
  });

  const number = (v) => (v === null || v === undefined ? "undefined" : typeof v !== "number" ? String(v)
    : Number.isInteger(v) ? String(v) : Math.abs(v) >= 100 ? v.toFixed(1) : Number(v.toPrecision(3)).toString());

  return { load, need, el, svg, text, own, unfold, toggle, showTip, hideTip, number, run, runOf, showRun, onRun: (tell) => run.listeners.push(tell), onRepaint: (draw) => repaint.push(draw) };
})();
