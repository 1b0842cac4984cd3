// The case browser: a filtered list over a light index; a case's texts are loaded when it is opened.
"use strict";
composcope.cases = (() => {
  const { el, need, own, filters } = composcope;
  const FIRST = innerWidth < 704 ? 5 : 10, MORE = 80;
  let index = null, rows = [], list = null, bar = null, kept = null, drawn = null, started = null;
  const byName = new Map(), key = (run, name) => JSON.stringify([run, name]);

  // The index, loaded once for the page; null if its data are missing.
  function start() {
    started ||= Promise.all([need("cases"), need("pictures")]).then(([found, pictures]) => {
      index = found;
      kept = pictures;
      rows = filters.rows(index);
      rows.forEach((r) => byName.set(key(r.run, r.case), r));
      drawn = new Map(kept.runs.flatMap((run, i) => run.cases.map((c) => [key(i, c.case), c])));
      return index;
    }, (error) => { document.getElementById("browser").replaceChildren(el("p", { class: "absent" }, error.message)); return null; });
    return started;
  }

  function browse() {
    return start().then((found) => {
      if (!found || bar) return;
      bar = filters.make(index, rows, () => show());
      list = el("div", {});
      document.getElementById("browser").replaceChildren(bar.bar, list);
      bar.go({ run: index.runs.length > 1 ? composcope.run.at : "" });
    });
  }

  function show(limit = FIRST) {
    const found = rows.filter(bar.matches);
    const more = found.length > limit ? el("p", { class: "more" }, el("button", { type: "button", onclick: () => show(limit + MORE) }, `show more (${found.length - limit} left)`)) : "";
    list.replaceChildren(el("p", { class: "fine", "data-count": found.length, role: "status" }, `${found.length} of ${rows.length} cases`),
      found.length ? el("div", { class: "list" }, ...found.slice(0, limit).map(item)) : el("p", { class: "absent" }, "No case matches these filters."), more);
  }

  function item(r) {
    const where = [index.runs.length > 1 && !bar.chosen.run && bar.chosen.run !== 0 ? index.runs[r.run].label : null, r.family, r.depth === null ? null : `depth ${r.depth}`, r.sets.join(", ")].filter(Boolean).join(" · ");
    const wrong = r.whole !== null && r.whole !== "correct";
    const head = el("button", { type: "button", class: "item", "aria-expanded": "false", onclick: () => toggle(head, r) },
      el("span", { class: `badge ${r.whole || ""}` }, r.whole || "not asked"), el("span", { dir: "auto" }, picturesOf(r) ? el("span", { class: "kept", title: "kept in detail, with pictures" }, "◫ ") : null, r.case),
      el("span", { class: "question", dir: "auto" }, r.question),
      el("span", { class: "outcome", dir: "auto" }, el("b", { "data-answer": "" }, r.whole === null ? "–" : r.answer ?? "no answer"), wrong ? el("span", { class: "gold" }, " right: ", el("span", { "data-gold": "" }, r.gold)) : null),
      el("span", { class: "where", dir: "auto", title: [wrong ? r.origin : null, where].filter(Boolean).join(" · ") }, [wrong ? r.origin : null, where].filter(Boolean).join(" · ")));
    return el("div", {}, head);
  }

  function toggle(head, r) {
    const shut = head.getAttribute("aria-expanded") === "true";
    head.setAttribute("aria-expanded", String(!shut));
    if (shut) { head.nextSibling.remove(); return; }
    const place = el("div", { class: "case" }, "loading …");
    head.after(place);
    if (dropped(r)) { place.replaceChildren(el("p", { class: "absent" }, "The texts of this case were left out to keep the report small; see the run folder.")); return; }
    const beside = el("p", {}, el("a", { href: `#${new URLSearchParams({ run: label(r.run), case: r.case })}` }, r.twin === null ? "show this case alone, at the top" : "show this case next to its nearest success"));
    need(r.file).then((chunk) => place.replaceChildren(beside, ...composcope.case.draw(composcope.case.read(chunk, r.case), r)),
      (error) => place.replaceChildren(el("p", { class: "absent" }, error.message)));
  }

  const find = (run, name) => byName.get(key(run, name)) || null;
  const picturesOf = (r) => drawn.get(key(r.run, r.case)) || null;
  const dropped = (r) => index.dropped.includes(r.file);
  const label = (run) => index.runs[run].label;
  const failing = (run) => rows.filter((r) => r.run === run && r.sets.some((s) => index.failing.includes(s))).map((r) => r.case);

  // Set every filter at once, so that the list matches the address.
  const filter = (wanted) => browse().then(() => bar.go(wanted));
  // From a point of a figure, a row of its table, to its cases: values of filters.
  const jump = (row, wanted) => filter({ ...wanted, run: composcope.runOf(index.runs, row) }).then(() => composcope.goTo("cases"));

  composcope.onRun((run) => { if (bar) bar.go({ ...bar.chosen, run }); });
  // The filter of a figure's depth, which is a bin where the benchmark declares bins.
  const at = (depth) => (rows.some((r) => r.bin !== r.depth) ? { bin: depth } : { depth });
  return { start, browse, filter, jump, at, find, failing, picturesOf, dropped, label, first: (run) => index.first[run],
    cause: (r) => own(index.causes[r.run], r.case), diagnose: (run) => index.diagnose[run], known: (run) => index.known[run], diagnosed: (run) => Object.keys(index.causes[run]).length > 0, notes: (run) => kept.runs[run].notes, values: (r) => own(kept.runs[r.run].values, r.case), anyKept: (run) => kept.runs[run].cases.length > 0, keptIn: (run) => kept.runs[run].cases };
})();
