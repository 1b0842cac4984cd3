// Two runs case by case: each case in A and B side by side, cases with disagreement first.
"use strict";
(() => {
  const { el, need, own, filters } = composcope;
  const detail = composcope.case;
  const PAGE = 50;
  // In the order in which they are listed.
  const KINDS = ["only A right", "only B right", "both wrong", "both right", "not judged in both"];
  document.getElementById("theme").addEventListener("click", composcope.toggle);

  // Whether each side is right; null where it was not judged.
  function kindOf(x, y) {
    if (x === null || y === null) return KINDS[4];
    return x === y ? KINDS[x ? 3 : 2] : KINDS[x ? 0 : 1];
  }

  // One row per case, with its rows in A and B, either of which may be missing; an id with two questions is two cases.
  function paired(index) {
    const found = new Map(), changed = new Set(index.changed);
    for (const r of filters.rows(index)) {
      const key = JSON.stringify([r.case, changed.has(r.case) ? r.run : null]);
      if (!found.has(key)) found.set(key, [null, null]);
      found.get(key)[r.run] = r;
    }
    return [...found.values()].map((sides) => {
      const any = sides[0] || sides[1];
      return { case: any.case, sides, any, changed: changed.has(any.case) };
    });
  }

  function start(index) {
    const rows = paired(index), chosen = { role: "whole" };
    const roles = index.roles.filter((r) => r !== "whole").sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const list = el("div", {}), bar = el("div", { class: "controls" });
    const values = (key) => [...new Set(rows.map((r) => r.any[key]).filter((v) => v !== null && v !== undefined))].sort((a, b) => (a > b) - (a < b));
    const pick = (key, name, options, open = true) => {
      if (options.length < 2) return;
      const select = el("select", { "data-filter": key, onchange: () => { chosen[key] = select.value; show(); } },
        open ? el("option", { value: "" }, "all") : null, ...options.map((v) => el("option", { value: v }, v)));
      bar.append(el("label", {}, name, select));
    };
    pick("role", "asked", ["whole", ...roles], false);
    pick("kind", "runs", KINDS);
    pick("depth", "depth", values("depth"));
    pick("family", "family", values("family"));
    bar.append(el("label", {}, "find", el("input", { type: "search", "data-filter": "find", size: 14, placeholder: "in id or question", oninput: (e) => { chosen.find = e.target.value.toLowerCase(); show(); } })));
    document.getElementById("browser").replaceChildren(bar, list);

    function show(limit = PAGE) {
      const said = (r, side) => (r.sides[side] ? r.sides[side].outcome(chosen.role) : null);
      // As in the tables above: a paper may count what could not be judged as wrong, and to decline may be right.
      const right = (r, side) => own(own(index.counted[side], r.case), chosen.role) ?? (["invalid", null].includes(said(r, side)) ? null : said(r, side) === "correct");
      const apart = (r) => said(r, 0) && said(r, 1) && (own(index.apart, r.case) || []).includes(chosen.role);
      const found = rows.map((r) => ({ ...r, apart: apart(r), kind: apart(r) ? KINDS[4] : kindOf(right(r, 0), right(r, 1)), said: [said(r, 0), said(r, 1)] }))
        .filter((r) => (!chosen.kind || r.kind === chosen.kind) && (!chosen.depth || String(r.any.depth) === chosen.depth) && (!chosen.family || r.any.family === chosen.family)
          && (!chosen.find || `${r.case} ${r.any.question}`.toLowerCase().includes(chosen.find)))
        .sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
      const counts = KINDS.map((k) => [k, found.filter((r) => r.kind === k).length]).filter(([, n]) => n).map(([k, n]) => `${n} ${k}`);
      list.replaceChildren(el("p", { class: "fine", "data-count": found.length, role: "status" }, `${found.length} of ${rows.length} cases${counts.length ? `: ${counts.join(", ")}` : ""}`),
        found.length ? el("div", { class: "list" }, ...found.slice(0, limit).map(item)) : el("p", { class: "absent" }, "No case matches these filters."),
        found.length > limit ? el("p", { class: "more" }, el("button", { type: "button", onclick: () => show(limit + 4 * PAGE) }, `show more (${found.length - limit} left)`)) : "");
    }

    function item(r) {
      const where = [r.any.family, r.any.depth === null ? null : `depth ${r.any.depth}`, r.changed ? "another question under this id in the other run" : r.apart ? "another question in this role in the other run" : null].filter(Boolean).join(" · ");
      const badge = (side, name) => el("span", { class: `badge ${r.said[side] || ""}` }, `${name} ${r.said[side] || "not asked"}`);
      const head = el("button", { type: "button", class: "item two", "aria-expanded": "false", onclick: () => open(head, r) },
        badge(0, "A"), badge(1, "B"), el("span", { dir: "auto" }, r.case), el("span", { class: "question", dir: "auto" }, r.any.question), el("span", { class: "where", dir: "auto" }, where));
      return el("div", { "data-kind": r.kind }, head);
    }

    function open(head, r) {
      const shut = head.getAttribute("aria-expanded") === "true";
      head.setAttribute("aria-expanded", String(!shut));
      if (shut) { head.nextSibling.remove(); return; }
      const place = el("div", { class: "case" }, "loading …");
      head.after(place);
      const read = (side) => (side === null || index.dropped.includes(side.file) ? null : need(side.file).then((chunk) => detail.read(chunk, side.case)));
      Promise.all(r.sides.map(read)).then((sides) => place.replaceChildren(...both(sides, r.sides)), (error) => place.replaceChildren(el("p", { class: "absent" }, error.message)));
    }
    show();
  }

  // rows: the case in the list of each run; a text may have been left out of the page.
  function both(sides, rows) {
    const known = sides.find(Boolean);
    if (!known) return [el("p", { class: "absent" }, "The texts of this case were left out to keep the folder small; see the run folders.")];
    const facts = el("dl", { class: "said" }, ...detail.pairs([["question", known.question], ["right answer", known.gold]]));
    const roles = [...new Set(sides.filter(Boolean).flatMap((s) => s.asks.map((a) => a.role)))].sort((a, b) => (b === "whole") - (a === "whole"));
    return [facts, ...roles.map((role) => pair(role, sides, rows))];
  }

  // One role: the prompt (once if both runs had the same one), then the two answers.
  function pair(role, sides, rows) {
    const asks = sides.map((s) => (s ? s.asks.find((a) => a.role === role) || null : null));
    const full = (a, s) => (a === null ? null : JSON.stringify([a.before, a.prompt, a.after, a.sent].map((p) => { const t = s.put(p); return t && t.text; })));
    const texts = asks.map((a, i) => full(a, sides[i]));
    const same = texts[0] !== null && texts[0] === texts[1];
    return el("div", { class: "ask", "data-role": role }, el("header", {}, el("b", { dir: "auto" }, role)),
      same ? el("dl", { class: "said" }, ...detail.pairs([["prompt", detail.prompt(asks[0], sides[0].put)]])) : null,
      el("div", { class: "sides" }, ...asks.map((a, i) => answer(a, sides[i], "AB"[i], same, rows[i] && rows[i].outcome(role)))));
  }

  function answer(a, side, name, same, outcome) {
    const tag = el("span", { class: `side ${name.toLowerCase()}` }, name);
    if (a === null) return el("div", { class: "half" }, tag, el("p", { class: "absent" }, outcome ? `${outcome}; its texts were left out to keep the folder small, see the run folder` : "not asked"));
    const why = detail.why(a, side.put);
    return el("div", { class: "half" }, el("p", { class: "half-head" }, tag, el("span", { class: `badge ${a.outcome}` }, a.outcome), el("span", { class: "muted", dir: "auto" }, why)),
      el("dl", { class: "said" }, ...detail.pairs([same ? ["", null] : ["prompt", detail.prompt(a, side.put)], ["response", side.put(a.response)], ["read as", side.put(a.read)], ["right", side.put(a.gold)], ["error", side.put(a.error)]])));
  }

  need("index").then(start, (error) => document.getElementById("browser").replaceChildren(el("p", { class: "absent" }, error.message)));
})();
