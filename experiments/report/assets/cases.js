// The case browser: a filtered list over a light index; a case's texts are loaded when it is opened.
"use strict";
composcope.cases = (() => {
  const { el, need, filters } = composcope;
  const PAGE = 50;
  let index = null, rows = [], list = null, filter = null, kept = new Map(), started = null;

  function start() {
    started ||= build(document.getElementById("browser"));
    return started;
  }

  function build(box) {
    return Promise.all([need("cases"), need("pictures")]).then(([found, drawn]) => {
      index = found;
      rows = filters.rows(index);
      kept = new Map(drawn.runs.flatMap((run, i) => run.cases.map((c) => [JSON.stringify([i, c.case]), c])));
      filter = filters.make(index, rows, () => show());
      list = el("div", {});
      box.replaceChildren(filter.bar, list);
      show();
    }, (error) => box.replaceChildren(el("p", { class: "absent" }, error.message)));
  }

  function show(limit = PAGE) {
    const found = rows.filter(filter.matches);
    const more = found.length > limit ? el("p", { class: "more" }, el("button", { type: "button", onclick: () => show(limit + 4 * PAGE) }, `show more (${found.length - limit} left)`)) : "";
    list.replaceChildren(el("p", { class: "fine", "data-count": found.length, role: "status" }, `${found.length} of ${rows.length} cases`),
      found.length ? el("div", { class: "list" }, ...found.slice(0, limit).map(item)) : el("p", { class: "absent" }, "No case matches these filters."), more);
  }

  const picturesOf = (r) => kept.get(JSON.stringify([r.run, r.case])) || null;

  function item(r) {
    const where = [index.runs.length > 1 ? index.runs[r.run].label : null, r.family, r.depth === null ? null : `depth ${r.depth}`, r.sets.join(", ")].filter(Boolean).join(" · ");
    const head = el("button", { type: "button", class: "item", "aria-expanded": "false", onclick: () => open(head, r) },
      el("span", { class: `badge ${r.whole || ""}` }, r.whole || "not asked"), el("span", { dir: "auto" }, r.case),
      el("span", { class: "question", dir: "auto" }, r.question), el("span", { class: "where", dir: "auto" }, picturesOf(r) ? el("span", { class: "mark", title: "kept in detail: pictures inside" }, "◫ ") : null, where));
    return el("div", {}, head);
  }

  function open(head, r) {
    const shut = head.getAttribute("aria-expanded") === "true";
    head.setAttribute("aria-expanded", String(!shut));
    if (shut) { head.nextSibling.remove(); return; }
    const place = el("div", { class: "case" }, "loading …");
    head.after(place);
    if (index.dropped.includes(r.file)) { place.replaceChildren(el("p", { class: "absent" }, "The texts of this case were left out to keep the report small; see the run folder.")); return; }
    need(r.file).then((chunk) => place.replaceChildren(...composcope.case.draw(r.case, chunk, { gate: r.gate, skills: r.skills, k: r.k, pictures: picturesOf(r) })),
      (error) => place.replaceChildren(el("p", { class: "absent" }, error.message)));
  }

  // From a point of a figure to its cases: a run by its folder's name, and values of filters.
  function jump(run, wanted) {
    start().then(() => {
      filter.go({ ...wanted, run: index.runs.findIndex((r) => r.name === run) });
      composcope.goTo("cases");
    });
  }

  return { start, jump };
})();
