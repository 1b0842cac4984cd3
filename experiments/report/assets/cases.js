// The case browser: a filtered list over a light index; a case's texts are loaded when it is opened.
"use strict";
composcope.cases = (() => {
  const { el, text, need } = composcope;
  const OUTCOMES = ["correct", "incorrect", "abstained", "invalid"];
  const PAGE = 50;
  let index = null, rows = [], body = null;
  const filters = {};

  function start(box) {
    need("cases").then((found) => {
      index = found;
      rows = index.rows.map((row, i) => ({ place: i, ...Object.fromEntries(index.columns.map((c, k) => [c, row[k]])) }));
      const seen = new Map();
      for (const r of rows) { r.number = seen.get(r.run) || 0; seen.set(r.run, r.number + 1); }
      build(box);
    }, (error) => box.replaceChildren(el("p", { class: "absent" }, error.message)));
  }

  function build(box) {
    const values = (key) => [...new Set(rows.map((r) => r[key]).filter((v) => v !== null && v !== undefined))].sort((a, b) => (a > b) - (a < b));
    const bar = el("div", { class: "controls" });
    bar.append(
      pick("run", "model", index.runs.map((r, i) => [i, r.label])),
      pick("set", "case set", [...new Set(rows.flatMap((r) => r.sets))].sort().map((s) => [s, s])),
      pick("whole", "whole", OUTCOMES.filter((o) => rows.some((r) => r.whole === o)).map((o) => [o, o])),
      pick("parts", "parts", [["right", "all right"], ["wrong", "some wrong"]]),
      pick("depth", "depth", values("depth").map((d) => [d, d])),
      pick("family", "family", values("family").map((f) => [f, f])),
      el("label", {}, "find", el("input", { type: "search", "data-filter": "find", size: 14, placeholder: "in id or question", oninput: (e) => set("find", e.target.value.toLowerCase()) })));
    body = el("div", {});
    box.replaceChildren(bar, body);
    show();
  }

  function pick(key, name, options) {
    if (options.length < 2 && key !== "set") return "";
    const select = el("select", { "data-filter": key, onchange: () => set(key, select.value) },
      el("option", { value: "" }, "all"), ...options.map(([value, shown]) => el("option", { value }, shown)));
    return el("label", {}, name, select);
  }

  function set(key, value) { filters[key] = value; show(); }

  const TESTS = {
    run: (r, v) => String(r.run) === v, set: (r, v) => r.sets.includes(v), whole: (r, v) => r.whole === v,
    parts: (r, v) => (v === "wrong") === r.parts_wrong > 0, depth: (r, v) => String(r.depth) === v, family: (r, v) => r.family === v,
    find: (r, v) => `${r.case} ${r.question}`.toLowerCase().includes(v),
  };

  function show(limit = PAGE) {
    const found = rows.filter((r) => Object.entries(filters).every(([k, v]) => !v || TESTS[k](r, v)));
    const list = el("div", { class: "list" });
    for (const r of found.slice(0, limit)) list.append(item(r));
    const more = found.length > limit ? el("p", { class: "more" }, el("button", { type: "button", onclick: () => show(limit + 4 * PAGE) }, `show more (${found.length - limit} left)`)) : null;
    body.replaceChildren(el("p", { class: "fine", "data-count": found.length }, `${found.length} of ${rows.length} cases`), found.length ? list : el("p", { class: "absent" }, "No case matches these filters."));
    if (more) body.append(more);
  }

  function item(r) {
    const where = [index.runs[r.run].label, r.family, r.depth === null ? null : `depth ${r.depth}`, r.sets.join(", ")].filter(Boolean).join(" · ");
    const head = el("button", { type: "button", class: "item", "aria-expanded": "false", onclick: () => open(head, r) },
      el("span", { class: `badge ${r.whole || ""}` }, r.whole || "not asked"), el("span", { dir: "auto" }, r.case),
      el("span", { class: "question", dir: "auto" }, r.question), el("span", { class: "where", dir: "auto" }, where));
    return el("div", {}, head);
  }

  function open(head, r) {
    const shut = head.getAttribute("aria-expanded") === "true";
    head.setAttribute("aria-expanded", String(!shut));
    if (shut) { head.nextSibling.remove(); return; }
    const place = el("div", { class: "case" }, "loading …");
    head.after(place);
    const name = `cases/${r.run}-${Math.floor(r.number / index.chunk)}`;
    if (index.dropped.includes(name)) { place.replaceChildren(el("p", { class: "absent" }, "The texts of this case were left out to keep the report small; see the run folder.")); return; }
    need(name).then((chunk) => place.replaceChildren(...details(r, chunk)), (error) => place.replaceChildren(el("p", { class: "absent" }, error.message)));
  }

  function details(r, chunk) {
    const found = new Map(Object.entries(chunk.cases)).get(r.case);
    const read = (put) => (put === null || put === undefined ? null : Array.isArray(put) ? { text: chunk.texts[put[0]], length: put[1] } : { text: chunk.texts[put], length: null });
    const facts = [["question", read(found.question)], ["right answer", read(found.gold)], ["cluster", read(found.cluster)],
      ["guess is right in", found.chance === null ? null : { text: `${(100 * found.chance).toPrecision(3)} %` }]];
    const head = el("dl", { class: "said" }, ...pairs(facts));
    const order = [...found.asks].sort((a, b) => (b[0] === "whole") - (a[0] === "whole"));
    return [head, ...order.map((a) => ask(a, read))];
  }

  function pairs(facts) {
    return facts.filter(([, v]) => v).flatMap(([name, v]) => [el("dt", {}, name), el("dd", {}, text(v.text), cut(v))]);
  }

  const cut = (v) => (v.length ? el("p", { class: "cut" }, `first ${v.text.length.toLocaleString("en")} of ${v.length.toLocaleString("en")} characters; the run folder has the rest`) : null);

  function ask(a, read) {
    const [role, prompt, said, answer, gold, outcome, match, reason, finish, format, prompting, error] = a;
    const why = [match ? `matched: ${match}` : null, reason === null ? null : `because: ${read(reason).text}`, finish && finish !== "stop" ? `stopped by: ${finish}` : null].filter(Boolean).join(" · ");
    return el("div", { class: "ask" },
      el("header", {}, el("b", { dir: "auto" }, role), el("span", { class: `badge ${OUTCOMES[outcome]}` }, OUTCOMES[outcome]),
        el("span", { class: "muted", dir: "auto" }, why), el("span", { class: "muted", dir: "auto" }, [format, prompting].filter(Boolean).join(" · "))),
      el("dl", { class: "said" }, ...pairs([["prompt", read(prompt)], ["response", read(said)], ["read as", read(answer)], ["right", read(gold)], ["error", read(error)]])));
  }

  // From a point of the collapse curve: its failing cases.
  function jump(wanted) {
    need("cases").then(() => {
      for (const select of document.querySelectorAll("#browser [data-filter]")) {
        const key = select.dataset.filter;
        const value = key === "find" ? "" : wanted[key] === undefined ? "" : String(wanted[key]);
        if (key !== "find" && value && ![...select.options].some((o) => o.value === value)) continue;
        select.value = value;
        filters[key] = value;
      }
      show();
      document.getElementById("cases").scrollIntoView();
    });
  }

  const runOf = (name) => index.runs.findIndex((r) => r.name === name);
  return { start, jump, runOf };
})();
