// Wires the page: figures are drawn when they come into view, their rows loaded only then.
"use strict";
(() => {
  const { el, need, number, charts, cases } = composcope;
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
    return (row) => need("cases").then(() => cases.jump({ run: cases.runOf(row.run), set: FAILING[id], depth: row.depth, family: row.family }));
  }

  // A lookback cell: the head's numbers for every kind of question and group.
  function onCell(id, data) {
    if (id !== "lookback") return null;
    const rows = charts.objects(data);
    return (cell) => {
      const mine = rows.filter((r) => r.model === cell.model && r.layer === cell.layer && r.head === cell.head);
      const kinds = charts.unique(mine.map((r) => r.kind)), shows = ["failure", "success", "difference"];
      const at = (k, s) => { const r = mine.find((m) => m.kind === k && m.show === s); return el("td", { class: "num" }, r ? number(r.value) : "–"); };
      return el("div", {}, el("strong", {}, `Layer ${cell.layer}, head ${cell.head}`), el("table", { class: "plain" },
        el("thead", {}, el("tr", {}, el("th", {}, "asked"), ...shows.map((s) => el("th", { class: "num" }, s)))),
        el("tbody", {}, ...kinds.map((k) => el("tr", {}, el("td", { dir: "auto" }, k), ...shows.map((s) => at(k, s)))))));
    };
  }

  function numbers(box, data) {
    const cap = 300;
    const rows = data.rows.slice(0, cap);
    box.replaceChildren(el("table", { class: "plain" }, el("thead", {}, el("tr", {}, ...data.columns.map((c) => el("th", {}, c)))),
      el("tbody", {}, ...rows.map((r) => el("tr", {}, ...r.map((v) => el("td", { dir: "auto" }, v === null ? "" : number(v))))))),
      data.rows.length > cap ? el("p", { class: "fine" }, `first ${cap} of ${data.rows.length} rows; the csv has them all`) : "");
  }

  for (const figure of document.querySelectorAll("[data-figure]")) {
    const id = figure.dataset.figure, box = figure.querySelector("[data-chart]"), button = figure.querySelector("[data-numbers]");
    const name = `figure-${id}`;
    if (box) whenSeen(figure, () => need(name).then((data) => charts.draw(box, data, { onPoint: onPoint(id), onCell: onCell(id, data) }), () => {}));
    if (button) button.addEventListener("click", () => {
      const place = figure.querySelector(".numbers");
      place.hidden = !place.hidden;
      if (!place.hidden) need(name).then((data) => numbers(place, data), (error) => place.replaceChildren(error.message));
    });
    const caption = figure.querySelector("figcaption");
    if (caption) { caption.classList.add("short"); caption.addEventListener("click", () => caption.classList.remove("short")); }
  }

  whenSeen(document.getElementById("cases"), () => cases.start(document.getElementById("browser")), "800px");

  const links = new Map([...document.querySelectorAll(".top nav a")].map((a) => [a.getAttribute("href").slice(1), a]));
  const here = new IntersectionObserver((entries) => {
    for (const e of entries) {
      const link = links.get(e.target.id);
      if (link) link.classList.toggle("here", e.isIntersecting);
    }
  }, { rootMargin: "-45% 0px -50% 0px" });
  document.querySelectorAll("main > section").forEach((s) => here.observe(s));
})();
