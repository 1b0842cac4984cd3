// A figure's interactive form, drawn from its own rows: panels of curves or maps, with a choice of model.
"use strict";
composcope.charts = (() => {
  const { el, number, colors, heatmap, lines, stops } = composcope;
  const unique = (values) => [...new Set(values)];

  function objects(data) {
    return data.rows.map((row) => Object.fromEntries(data.columns.map((c, i) => [c, row[i]])));
  }

  function draw(box, data, about) {
    const chart = data.chart, rows = objects(data).filter((r) => Object.entries(chart.only || {}).every(([k, v]) => r[k] === v));
    const state = { hidden: new Set() };
    const controls = el("div", { class: "controls" });
    const of = { facet: (r) => r[chart.facet], switch: (r) => [chart.switch].flat().map((k) => r[k]).join(", ") };
    const facets = chart.facet ? unique(rows.map(of.facet)) : [];
    const switches = chart.switch ? unique(rows.map(of.switch)) : [];
    if (switches.length) {
      state.switch = fullest(rows, of.switch, switches);
      const select = el("select", { "data-control": "switch", onchange: () => { state.switch = select.value; paint(); } }, ...switches.map((o) => el("option", { value: o, selected: o === state.switch }, o)));
      controls.append(el("label", {}, "asked", select));
    }
    const body = el("div", {}), said = el("p", { class: "fine", dir: "auto" });
    box.replaceChildren(controls, said, body);
    stops.listen(body);
    // Show the page's run; if this chart has no data for it, show the run with the most numbers and say so.
    function follow() {
      const name = about.runs[composcope.run.at], own = rows.find((r) => r.run && composcope.runOf(about.runs, r) === composcope.run.at);
      state.facet = own ? own[chart.facet] : facets.includes(name && name.label) ? name.label : fullest(rows, of.facet, facets);
      said.textContent = !facets.length ? "" : own || state.facet === (name && name.label) ? (facets.length > 1 ? state.facet : "") : `Not measured in ${name ? name.label : "this run"}; shown: ${state.facet}.`;
    }
    function paint() {
      const shown = rows.filter((r) => ["facet", "switch"].every((k) => !chart[k] || state[k] === undefined || of[k](r) === state[k]));
      const held = stops.held(body);
      body.replaceChildren(...(chart.kind === "heatmap" ? heatmaps : curves)(shown, chart, state, paint, about));
      stops.join(body, held, held >= 0);
      box.dataset.painted = state.facet ?? "";
    }
    if (facets.length) { follow(); composcope.onRun(() => { follow(); paint(); }); }
    paint();
    composcope.onRepaint(paint);
  }

  // Start with the option that has the most numbers, so that the page does not open on a model without a contrast.
  function fullest(rows, of, options) {
    const counts = options.map((o) => rows.filter((r) => of(r) === o && typeof r.value === "number").length);
    return options[counts.indexOf(Math.max(...counts))];
  }

  function panelled(rows, chart, make) {
    const names = chart.panel ? unique(rows.map((r) => r[chart.panel])) : [null];
    const panels = names.map((name) => {
      const mine = name === null ? rows : rows.filter((r) => r[chart.panel] === name);
      return el("div", { class: "panel" }, name === null ? null : el("p", { dir: "auto" }, label(name)), make(mine, name, names.length));
    });
    return el("div", { class: names.length === 1 ? "panels one" : "panels" }, ...panels);
  }

  const label = (name) => (name === "difference" ? "difference (failure − success)" : String(name));

  function curves(every, chart, state, paint, about) {
    const rows = every.filter((r) => r.drawn !== "no");  // those are in the csv only
    const series = unique(rows.map((r) => r[chart.series]));
    const color = new Map(series.map((s, i) => [s, colors.NAMED[String(s).split(", ")[0]] || colors.PALETTE[i % colors.PALETTE.length]]));  // "failure, own": its group's
    const legend = el("div", { class: "legend" }, ...series.map((s, i) => {
      const dot = lines.sample(i, color.get(s));
      return el("button", { type: "button", "aria-pressed": String(!state.hidden.has(s)), onclick: () => {
        if (state.hidden.has(s)) state.hidden.delete(s); else state.hidden.add(s);
        paint();
      } }, dot, el("span", { dir: "auto" }, s));
    }));
    const shown = rows.filter((r) => !state.hidden.has(r[chart.series]));
    return [legend, chart.ylabel ? el("p", { class: "xlabel" }, chart.ylabel) : "", panelled(shown, chart, (mine, name, panels) => lines.draw(mine, chart, color, name, about, panels, chart.shared ? shown : mine))];
  }

  function heatmaps(rows, chart, state, paint, about) {
    const detail = el("div", { class: "detail", hidden: true });
    const pick = about.onCell && ((cell) => {
      detail.hidden = false;
      detail.replaceChildren(about.onCell(cell));
    });
    // Rows of other panels of the same figure (such as means by layer) do not belong in the map.
    const cells = rows.filter((r) => [chart.x, chart.y].every((k) => r[k] !== null && r[k] !== undefined));
    return [panelled(cells, chart, (mine, name) => map(mine, chart, name, pick, about)), detail];
  }

  function map(rows, chart, name, pick, about) {
    const xs = unique(rows.map((r) => r[chart.x])), ys = unique(rows.map((r) => r[chart.y]));
    const diverging = (chart.diverging || []).includes(name);
    const [low, high] = diverging ? [-chart.reach, chart.reach] : [chart.low, chart.high];
    const at = new Map(rows.map((r) => [`${r[chart.y]},${r[chart.x]}`, r]));
    const row = (i, j) => at.get(`${ys[i]},${xs[j]}`);
    const said = (r) => {
      const spread = typeof r.low === "number" ? ` [${number(r.low)}, ${number(r.high)}]` : "";
      return [`${chart.y} ${r[chart.y]}, ${chart.x} ${r[chart.x]}`, `${number(r.value)}${spread}`,
        r.n !== null && r.n !== undefined ? `n = ${r.n}` : "", few(r) ? "fewer than 5 cases" : ""];
    };
    const few = (r) => Boolean(r) && typeof r.n === "number" && r.n < 5;
    const numbers = typeof xs[0] === "string";
    return heatmap.draw({
      xs, ys, low, high, diverging, numbers, xlabel: numbers ? "" : `${chart.x} (across), ${chart.y} (down)`, name: `${label(name || "")} by ${chart.y} and ${chart.x}`,
      value: (i, j) => (row(i, j) || {}).value, few: (i, j) => few(row(i, j)), tell: (i, j) => (row(i, j) ? said(row(i, j)) : ["not measured"]),
      pick: pick && ((i, j) => { if (row(i, j)) pick(row(i, j)); }),
    });
  }

  return { draw, objects, unique };
})();
