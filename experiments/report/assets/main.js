// Connect the parts of the page. Figures are drawn, and their rows loaded, only when they come into view.
"use strict";
(() => {
  const { el, need, number, arrays, charts, cases, dossier } = composcope;
  document.getElementById("theme").addEventListener("click", composcope.toggle);

  const unseen = new Set();
  function whenSeen(node, act, margin = "400px") {
    const now = () => { watch.disconnect(); unseen.delete(now); act(); };
    const watch = new IntersectionObserver((entries) => { if (entries.some((e) => e.isIntersecting)) now(); }, { rootMargin: margin });
    unseen.add(now);
    watch.observe(node);
  }

  // Paper shows everything: what is folded opens for it, and what nobody has seen yet is drawn.
  let folded = [];
  const fold = (parts, open) => parts.forEach((part) => { part.open = open; part.dispatchEvent(new Event("toggle")); });
  addEventListener("beforeprint", () => { folded = [...document.querySelectorAll("details:not([open])")]; fold(folded, true); [...unseen].forEach((now) => now()); });
  addEventListener("afterprint", () => { fold(folded, false); folded = []; });

  const FAILING = { "collapse-curve": "residual-failure", "family-curves": "residual-failure" };

  function onPoint(id) {
    if (!FAILING[id]) return null;
    return (row) => cases.jump(row, { set: FAILING[id], ...cases.at(row.depth), family: row.family });
  }

  // The head whose tokens the case is to show.
  function choose({ layer, head }) { composcope.head = { layer, head }; dossier.opened.add("lookback"); }

  // A lookback cell: the head's numbers for every kind of question and group, and its tokens in the case above.
  function onCell(id, data, index) {
    if (id !== "lookback") return null;
    const rows = charts.objects(data);
    return (cell) => {
      const mine = rows.filter((r) => r.model === cell.model && r.layer === cell.layer && r.head === cell.head);
      const kinds = charts.unique(mine.map((r) => r.kind)), shows = ["failure", "success", "difference"];
      const at = (k, s) => { const r = mine.find((m) => m.kind === k && m.show === s); return el("td", { class: "num" }, r ? number(r.value) : "–"); };
      const look = () => {
        choose(cell);
        Promise.resolve(dossier.again()).then(() => composcope.goTo("tokens"));
      };
      const run = composcope.runOf(index.runs, cell), place = el("div", {});
      differing(run, cell, index).then((found) => place.replaceChildren(differs(found, run, cell)), (error) => place.replaceChildren(error.message));
      return el("div", {}, el("strong", {}, `Layer ${cell.layer}, head ${cell.head} `), el("button", { type: "button", class: "link", "data-look": "", onclick: look }, "the tokens that it looks at in the case above"), el("table", { class: "plain" },
        el("thead", {}, el("tr", {}, el("th", {}, "asked"), ...shows.map((s) => el("th", { class: "num" }, s)))),
        el("tbody", {}, ...kinds.map((k) => el("tr", {}, el("td", { dir: "auto" }, k), ...shows.map((s) => at(k, s)))))), place);
    };
  }

  // The failing cases that were probed, sorted by the distance of this head's lookback ratio from that of the success shown
  // with the case, or, if that success was not probed, from the mean of the successes that were. Null if the run has no
  // heads of single cases.
  function differing(run, { layer, head }, index) {
    const every = index.heads[run];
    if (!every) return Promise.resolve(null);
    return need(every).then((data) => {
      const ratio = ofAll(data, layer, head);
      const known = [...ratio].filter(([name, value]) => value !== null && cases.find(run, name));
      const right = (name) => cases.find(run, name).whole === "correct";
      const usual = arrays.mean(known.filter(([name]) => right(name)).map(([, value]) => value));
      return known.filter(([name]) => !right(name)).map(([name, value]) => {
        const own = ratio.get(cases.find(run, name).twin), against = own ?? usual;
        return { name, value, against, matched: (own ?? null) !== null, difference: against === null ? null : value - against };
      }).filter((d) => d.difference !== null).sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference));
    });
  }

  function ofAll(data, layer, head) {
    const read = arrays.unpack(data.ratio);
    return new Map(data.cases.map((name, i) => [name, read.at(i, layer, head)]));
  }

  const FIRST = 8;
  function differs(found, run, { layer, head }) {
    if (!found) return el("p", { class: "fine" }, "This run keeps no heads of single cases; ", el("code", {}, "composcope probe RUN --probes lookback"), " measures them.");
    if (!found.length) return el("p", { class: "fine" }, "No failing case of this run was probed together with a success.");
    const line = (d) => el("li", { "data-differs": d.name, "data-difference": d.difference },
      el("a", { href: `#${new URLSearchParams({ run: cases.label(run), case: d.name })}`, dir: "auto", onclick: () => choose({ layer, head }) }, d.name), ` ${number(d.value)} against ${number(d.against)} in ${d.matched ? "its success" : "the successes"} (${d.difference < 0 ? "−" : "+"}${number(Math.abs(d.difference))})`);
    const rest = found.slice(FIRST);
    return el("div", {}, el("p", { class: "fine" }, `Where it differs most, of ${found.length} failing case${found.length === 1 ? "" : "s"} that ${found.length === 1 ? "was" : "were"} probed (lookback ratio over the answer; single cases are not findings):`),
      el("ol", { class: "differs" }, ...found.slice(0, FIRST).map(line)),
      rest.length ? el("details", {}, el("summary", {}, `${rest.length} more`), el("ol", { class: "differs", start: FIRST + 1 }, ...rest.map(line))) : null);
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

  // Everything but the figures waits for the index, which tells which run and case to show.
  composcope.ready = cases.start().then((index) => {
    if (!index) return;
    composcope.run.at = index.best;
    const chooser = document.getElementById("run");
    if (chooser) chooser.addEventListener("change", () => composcope.showRun(Number(chooser.value)));
    composcope.onRun((at) => {
      if (chooser) chooser.value = String(at);
      for (const page of document.querySelectorAll("[data-landing]")) page.hidden = Number(page.dataset.landing) !== at;
    });
    if (!location.hash.includes("case=")) dossier.start();
    whenSeen(document.getElementById("cases"), () => cases.browse(), "800px");
    for (const figure of document.querySelectorAll("[data-figure]")) {
      const id = figure.dataset.figure, box = figure.querySelector("[data-chart]");
      if (box) whenSeen(figure, () => need(`figure-${id}`).then((data) => {
        if ("later" in box.dataset && !arrived(figure, box, data)) return;
        charts.draw(box, data, { runs: index.runs, onPoint: onPoint(id), onCell: onCell(id, data, index) });
      }, (error) => { if ("later" in box.dataset) box.replaceChildren(el("p", { class: "absent" }, error.message)); }));
    }
    return index;
  });

  for (const figure of document.querySelectorAll("[data-figure]")) {
    const button = figure.querySelector("[data-numbers]"), caption = figure.querySelector("figcaption");
    if (button) button.addEventListener("click", () => {
      const place = figure.querySelector(".numbers");
      place.hidden = !place.hidden;
      if (!place.hidden) need(`figure-${figure.dataset.figure}`).then((data) => numbers(place, data), (error) => place.replaceChildren(error.message));
    });
    if (caption) whenSeen(figure, () => unfoldable(caption));
  }

  // Fill in a figure that the server drew when the page asked for it. Returns whether the page has a chart to draw.
  function arrived(figure, box, data) {
    delete box.dataset.later;
    if (data.empty !== null) {
      figure.replaceChildren(figure.querySelector("h4"), el("p", { class: "absent", dir: "auto" }, data.empty));
      return false;
    }
    const caption = figure.querySelector("figcaption");
    caption.textContent = data.caption;
    unfoldable(caption);
    if (data.chart) return true;
    const title = figure.querySelector("h4").textContent;
    figure.classList.remove("interactive");
    box.replaceChildren(...data.sources.map((src, i) => still(el("img", { class: `still ${i ? "dark" : "light"}`, src, alt: i ? "" : title }))));
    return false;
  }

  // On a narrow page, a slightly wider picture shrinks to fit; a much wider one scrolls, so that its text stays legible.
  function still(picture) {
    const fit = () => picture.classList.toggle("fits", picture.naturalWidth > 0 && picture.naturalWidth < 1.2 * innerWidth);
    picture.addEventListener("load", fit);
    fit();
    return picture;
  }
  document.querySelectorAll(".still").forEach(still);

  // The bar at the top has as many lines as it needs; what is gone to stops below it.
  const bar = document.querySelector(".top");
  new ResizeObserver(() => { document.documentElement.style.scrollPaddingTop = `${bar.offsetHeight + 15}px`; }).observe(bar);

  const links = new Map([...document.querySelectorAll(".top nav a")].map((a) => [a.getAttribute("href").slice(1), a]));
  const sections = [...document.querySelectorAll("main > section")].filter((s) => links.has(s.id));
  let marked = null;

  // Mark the section whose beginning was passed last, read below the bar; at the end of the page, the last section.
  function mark() {
    const line = bar.offsetHeight + 40, end = scrollY > 0 && scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    const passed = sections.filter((s) => s.getBoundingClientRect().top <= line);
    const link = links.get((end ? sections.at(-1) : passed.at(-1) || sections[0]).id);
    if (link === marked) return;
    if (marked) marked.classList.remove("here");
    link.classList.add("here");
    marked = link;
    // On a narrow page the sections scroll sideways: the present one stays in view, but not while one is being pressed.
    const list = link.parentNode;
    if (list.scrollWidth > list.clientWidth && !list.matches(":active")) list.scrollLeft = link.offsetLeft - list.offsetLeft - 40;
  }
  let waiting = false;
  const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; mark(); }); } };
  addEventListener("scroll", later, { passive: true });
  // The page grows as its figures are drawn.
  new ResizeObserver(later).observe(document.querySelector("main"));
  mark();
})();
