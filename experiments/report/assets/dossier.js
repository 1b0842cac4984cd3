// One failing case next to its nearest success: the question, the parts that are known, the answer and its origin, and
// the probes' measurements on the same tokens.
"use strict";
composcope.dossier = (() => {
  const { el, need, number, cases, pictures, attention, signals } = composcope;
  const box = document.getElementById("dossier");
  // The case stands above what was found about all cases, its tokens below.
  const place = (name) => box.querySelector(`[data-place=${name}]`);
  const only = (text) => { place("case").replaceChildren(el("p", { class: "absent" }, text)); place("tokens").replaceChildren(); };
  const UNCLEAR = "unclear";
  let shown = null;

  const mark = (outcome) => el("span", { class: `mark ${outcome || "none"}`, title: outcome || "not asked" }, { correct: "✓", incorrect: "✗", abstained: "○", invalid: "?" }[outcome] || "–");

  // A case of the run that is shown; a message if the run has no case of that name.
  function open(name) {
    return cases.start().then((index) => {
      if (!index || !box) return null;
      const run = composcope.run.at, row = cases.find(run, name);
      if (!row) { only(name === null ? "No whole is wrong in this run, so there is no failing case to open." : `This run has no case ${JSON.stringify(name)}.`); return null; }
      const twin = row.twin === null ? null : cases.find(run, row.twin);
      const mine = shown = { run, name };
      const sides = [row, twin].filter(Boolean);
      return Promise.all(sides.map(read)).then((read) => { if (mine === shown) draw(index, sides, read); },
        (error) => only(error.message));
    });
  }

  function read(r) {
    const kept = cases.picturesOf(r);
    const texts = cases.dropped(r) ? Promise.resolve(null) : need(r.file).then((chunk) => composcope.case.read(chunk, r.case));
    return Promise.all([texts, kept ? need(kept.file) : null]);
  }

  function draw(index, rows, found) {
    const [row] = rows, failing = cases.failing(row.run), at = failing.indexOf(row.case);
    const step = (by, sign) => el("button", { type: "button", "data-step": by, disabled: failing.length < 2, "aria-label": by < 0 ? "previous failing case" : "next failing case", onclick: () => go(failing[(at + by + failing.length) % failing.length]) }, sign);
    const head = el("header", {}, el("h2", {}, row.whole === "correct" ? "Case " : "A failing case: ", el("span", { dir: "auto" }, row.case)), el("span", { class: "muted", dir: "auto" }, [row.family, row.depth === null ? null : `depth ${row.depth}`, row.operation].filter(Boolean).join(" · ")),
      el("span", { class: "steps" }, step(-1, "‹"), el("span", { class: "muted" }, at < 0 ? `${failing.length} failing` : `failing case ${at + 1} of ${failing.length}`), step(1, "›")),
      el("a", { class: "fine", href: `#${new URLSearchParams({ run: index.runs[row.run].label, case: row.case })}` }, "link to this case"));
    place("case").replaceChildren(head, because(row), el("div", { class: "twins" }, ...rows.map((r, i) => side(r, found[i][0], i))));
    place("tokens").replaceChildren(el("h2", {}, "Token by token: ", el("span", { dir: "auto" }, row.case)), ...seen(rows, found), ...everything(rows, found));
    box.dataset.case = row.case;
  }

  function go(name) {
    composcope.address({ run: cases.label(composcope.run.at), case: name });
    return open(name);
  }

  // Question, parts and whole of one case; without its texts, only the facts in the list.
  function side(r, texts, i) {
    const role = (name) => texts && texts.asks.find((a) => a.role === name && !a.repeat), of = (put) => (put === null || put === undefined ? null : texts.put(put).text);
    const whole = role("whole"), why = r.whole === "correct" ? null : r.origin, cause = cases.cause(r);
    const parts = texts ? texts.asks.filter((a) => /^part:\d+$/.test(a.role) && !a.repeat) : [];
    const name = i ? el("span", {}, "Nearest success ", el("a", { href: `#${new URLSearchParams({ run: cases.label(r.run), case: r.case })}`, dir: "auto" }, r.case)) : r.whole === "correct" ? "This case" : "It fails";
    const line = (a, i) => el("li", {}, mark(a.outcome), el("span", {}, el("b", {}, `part ${i + 1}`), " ", el("span", { dir: "auto", "data-part": i }, of(texts.parts[i] ?? a.prompt)), el("span", { class: "answered", dir: "auto" }, ` ${of(a.read) ?? "no answer read"}`), a.outcome === "correct" ? null : el("span", { class: "gold" }, ` right: ${of(a.gold)}`)));
    return el("article", { class: r.whole === "correct" ? "twin success" : "twin failure", "data-twin": i ? "success" : "case" }, el("h3", {}, name),
      el("p", { class: "asked", dir: "auto" }, texts && texts.question ? texts.question.text : r.question),
      parts.length ? el("ul", { class: "parts" }, ...parts.map((a) => line(a, Number(a.role.slice(5))))) : null,
      el("p", { class: "verdict-line" }, mark(r.whole), el("span", {}, el("b", {}, "whole "), "answered ", el("b", { class: "answered", "data-answer": "", dir: "auto" }, r.answer === null ? "nothing that could be read" : inside(r.answer)), ", right: ", el("b", { class: "gold", "data-gold": "", dir: "auto" }, r.gold))),
      whole && of(whole.response) ? el("p", { class: "wrote" }, el("span", { class: "muted" }, "it wrote "), el("q", { dir: "auto" }, of(whole.response).trim())) : null,
      why ? el("p", { class: "origin", "data-origin": why, title: r.means }, el("b", {}, why), el("span", { dir: "auto" }, r.detail ? `: ${r.detail}` : `: ${r.means}`)) : null,
      cause ? el("details", { class: "evidence" }, el("summary", {}, `${cause.cause === "undetermined" ? "What was tried" : "Evidence for the cause"} (${cause.evidence.length})`), el("ul", { class: "fine" }, ...cause.evidence.map((e) => el("li", { dir: "auto" }, e)))) : null);
  }

  // An answer within a sentence: without the full stop after its last word. A letter alone may be an abbreviation (U.S.).
  const inside = (answer) => answer.replace(/([\p{L}\p{N}]{2})\.$/u, "$1");

  // What a failing case answered, and why, as far as answers or interventions show it.
  function because(r) {
    if (!cases.failing(r.run).includes(r.case)) return "";
    const found = cases.cause(r), from = r.origin && r.origin !== UNCLEAR ? ` (${r.origin}${r.detail ? `: ${r.detail}` : ""})` : "";
    const known = cases.known(r.run) ? "With every part right" : "To the whole"; // scaffolds reveal steps whatever the parts are
    const said = [r.answer === null ? `${known}, no answer ${cases.known(r.run) ? "to the whole " : ""}could be read; right is ` : el("span", {}, `${known} it answered `, el("b", { dir: "auto" }, inside(r.answer)), ", not "), el("b", { class: "gold", dir: "auto" }, inside(r.gold)), el("span", { dir: "auto" }, `${from}. `)];
    const ask = cases.diagnose(r.run);
    if (!found) return el("p", { class: "because", "data-cause": "" }, ...said, ask ? el("span", { class: "fine" }, "Why is not known yet: ", el("code", { dir: "auto" }, `${ask}${cases.diagnosed(r.run) ? ` --case ${r.case}` : ""}`), " names the cause.") : null);
    const unnamed = found.cause === "undetermined";
    const more = [found.block === null ? null : `block ${found.block}`, unnamed ? null : `confidence ${number(found.confidence)}`, found.mended_by ? `right again with: ${found.mended_by}` : null].filter(Boolean).join("; ");
    return el("p", { class: "because", "data-cause": found.cause }, ...said, el("b", {}, `Why: ${found.means}`), el("span", { class: "fine" }, more ? ` (${more}).` : "."), found.settle ? el("span", { class: "fine", dir: "auto" }, ` What remains open, not shown to be the cause: ${found.settle}.`) : null);
  }

  // The probes' pictures, with failing case and success side by side if both were kept.
  function seen(rows, found) {
    const files = found.map(([, file]) => file), views = [];
    if (!files[0]) return [unkept(rows[0].run), table(rows)].filter(Boolean);  // the success alone would tell nothing
    const strip = files.some(Boolean) ? signals.make(rows.map((r, i) => ({ name: r.case, file: files[i] })), cases.notes(rows[0].run), composcope.head) : null;
    if (strip) views.push(el("h3", {}, "Attention, patching, neurons and readouts on the same tokens"), strip.node);
    const pair = (probe, title, told, make) => {
      if (files.some((f) => f && f.probes[probe])) views.push(fold(headed(title, ...told), () => el("div", { class: "twins" }, ...files.map((f) => el("div", { class: "view" }, f && f.probes[probe] ? make(f) : el("p", { class: "absent" }, "Not kept for this case.")))), probe));
    };
    const told = (probe, of = files) => [pictures.what(probe), of.map((f) => pictures.told(probe, f))];
    let head = composcope.head;  // the same head in both: the one chosen in the map, else the failing case's strongest
    pair("lookback", "Where it looked, step by step", lookback(files), (f) => { const place = el("div", {}); head = attention.draw(place, f.probes.lookback, head, strip.look, signals.stepOf(f)).at || head; return place; });
    pair("min-k", "How expected each token of the question was", told("min-k"), (f) => pictures.one("min-k", f));
    if (files[0].probes.patching) views.push(fold(headed("What a success's state changes", ...told("patching", [files[0]])), () => pictures.one("patching", files[0]), "patching"));
    const numbers = table(rows);
    if (numbers) views.push(numbers);
    if (files[0].probes.trajectory) views.push(fold(headed("Movement from token to token", ...told("trajectory", [files[0]])), () => pictures.one("trajectory", files[0]), "trajectory"));
    return views.length ? views : [unkept(rows[0].run)];
  }

  // Where pictures of single cases are, if this case has none.
  function unkept(run) {
    if (!cases.anyKept(run)) return el("p", { class: "absent" }, "No probe kept pictures of single cases in this run; ", el("code", {}, "composcope probe RUN --case-details 4"), " keeps them.");
    const failing = cases.failing(run), some = cases.keptIn(run).map((c) => c.case).filter((c) => failing.includes(c)).slice(0, 4);
    const links = some.flatMap((c, i) => [i ? ", " : " Failing cases that have them: ", el("a", { href: `#${new URLSearchParams({ run: cases.label(run), case: c })}`, dir: "auto" }, c)]);
    return el("p", { class: "absent", "data-unkept": "" }, "Probes kept no pictures of this case; cases marked ◫ in the list below have them.", ...links, some.length ? "." : "");
  }

  // One number per probe and case, without an interval; results over all cases are elsewhere on the page.
  function table(rows) {
    const measured = rows.map((r) => cases.values(r) || {}), names = [...new Set(measured.flatMap((m) => Object.keys(m)))];
    if (!names.length) return null;
    return el("details", { class: "numbers-of" }, el("summary", {}, `What the probes measured of ${rows.length > 1 ? "these two cases" : "this case"} (${names.length} numbers; a single case is not a finding)`), el("table", { class: "plain narrow" },
      el("thead", {}, el("tr", {}, el("th", {}, "quantity"), ...rows.map((r) => el("th", { class: "num", dir: "auto" }, r.case)))),
      el("tbody", {}, ...names.map((n) => el("tr", {}, el("td", {}, n), ...measured.map((m) => el("td", { class: "num" }, m[n] === undefined ? "–" : number(m[n]))))))));
  }

  // The heading of a folded view: what is in it, and its main number, with that of the success beside it.
  function headed(title, what, [own = null, other = null]) {
    const shown = [own, other].map((v) => (v === null ? null : number(v).replace("-", "−")));
    const said = [shown[0] === null ? null : `${what} ${shown[0]}`, shown[1] === null ? null : `${shown[0] === null ? `${what}, ` : ""}its success ${shown[1]}`].filter(Boolean).join("; ");
    return el("span", {}, el("b", {}, title), said ? el("span", { class: "fine", "data-main": own }, ` ${said}`) : null);
  }

  // The lookback ratio of the head that is shown, where each case writes its answer.
  function lookback(files) {
    const entries = files.map((f) => signals.whole(f, "lookback")), head = composcope.head || (entries[0] ? signals.first(files[0]) : null);
    if (!head) return ["", []];
    return [`lookback ratio of layer ${head.layer}, head ${head.head} at the answer`, entries.map((e, i) => (e && e.arrays.attention ? attention.ratio(e, head, signals.stepOf(files[i])) : null))];
  }

  // A part that is drawn when it is opened. A view that was opened stays open from case to case.
  const opened = new Set();
  function fold(title, make, name = null) {
    const place = el("div", { class: "view" }), details = el("details", { class: "fold", "data-view": name }, el("summary", {}, title), place);
    details.addEventListener("toggle", () => {
      if (name) opened[details.open ? "add" : "delete"](name);
      if (details.open && !place.childNodes.length) place.replaceChildren(make());
    });
    details.open = opened.has(name);
    return details;
  }

  function everything(rows, found) {
    return rows.map((r, i) => (found[i][0] ? fold(`Every prompt and answer of ${r.case}`, () => el("div", { class: "case" }, ...composcope.case.draw(found[i][0], r))) : null)).filter(Boolean);
  }

  // Another run: the case that the reader chose, if it was asked there, else the run's first failing case.
  composcope.onRun((run) => {
    if (shown) open(shown.name !== cases.first(shown.run) && cases.find(run, shown.name) ? shown.name : cases.first(run));
  });

  const again = () => (shown ? open(shown.name) : null);

  return { open, again, opened, start: () => cases.start().then((index) => index && !shown && open(cases.first(composcope.run.at))) };
})();
