// Attention, patching, neurons and readouts of one case over one row of tokens: a row for each, cells colored by value.
"use strict";
composcope.signals = (() => {
  const { el, number, arrays, attention, colors, showTip, hideTip } = composcope;
  const PROBES = { lookback: "attention", patching: "patching", neurons: "neurons", readout: "readouts" };
  const WHY = { patching: " (only pairs of equally long prompts are patched token by token, where that is cheap enough)" };
  const ARROWS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  const whole = (file, probe) => ((file && file.probes[probe]) || []).find((e) => e.role === "whole") || null;

  // The tokens up to the one that begins the answer. Neurons, readouts and patching read the response up to there too;
  // all begin with the prompt, so a token has the same place in each.
  function shared(file) {
    const look = whole(file, "lookback"), known = ["neurons", "readout", "patching"].map((p) => whole(file, p)).filter(Boolean);
    const most = known.reduce((a, b) => (a && a.tokens.length >= b.tokens.length ? a : b), null);
    const any = most || look;
    return any && { tokens: most ? most.tokens : look.tokens.slice(0, look.prompt_tokens), from: any.question[0], question: any.question, prompt: look ? look.prompt_tokens : Infinity };
  }

  // The response step that writes the answer, as far as steps were kept.
  const answerStep = (look, on) => Math.min(Math.max(on.tokens.length - look.prompt_tokens, 0), look.steps - 1);
  const stepOf = (file) => { const look = whole(file, "lookback"); return look ? answerStep(look, shared(file)) : 0; };

  // Rows of one case: {key, probe, name, unit, n, at(position), more(position), middle}; middle is the value that means nothing, or null where 0 does.
  function rows(file, on, head) {
    const found = [], look = whole(file, "lookback"), patched = whole(file, "patching"), neurons = whole(file, "neurons"), read = whole(file, "readout");
    if (look && look.arrays.attention && head) {
      const step = answerStep(look, on);
      const weight = attention.weight(look, head, step);
      const before = weight ? arrays.range(on.from).reduce((sum, p) => sum + (weight(p) || 0), 0) : 0;
      if (weight) found.push({ key: "attention", probe: "lookback", name: "Attention", unit: `${before >= 0.005 ? `${Math.round(100 * before)} % on tokens before the question; ` : ""}share, layer ${head.layer}, head ${head.head}, writing ${JSON.stringify((look.tokens[look.prompt_tokens + step] ?? "").trim())}`, n: `1 of ${look.of_heads} heads`, at: weight, middle: null });
    }
    if (patched && patched.sweep_positions) {
      const got = arrays.unpack(patched.arrays["resid_post.recovered"]), place = new Map(patched.sweep_positions.map((p, j) => [p, j]));
      const best = (j) => arrays.range(got.shape[0]).map((i) => [got.at(i, j), patched.sweep_layers[i]]).filter(([v]) => v !== null).reduce((a, b) => (a && Math.abs(a[0]) >= Math.abs(b[0]) ? a : b), null);
      const cell = (p) => (place.has(p) ? best(place.get(p)) : null);
      found.push({ key: "patching", probe: "patching", name: "Patching", unit: `way to the answer of ${patched.donor}, largest over layers`, n: `${got.shape[0]} layers, 1 pair`, at: (p) => { const c = cell(p); return c && c[0]; }, more: (p) => { const c = cell(p); return c && `layer ${c[1]}, residual stream`; }, middle: 0 });
    }
    if (neurons) {
      const got = arrays.unpack(neurons.arrays.share);
      found.push({ key: "neurons", probe: "neurons", name: "Neurons", unit: `share of the push towards ${JSON.stringify(neurons.answer.trim())}`, n: `${neurons.neurons} neurons`, at: (p) => (p < got.shape[0] ? got.at(p) : null), more: () => "activation × gradient, positive part", middle: null });
    }
    for (const reader of read ? ["lens", "ridge"] : []) {
      if (!read.arrays[reader]) continue;
      const got = arrays.unpack(read.arrays[reader]), places = Object.entries(read.places);
      const named = (p) => places.filter(([, at]) => at[at.length - 1] === p).map(([name]) => name).join(", ");
      const order = arrays.range(read.readings.length).sort((a, b) => (read.readings[a].what === "answer") - (read.readings[b].what === "answer"));
      for (const [k, r] of order.map((i) => [i, read.readings[i]])) found.push({
        key: `${reader}:${r.what}:${k}`, probe: "readout", name: `${r.what[0].toUpperCase()}${r.what.slice(1)} ${r.right}`, unit: `${reader}, share of others below it, layers ${read.layers[0]}–${read.layers[read.layers.length - 1]}`, n: `${r.foils} others`,
        at: (p) => (p >= read.first && p - read.first < got.shape[1] ? got.at(k, p - read.first) : null), more: (p) => named(p), middle: 0.5,
      });
    }
    return found;
  }

  // sides: [{name, file}], the failing case first. Returns the node and look(head), which shows another head.
  function make(sides, notes, picked) {
    const body = el("div", { "data-view": "signals" });
    let head = picked;
    const paint = () => {
      const shown = sides.filter((s) => s.file).map((s) => ({ ...s, on: shared(s.file) })).filter((s) => s.on).map((s) => ({ ...s, rows: rows(s.file, s.on, head || (head = first(s.file))) }));
      const scales = scaled(shown);
      body.replaceChildren(...shown.filter((s) => s.rows.length).map((s) => table(s, scales)), key(), ...missing(shown, notes));
    };
    paint();
    composcope.onRepaint(() => { if (body.isConnected) paint(); });
    return { node: body, look: (at) => { head = at; paint(); } };
  }

  const first = (file) => { const look = whole(file, "lookback"); return look && look.arrays.attention ? attention.strongest(look) : null; };
  const positions = (s) => arrays.range(s.on.tokens.length - s.on.from).map((i) => s.on.from + i);

  // One scale per signal for both cases, so that their colors can be compared.
  function scaled(shown) {
    const reach = new Map();
    for (const s of shown) for (const r of s.rows) {
      const values = positions(s).map(r.at).filter((v) => v !== null).map((v) => Math.abs(v - (r.middle || 0)));
      reach.set(kind(r), Math.max(reach.get(kind(r)) || 0, ...values));
    }
    return reach;
  }
  const kind = (r) => r.key.split(":")[0];
  const limits = (r, scales) => { const most = r.middle === 0.5 ? 0.5 : scales.get(kind(r)) || 1; return [r.middle === null ? 0 : r.middle - most, (r.middle || 0) + most]; };

  function table(s, scales) {
    const { on } = s, at = positions(s);
    const tell = (r, p) => [`${JSON.stringify(on.tokens[p])}, position ${p}`, `${r.name}: ${r.at(p) === null ? "not measured here" : number(r.at(p))}`, r.more && r.at(p) !== null ? r.more(p) : null, r.unit];
    const cells = s.rows.map((r) => at.map((p) => {
      const value = r.at(p), [low, high] = limits(r, scales), td = el("td", { "data-position": p, "data-value": value });
      if (value !== null) td.style.backgroundColor = colors.shade(colors.stops(r.middle !== null), (value - low) / (high - low));
      return td;
    }));
    const label = (r) => el("th", { scope: "row", dir: "auto" }, r.name, el("small", {}, `${r.unit}; n = ${r.n}; ${limits(r, scales).map(number).join(" to ")}`));
    const kinds = (p) => (p >= on.prompt ? "response" : p >= on.question[1] ? "cue" : "");
    const box = el("div", { class: "scroll signals", role: "application", tabindex: 0, "data-case": s.name, "aria-label": `${s.name}: signals by token; arrow keys go over the cells` }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { dir: "auto" }, s.name), ...at.map((p) => el("th", { scope: "col" }, el("span", { class: `token ${kinds(p)}` }, composcope.tokens.shown(on.tokens[p])))))),
      el("tbody", {}, ...s.rows.map((r, i) => el("tr", { "data-signal": r.key }, label(r), ...cells[i])))));
    keyed(box, cells, (i, j) => tell(s.rows[i], at[j]));
    return box;
  }

  function keyed(box, cells, tell) {
    let here = null;
    const leave = () => { hideTip(); if (here) cells[here[0]][here[1]].classList.remove("here"); here = null; };
    const find = (event) => { const td = event.target.closest("td"), i = td ? cells.findIndex((row) => row.includes(td)) : -1; return i < 0 ? null : [i, cells[i].indexOf(td)]; };
    box.addEventListener("mousemove", (event) => { const cell = find(event); if (cell) showTip(event, tell(...cell)); else hideTip(); });
    box.addEventListener("mouseleave", hideTip);
    box.addEventListener("blur", leave);
    box.addEventListener("keydown", (event) => {
      const by = ARROWS[event.key];
      if (!by) return;
      const [i, j] = here ? [here[0] + by[0], here[1] + by[1]] : [0, 0];
      leave();
      here = [Math.min(Math.max(i, 0), cells.length - 1), Math.min(Math.max(j, 0), cells[0].length - 1)];
      const td = cells[here[0]][here[1]];
      td.classList.add("here");
      td.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
      const b = td.getBoundingClientRect();
      showTip({ clientX: b.right, clientY: b.top, target: td }, tell(...here));
      event.preventDefault();
    });
  }

  function key() {
    const bar = (diverging) => { const s = el("span", { class: "swatch wide" }); s.style.backgroundImage = `linear-gradient(90deg, ${colors.stops(diverging).join(", ")})`; return s; };
    return el("p", { class: "fine legend" }, el("span", {}, bar(false), " 0 to the most in both cases"), el("span", {}, bar(true), " below the middle, above it (0 in patching, chance 0.5 in readouts)"), el("span", {}, "Tokens before the question are not shown. One case each: an example, no finding."));
  }

  // What is not there, and what would make it.
  function missing(shown, notes) {
    const lacks = Object.keys(PROBES).filter((p) => !shown.some((s) => s.rows.some((r) => r.probe === p)));
    const never = lacks.filter((p) => !notes[p]), left = lacks.filter((p) => notes[p]);
    const list = (some) => some.map((p) => PROBES[p]).join(" and ");
    return [
      never.length ? el("p", { class: "fine", "data-missing": never.join(",") }, `This run keeps no ${list(never)} by token; `, el("code", {}, `composcope probe RUN --probes ${never.join(",")}`), " measures them.") : null,
      left.length ? el("p", { class: "fine" }, `Not kept for these cases: ${left.map((p) => PROBES[p] + (WHY[p] || "")).join(", ")}.`) : null,
    ].filter(Boolean);
  }

  return { make, stepOf, first, whole };
})();
