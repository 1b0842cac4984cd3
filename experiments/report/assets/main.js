// Wires the page: figures are drawn when they come into view, their rows loaded only then.
"use strict";
(() => {
  const { el, need, number, charts, cases, chooser, attention, pictures } = composcope;
  document.getElementById("theme").addEventListener("click", composcope.toggle);

  function whenSeen(node, act, margin = "400px") {
    const watch = new IntersectionObserver((entries) => {
      if (entries.some((e) => e.isIntersecting)) { watch.disconnect(); act(); }
    }, { rootMargin: margin });
    watch.observe(node);
  }

  const FAILING = { "collapse-curve": "residual-failure", "family-curves": "residual-failure" };

  function onPoint(id) {
    if (!FAILING[id]) return null;
    return (row) => cases.jump(row.run, { set: FAILING[id], depth: row.depth, family: row.family });
  }

  // A lookback cell: the head's numbers for every kind of question and group, and the tokens that it looks at.
  function onCell(id, data) {
    if (id !== "lookback") return null;
    const rows = charts.objects(data);
    return (cell) => {
      const mine = rows.filter((r) => r.model === cell.model && r.layer === cell.layer && r.head === cell.head);
      const kinds = charts.unique(mine.map((r) => r.kind)), shows = ["failure", "success", "difference"];
      const at = (k, s) => { const r = mine.find((m) => m.kind === k && m.show === s); return el("td", { class: "num" }, r ? number(r.value) : "–"); };
      look(cell);
      return el("div", {}, el("strong", {}, `Layer ${cell.layer}, head ${cell.head}`), el("table", { class: "plain" },
        el("thead", {}, el("tr", {}, el("th", {}, "asked"), ...shows.map((s) => el("th", { class: "num" }, s)))),
        el("tbody", {}, ...kinds.map((k) => el("tr", {}, el("td", { dir: "auto" }, k), ...shows.map((s) => at(k, s)))))));
    };
  }

  // The view of single cases below a probe's figures; the one of lookback follows the cell that was clicked.
  let follow = null, head = null;
  function look(cell) {
    head = { layer: cell.layer, head: cell.head };
    if (follow) follow(cell.model);
  }
  const VIEWS = {
    lookback: (box) => {
      const place = el("div", {});
      chooser.make(box, "lookback", (c) => c.attention.length > 0, (body, file) => {
        if (!place.isConnected) body.replaceChildren(place);
        attention.draw(place, file.probes.lookback, head);
      }).then((found) => {
        if (found) follow = (model) => { found.go(model); box.scrollIntoView({ block: "nearest" }); };
      });
    },
    patching: (box) => chooser.make(box, "patching", (c) => c.probes.includes("patching"), (body, file) => pictures.draw(body, file, "patching")),
    trajectory: (box) => chooser.make(box, "trajectory", (c) => c.probes.includes("trajectory"), (body, file) => pictures.draw(body, file, "trajectory")),
    "min-k": (box) => chooser.make(box, "min-k", (c) => c.probes.includes("min-k"), (body, file) => pictures.draw(body, file, "min-k")),
  };

  // A cell of the location map: where in the layer, and which share of the task's neurons lie there.
  function onTell(id) {
    if (id !== "neuron-map") return null;
    return (r, rows) => {
      const total = rows.reduce((sum, x) => sum + (x.value || 0), 0), bins = Math.max(...rows.map((x) => x.bin)) + 1;
      const layer = rows.filter((x) => x.layer === r.layer).reduce((sum, x) => sum + (x.value || 0), 0);
      const percent = (v) => `${(100 * v).toFixed(1)} %`;
      return ["neurons per query", total ? `${percent(r.value / total)} of all, its layer ${percent(layer / total)}` : "", `indices at ${percent(r.bin / bins)} to ${percent((r.bin + 1) / bins)} of the layer`];
    };
  }

  function numbers(box, data) {
    const cap = 300;
    const rows = data.rows.slice(0, cap);
    box.replaceChildren(el("table", { class: "plain" }, el("thead", {}, el("tr", {}, ...data.columns.map((c) => el("th", {}, c)))),
      el("tbody", {}, ...rows.map((r) => el("tr", {}, ...r.map((v) => el("td", { dir: "auto" }, v === null ? "" : number(v))))))),
      data.rows.length > cap ? el("p", { class: "fine" }, `first ${cap} of ${data.rows.length} rows; the csv has them all`) : "");
  }

  // Long captions show their first lines until they are clicked or opened with a key.
  function unfoldable(caption) {
    caption.classList.add("short");
    if (caption.scrollHeight <= caption.clientHeight + 2) { caption.classList.remove("short"); return; }
    const unfold = () => { caption.classList.remove("short"); caption.removeAttribute("tabindex"); caption.removeAttribute("role"); };
    caption.tabIndex = 0;
    caption.setAttribute("role", "button");
    caption.addEventListener("click", unfold);
    caption.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { unfold(); e.preventDefault(); } });
  }

  for (const figure of document.querySelectorAll("[data-figure]")) {
    const id = figure.dataset.figure, box = figure.querySelector("[data-chart]"), button = figure.querySelector("[data-numbers]");
    const name = `figure-${id}`;
    if (box) whenSeen(figure, () => need(name).then((data) => charts.draw(box, data, { onPoint: onPoint(id), onCell: onCell(id, data), onTell: onTell(id) }), () => {}));
    if (button) button.addEventListener("click", () => {
      const place = figure.querySelector(".numbers");
      place.hidden = !place.hidden;
      if (!place.hidden) need(name).then((data) => numbers(place, data), (error) => place.replaceChildren(error.message));
    });
    const caption = figure.querySelector("figcaption");
    if (caption) unfoldable(caption);
  }

  // On a narrow page a picture that is hardly wider is made to fit; a wide one keeps its letters legible and scrolls.
  for (const picture of document.querySelectorAll(".still")) {
    const fit = () => picture.classList.toggle("fits", picture.naturalWidth > 0 && picture.naturalWidth < 1.2 * innerWidth);
    picture.addEventListener("load", fit);
    fit();
  }

  for (const box of document.querySelectorAll("[data-view]")) whenSeen(box, () => VIEWS[box.dataset.view](box));
  whenSeen(document.getElementById("cases"), () => cases.start(), "800px");

  const links = new Map([...document.querySelectorAll(".top nav a")].map((a) => [a.getAttribute("href").slice(1), a]));
  const here = new IntersectionObserver((entries) => {
    for (const e of entries) {
      const link = links.get(e.target.id);
      if (link) link.classList.toggle("here", e.isIntersecting);
    }
  }, { rootMargin: "-45% 0px -50% 0px" });
  document.querySelectorAll("main > section").forEach((s) => here.observe(s));
})();
