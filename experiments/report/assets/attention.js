// Where one head looks while one token is written: each token is colored by the attention that it gets.
"use strict";
composcope.attention = (() => {
  const { el, need, number, colors, arrays, tokens } = composcope;
  const percent = (v) => `${(100 * v).toFixed(v < 0.0995 ? 1 : 0)} %`;

  // A view over one case's entries (one per role); picked: {layer, head} to begin with; changed: told of another head;
  // answer: the step of the whole that it opens at. Returns the head that it shows.
  function draw(box, entries, picked, changed, answer = 0) {
    const kept = entries.filter((e) => e.arrays.attention);
    if (!kept.length) { box.replaceChildren(el("p", { class: "absent" }, "Attention of this case was left out to keep the folder small.")); return { at: null }; }
    const state = { entry: kept[0], step: null, layer: null, head: null };
    const roles = el("select", { "data-attention": "role", onchange: () => { state.entry = kept[Number(roles.value)]; state.step = null; enter(); } },
      ...kept.map((e, i) => el("option", { value: i }, e.role)));
    const heads = el("select", { "data-attention": "head", onchange: () => { [state.layer, state.head] = heads.value.split(".").map(Number); paint(); if (changed) changed({ layer: state.layer, head: state.head }); } });
    const step = el("input", { type: "range", min: 0, "data-attention": "step", "aria-label": "response step", oninput: () => { state.step = Number(step.value); paint(); } });
    const all = el("input", { type: "checkbox", "data-attention": "all", onchange: () => { state.step = all.checked ? null : Number(step.value); paint(); } });
    const body = el("div", {});
    box.replaceChildren(el("div", { class: "controls" }, el("label", {}, "asked", roles), el("label", {}, "head", heads),
      el("label", {}, "step", step), el("label", {}, all, "mean over steps")), body);

    function enter() {
      const e = unpacked(state.entry);
      heads.replaceChildren(...e.heads.map(([l, h]) => el("option", { value: `${l}.${h}` }, `layer ${l}, head ${h}`)));
      if (state.layer === null) ({ layer: state.layer, head: state.head } = strongest(e));
      step.max = String(e.steps - 1);
      if (state.step === null) state.step = e.role === "whole" ? answer : 0;
      paint();
    }
    function paint() {
      const e = state.entry;
      heads.value = `${state.layer}.${state.head}`;
      step.value = String(state.step ?? 0);
      all.checked = state.step === null;
      step.disabled = all.checked;
      const h = e.heads.findIndex(([l, k]) => l === state.layer && k === state.head);
      if (h < 0) {
        body.replaceChildren(el("p", { class: "absent" }, `Layer ${state.layer}, head ${state.head} was not kept for this case. ${e.heads.length} of ${e.of_heads} heads were kept: those in which failures and successes differ most. Choose one in the list.`));
        return;
      }
      body.replaceChildren(...picture(e, h, state, (s) => { state.step = s; paint(); }));
    }
    if (picked) [state.layer, state.head] = [picked.layer, picked.head];
    enter();
    composcope.onRepaint(() => { if (box.isConnected) paint(); });
    return { at: { layer: state.layer, head: state.head } };
  }

  function unpacked(e) {
    if (!e.read) e.read = { attention: arrays.unpack(e.arrays.attention), ratio: arrays.unpack(e.arrays.ratio) };
    return e;
  }

  // The attention of one head at one step by position; null for a head that was not kept, or where keys were merged.
  function weight(e, { layer, head }, step) {
    const h = e.heads.findIndex(([l, k]) => l === layer && k === head), { attention: got } = unpacked(e).read;
    const place = new Map(keys(e).flatMap((c, k) => (c.to - c.from === 1 && k < got.shape[2] ? [[c.from, k]] : [])));
    return h < 0 ? null : (p) => (place.has(p) ? got.at(h, step, place.get(p)) : null);
  }

  // The lookback ratio of one head at one step; null if the head was not kept.
  const ratio = (e, { layer, head }, step) => (e.heads.some(([l, k]) => l === layer && k === head) ? unpacked(e).read.ratio.at(layer, head, step) : null);

  // The view opens with the head that looks most at one token of the question, at whatever step.
  function strongest(e) {
    const [, steps, n] = unpacked(e).read.attention.shape, cells = keys(e);
    const asked = arrays.range(n).filter((k) => cells[k].from >= e.question[0] && cells[k].from < e.question[1]);
    let best = { layer: e.heads[0][0], head: e.heads[0][1], most: -1 };
    e.heads.forEach(([layer, head], h) => {
      for (let step = 0; step < steps; step++) {
        const most = Math.max(0, ...asked.map((k) => e.read.attention.at(h, step, k) || 0));
        if (most > best.most) best = { layer, head, most };
      }
    });
    return best;
  }

  // The text at key k: one token, or a run of tokens if the prompt was too long to keep each one.
  function keys(e) {
    if (!e.spans) return e.tokens.map((t, i) => ({ text: t, from: i, to: i + 1 }));
    const last = e.spans[e.spans.length - 1][1];
    return [...e.spans, ...arrays.range(e.tokens.length - last).map((i) => [last + i, last + i + 1])]
      .map(([a, b]) => ({ text: e.tokens.slice(a, b).join(""), from: a, to: b }));
  }

  function picture(e, h, state, pick) {
    const cells = keys(e), n = e.read.attention.shape[2];
    const steps = state.step === null ? arrays.range(e.steps) : [state.step];
    const weight = (k) => (k < n ? arrays.mean(steps.map((s) => e.read.attention.at(h, s, k))) || 0 : 0);
    const weights = cells.map((_, k) => weight(k));
    const top = Math.max(...weights, 1e-9);
    const fresh = (k) => cells[k].from >= e.context_tokens;
    // The token being written and the tokens after it have not been read yet.
    const writing = state.step === null ? Infinity : e.prompt_tokens + state.step;
    const kind = (k) => [cells[k].from >= e.prompt_tokens ? "response" : fresh(k) ? "cue" : "", cells[k].from === writing ? "writing" : cells[k].from > writing ? "later" : "",
      cells[k].from >= e.question[0] && cells[k].from < e.question[1] ? "question" : ""].join(" ");
    const box = tokens.draw(cells.map((c) => c.text), {
      label: "prompt and response, colored by attention", kind,
      color: (k) => (cells[k].from >= writing || !weights[k] ? null : colors.over(fresh(k) ? "fresh" : "context", 0.72 * Math.sqrt(weights[k] / top))),
      tell: (k) => [JSON.stringify(cells[k].text), cells[k].from >= writing ? "not read at this step" : `${percent(weights[k])} of the attention`,
        `position ${cells[k].from}${cells[k].to - cells[k].from > 1 ? `–${cells[k].to - 1}` : ""}, ${cells[k].from >= e.prompt_tokens ? "response" : fresh(k) ? "end of the template, counts as new" : "context"}`],
      can: (k) => cells[k].from >= e.prompt_tokens && cells[k].from < e.prompt_tokens + e.steps,
      pick: (k) => pick(cells[k].from - e.prompt_tokens),
    });
    const back = weights.filter((_, k) => !fresh(k)).reduce((a, b) => a + b, 0);
    const ratio = arrays.mean(steps.map((s) => e.read.ratio.at(state.layer, state.head, s)));
    const written = state.step === null ? `over ${e.steps} steps` : `while writing ${JSON.stringify(e.tokens[e.prompt_tokens + state.step] ?? "")} (step ${state.step + 1} of ${e.response_tokens})`;
    const line = el("p", { class: "said-of", "data-ratio": ratio }, el("b", {}, `Layer ${state.layer}, head ${state.head}`), ` ${written}: lookback ratio ${ratio === null ? "undefined (nothing new yet)" : number(ratio)}; ${percent(back)} of its attention goes back to the context.`);
    const short = e.steps < e.response_tokens ? el("p", { class: "fine" }, `The first ${e.steps} of ${e.response_tokens} response tokens were kept.`) : null;
    return [line, box, key(), strongestKeys(cells, weights, fresh), short].filter(Boolean);
  }

  function key() {
    const patch = (region) => { const s = el("span", { class: "swatch" }); s.style.backgroundColor = colors.over(region, 0.8); return s; };
    return el("p", { class: "fine legend" }, el("span", {}, patch("context"), " context"), el("span", {}, patch("fresh"), " new text"),
      el("span", {}, el("span", { class: "token writing" }, "x"), " being written"), el("span", {}, "Click a token of the response to go to its step."));
  }

  function strongestKeys(cells, weights, fresh) {
    const order = arrays.range(cells.length).sort((a, b) => weights[b] - weights[a]).slice(0, 8).filter((k) => weights[k] > 0);
    return el("details", {}, el("summary", {}, "Most attended tokens"), el("table", { class: "plain narrow" },
      el("thead", {}, el("tr", {}, el("th", {}, "token"), el("th", { class: "num" }, "position"), el("th", {}, "part"), el("th", { class: "num" }, "attention"))),
      el("tbody", {}, ...order.map((k) => el("tr", {}, el("td", { dir: "auto" }, tokens.shown(cells[k].text)), el("td", { class: "num" }, cells[k].from), el("td", {}, fresh(k) ? "new" : "context"), el("td", { class: "num" }, percent(weights[k])))))));
  }

  return { draw, strongest, weight, ratio };
})();
