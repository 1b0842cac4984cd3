// Each probe's pictures of one case: lookback map, patching sweeps, trajectory, tokens of the question.
"use strict";
composcope.pictures = (() => {
  const { el, number, arrays, heatmap, tokens, colors } = composcope;
  const percent = (v) => `${(100 * v).toFixed(0)} %`;
  const few = (entries, show) => (entries.length < 2 ? null : el("select", { onchange: (e) => show(entries[Number(e.target.value)]) }, ...entries.map((x, i) => el("option", { value: i }, x.role))));

  // One picture that is drawn again when the role, a choice or the theme changes.
  function live(entries, make) {
    const body = el("div", {});
    let now = entries[0];
    const show = (entry) => { now = entry; body.replaceChildren(...make(entry, () => show(now)).filter(Boolean)); };
    const select = few(entries, show);
    show(now);
    composcope.onRepaint(() => { if (body.isConnected) show(now); });
    return el("div", {}, select ? el("div", { class: "controls" }, el("label", {}, "asked", select)) : null, body);
  }

  function trajectory(entries) {
    return el("div", { class: "picture", "data-picture": "trajectory" }, live(entries, (e) => {
      const cosines = arrays.unpack(e.arrays.cosines), [layers, steps] = cosines.shape;
      const all = arrays.range(layers).flatMap((i) => arrays.range(steps).map((j) => cosines.at(i, j))).filter((v) => v !== null);
      const xs = arrays.range(steps).map((j) => e.tokens[j + 1] ?? "");
      return [heatmap.draw({
        xs, ys: arrays.range(layers), value: (i, j) => cosines.at(i, j), low: Math.min(...all, 1), high: Math.max(...all), tokens: true,
        name: "cosine of consecutive states by layer and response token", xlabel: "response token that the later state predicts",
        tell: (i, j) => [`layer ${i}, to ${JSON.stringify(xs[j])}`, `cosine ${number(cosines.at(i, j))}`],
      })];
    }));
  }

  const LOWEST = 0.2;
  function lowestOf(z) {
    const n = z.shape[0], order = arrays.range(n).sort((a, b) => (z.at(a) ?? -Infinity) - (z.at(b) ?? -Infinity));
    return order.slice(0, Math.floor(n * LOWEST)).map((i) => [i, z.at(i)]);
  }
  function surprise(entries) {
    return el("div", { class: "picture", "data-picture": "min-k" }, live(entries, (e) => {
      const z = arrays.unpack(e.arrays.z), lp = arrays.unpack(e.arrays.log_prob), n = z.shape[0];
      const least = lowestOf(z), lowest = new Set(least.map(([i]) => i));
      const reach = Math.max(...arrays.range(n).map((i) => Math.abs(z.at(i) ?? 0)), 1e-9);
      const at = (i) => i - e.first;
      const inside = (i) => at(i) >= 0 && at(i) < n;
      const mean = arrays.mean(least.map(([, v]) => v));
      return [tokens.draw(e.tokens, {
        label: "question, colored by how unexpected its tokens are",
        kind: (i) => (inside(i) ? (lowest.has(at(i)) ? "lowest" : "") : "later"),
        color: (i) => (inside(i) && z.at(at(i)) !== null ? colors.over(z.at(at(i)) < 0 ? "fresh" : "context", 0.72 * Math.sqrt(Math.abs(z.at(at(i))) / reach)) : null),
        tell: (i) => (inside(i) ? [JSON.stringify(e.tokens[i]), z.at(at(i)) === null ? "z minus infinity" : `z ${number(z.at(at(i)))}`, `log-probability ${number(lp.at(at(i)))} nats`, lowest.has(at(i)) ? "among the lowest fifth" : ""] : [JSON.stringify(e.tokens[i]), "not scored"]),
      }), el("p", { class: "fine" }, `Orange: less likely than the model expected at this position; blue: more likely. Underlined: the ${lowest.size} of ${n} lowest, whose mean ${mean === null ? "is undefined" : number(mean)} is the question's Min-K%++.`)];
    }));
  }

  const SITES = { resid_post: "residual stream after the block", attn_out: "attention output", mlp_out: "MLP output" };
  function patching(entries) {
    return el("div", { class: "picture", "data-picture": "patching" }, ...entries.map((e) => el("div", {},
      el("h5", { dir: "auto" }, `A success's state (${e.donor}) put in`), continuations(e), e.sweep_positions ? sweep(e) : el("p", { class: "fine" }, "There is no sweep over positions for this pair; only a few pairs with prompts of equal length have one."))));
  }

  function continuations(e) {
    const row = (name, text, kind) => el("tr", {}, el("th", { scope: "row" }, name), el("td", { dir: "auto", class: "said-text" }, text), el("td", {}, kind));
    const runs = [];  // blocks after which the model writes the same share a line
    e.patched.forEach((text, i) => { const last = runs[runs.length - 1]; if (last && last.text === text) last.to = e.layers[i]; else runs.push({ from: e.layers[i], to: e.layers[i], text }); });
    const became = (text) => (text === e.donors_own && text !== e.unpatched ? "the donor's text" : text === e.unpatched ? "unchanged" : "another text");
    return el("div", { class: "scroll" }, el("table", { class: "plain" }, el("caption", {}, "The model's continuation when the prompt's last position gets the donor's state after one block, compared word for word"),
      el("thead", {}, el("tr", {}, el("th", {}, "patched after"), el("th", {}, "continuation"), el("th", {}, "became"))),
      el("tbody", {}, row("nothing", e.unpatched, "the case itself"), row("(the donor itself)", e.donors_own, ""), ...runs.map((r) => row(r.from === r.to ? `layer ${r.from}` : `layers ${r.from}–${r.to}`, r.text, became(r.text))))));
  }

  function sweep(e) {
    const state = { site: e.sites[0], show: "recovered" };
    const body = el("div", {});
    const choose = (key, options) => el("select", { "data-sweep": key, onchange: (event) => { state[key] = event.target.value; paint(); } }, ...options.map(([value, shown]) => el("option", { value }, shown)));
    function paint() {
      const values = arrays.unpack(e.arrays[`${state.site}.${state.show}`]), [layers, positions] = values.shape;
      const all = arrays.range(layers).flatMap((i) => arrays.range(positions).map((j) => values.at(i, j) ?? 0));
      const reach = Math.max(...all.map(Math.abs), 1e-6), share = state.show === "recovered";
      const xs = e.sweep_positions.map((p) => e.tokens[p]);
      body.replaceChildren(heatmap.draw({
        xs, ys: e.sweep_layers, value: (i, j) => values.at(i, j), low: share ? -reach : 0, high: reach, diverging: share, tokens: true,
        name: "patching by layer and token", xlabel: "token of the failing prompt whose state is replaced",
        tell: (i, j) => [`layer ${e.sweep_layers[i]}, ${JSON.stringify(xs[j])} gets ${JSON.stringify(e.donor_tokens[e.sweep_positions[j]])}`,
          values.at(i, j) === null ? "undefined: the two prompts do not differ here" : share ? `${percent(values.at(i, j))} of the way to the donor's answer` : `next token moves by ${number(values.at(i, j))} nats`],
      }));
    }
    paint();
    composcope.onRepaint(() => { if (body.isConnected) paint(); });
    return el("div", {}, el("div", { class: "controls" }, el("label", {}, "site", choose("site", e.sites.map((s) => [s, SITES[s] || s]))),
      el("label", {}, "shown", choose("show", [["recovered", "way to the donor's answer"], ["kl", "change of the next token (KL)"]]))), body,
    el("p", { class: "fine", dir: "auto" }, `0: nothing changes; 1: the logit difference between ${JSON.stringify(e.answers[0])} (donor) and ${JSON.stringify(e.answers[1])} (right here) becomes the donor's.`));
  }

  // The main number of a view, as [what it is, of the case's entries].
  const TELLS = {
    trajectory: ["mean cosine", ([e]) => { const c = arrays.unpack(e.arrays.cosines), [layers, steps] = c.shape; return arrays.mean(arrays.range(layers).flatMap((i) => arrays.range(steps).map((j) => c.at(i, j)))); }],
    "min-k": ["Min-K%++", ([e]) => arrays.mean(lowestOf(arrays.unpack(e.arrays.z)).map(([, v]) => v))],
    patching: ["the success's own text follows after", ([e]) => `${e.patched.filter((text) => text === e.donors_own && text !== e.unpatched).length} of ${e.layers.length} layers`],
  };
  const told = (name, file) => (file && file.probes[name] ? TELLS[name][1](file.probes[name]) : null);

  const DRAW = { patching, trajectory, "min-k": surprise };
  // One probe's pictures of a case.
  const one = (name, file) => DRAW[name](file.probes[name]);

  return { one, told, what: (name) => TELLS[name][0] };
})();
