// Two interactive charts drawn from a figure's own rows: lines with intervals, and heatmaps.
"use strict";
composcope.charts = (() => {
  const { el, svg, showTip, hideTip, number } = composcope;
  const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8a7a10", "#8C8C8C"];
  const NAMED = { failure: "#D55E00", success: "#0072B2", "within failures": "#D55E00", "within successes": "#0072B2", across: "#8C8C8C" };
  const RAMPS = {
    light: { plain: ["#f4f6f8", "#9cc5e3", "#2f7fb8", "#083a63"], diverging: ["#0072B2", "#8fc0de", "#f4f4f4", "#f0a877", "#D55E00"] },
    dark: { plain: ["#1d2530", "#1f527a", "#3f97d1", "#cfe8fa"], diverging: ["#4db1ec", "#1f5f86", "#222a34", "#8a4a1c", "#ff9447"] },
  };
  const dark = () => document.documentElement.dataset.theme === "dark";
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const unique = (values) => [...new Set(values)];
  const percent = (v) => `${(100 * v).toFixed(Math.abs(v) < 0.1 && v !== 0 ? 1 : 0)} %`;

  function rgb(hex) { return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)); }
  function shade(stops, share) {
    const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
    const i = Math.min(Math.floor(at), stops.length - 2);
    const [a, b] = [rgb(stops[i]), rgb(stops[i + 1])];
    return `rgb(${a.map((v, k) => Math.round(v + (b[k] - v) * (at - i))).join(",")})`;
  }

  function objects(data) {
    return data.rows.map((row) => Object.fromEntries(data.columns.map((c, i) => [c, row[i]])));
  }

  // Where a chart has several models, one choice serves all charts of the page.
  const choosers = [];
  function choose(value) { choosers.forEach((f) => f(value)); }

  function draw(box, data, about) {
    const rows = objects(data), chart = data.chart;
    const state = { hidden: new Set() };
    const controls = el("div", { class: "controls" });
    for (const key of ["facet", "switch"]) {
      const options = chart[key] ? unique(rows.map((r) => r[chart[key]])) : [];
      if (!options.length) continue;
      state[key] = fullest(rows, chart[key], options);
      if (options.length === 1 && key === "facet") continue;
      const select = el("select", { "data-control": key, onchange: () => {
        state[key] = select.value;
        if (key === "facet") choose(select.value); else paint();
      } }, ...options.map((o) => el("option", { value: o, selected: o === state[key] }, o)));
      controls.append(el("label", {}, key === "facet" ? "model" : "asked", select));
      if (key === "facet") choosers.push((value) => {
        if (!options.includes(value) || (state.facet === value && select.value === value && box.dataset.painted === value)) return;
        state.facet = select.value = value;
        paint();
      });
    }
    const body = el("div", {});
    box.replaceChildren(controls, body);
    function paint() {
      const shown = rows.filter((r) => ["facet", "switch"].every((k) => !chart[k] || state[k] === undefined || r[chart[k]] === state[k]));
      body.replaceChildren(...(chart.kind === "heatmap" ? heatmaps : curves)(shown, chart, state, paint, about));
      box.dataset.painted = state.facet ?? "";
    }
    paint();
    composcope.onRepaint(paint);
  }

  // The option with the most numbers first: a model without a contrast is not what the page opens with.
  function fullest(rows, key, options) {
    const counts = options.map((o) => rows.filter((r) => r[key] === o && typeof r.value === "number").length);
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

  const LABELS = { flip_rate: "takes the donor's answer", corrected_rate: "becomes right", kl: "next token moves (KL, nats)",
    answer_log_prob: "log-probability of the right answer", difference: "difference (failure − success)" };
  const label = (name) => LABELS[name] || String(name);

  function curves(rows, chart, state, paint, about) {
    const series = unique(rows.map((r) => r[chart.series]));
    const color = new Map(series.map((s, i) => [s, NAMED[s] || PALETTE[i % PALETTE.length]]));
    const legend = el("div", { class: "legend" }, ...series.map((s) => {
      const dot = el("span", { class: "swatch" });
      dot.style.background = color.get(s);
      return el("button", { type: "button", "aria-pressed": String(!state.hidden.has(s)), onclick: () => {
        if (state.hidden.has(s)) state.hidden.delete(s); else state.hidden.add(s);
        paint();
      } }, dot, el("span", { dir: "auto" }, s));
    }));
    const shown = rows.filter((r) => !state.hidden.has(r[chart.series]));
    return [legend, panelled(shown, chart, (mine, name, panels) => lines(mine, chart, color, name, about, panels))];
  }

  function scaleOf(rows, isRate) {
    if (isRate) return { low: 0, high: 1, ticks: [0, 0.25, 0.5, 0.75, 1], name: percent };
    const values = rows.flatMap((r) => (r.drawn === "hollow" ? [r.value] : [r.value, r.low, r.high])).filter((v) => typeof v === "number");
    let [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
    if (high - low < 1e-9) { low -= 0.5; high += 0.5; }
    const step = 10 ** Math.floor(Math.log10((high - low) / 3)) * ([1, 2, 5, 10].find((m) => (high - low) / (10 ** Math.floor(Math.log10((high - low) / 3)) * m) <= 5) || 10);
    low = Math.floor(low / step) * step; high = Math.ceil(high / step) * step;
    const ticks = Array.from({ length: Math.round((high - low) / step) + 1 }, (_, i) => low + i * step);
    return { low, high, ticks, name: (v) => Number(v.toFixed(6)).toString() };
  }

  function lines(rows, chart, color, name, about, panels) {
    // Text keeps its size: the more panels share the width, the smaller the drawing's own units.
    const [W, H, left, right, top, bottom] = [panels > 3 ? 270 : panels > 2 ? 340 : 460, panels > 2 ? 210 : 270, 46, 14, 10, 38];
    const xs = unique(rows.map((r) => r[chart.x]));
    if (xs.every((x) => typeof x === "number")) xs.sort((a, b) => a - b);
    const numeric = xs.every((x) => typeof x === "number") && xs.length > 1;
    const y = scaleOf(rows, chart.percent || /_rate$/.test(name || ""));
    const inner = W - left - right - 36;
    const px = (x) => left + 18 + (numeric ? (x - xs[0]) / (xs[xs.length - 1] - xs[0]) : xs.length > 1 ? xs.indexOf(x) / (xs.length - 1) : 0.5) * inner;
    const py = (v) => top + (1 - (v - y.low) / (y.high - y.low)) * (H - top - bottom);
    const root = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": chart.ylabel || label(name || "") });
    for (const t of y.ticks) {
      root.append(svg("line", { class: "gridline", x1: left, x2: W - right, y1: py(t), y2: py(t) }),
        svg("text", { class: "axis", x: left - 6, y: py(t) + 4, "text-anchor": "end" }, y.name(t)));
    }
    const every = Math.ceil(xs.length / 12);
    xs.forEach((x, i) => { if (i % every === 0) root.append(svg("text", { class: "axis", x: px(x), y: H - bottom + 17, "text-anchor": "middle" }, x)); });
    root.append(svg("text", { class: "axis", x: (W + left) / 2, y: H - 4, "text-anchor": "middle" }, chart.xlabel || ""));
    const series = unique(rows.map((r) => r[chart.series]));
    series.forEach((s, i) => oneLine(root, rows.filter((r) => r[chart.series] === s), { chart, px, py, y, shade: color.get(s), nudge: (i - (series.length - 1) / 2) * 4, about }));
    return root;
  }

  function oneLine(root, rows, { chart, px, py, y, shade: tint, nudge, about }) {
    const drawn = rows.filter((r) => typeof r.value === "number");
    const solid = drawn.filter((r) => r.drawn !== "hollow");
    if (solid.length > 1) root.append(svg("polyline", { points: solid.map((r) => `${px(r[chart.x]) + nudge},${py(r.value)}`).join(" "), fill: "none", stroke: tint, "stroke-width": 2 }));
    for (const r of drawn) {
      const [x, v] = [px(r[chart.x]) + nudge, py(r.value)];
      const hollow = r.drawn === "hollow";
      if (!hollow && typeof r.low === "number" && typeof r.high === "number") root.append(svg("line", { x1: x, x2: x, y1: py(r.low), y2: py(r.high), stroke: tint, "stroke-width": 1.6, opacity: 0.6 }));
      const face = hollow ? "var(--panel)" : tint;
      root.append(r.drawn === "marked"
        ? svg("rect", { x: x - 4, y: v - 4, width: 8, height: 8, transform: `rotate(45 ${x} ${v})`, fill: face, stroke: tint, "stroke-width": 1.6 })
        : svg("circle", { cx: x, cy: v, r: 4, fill: face, stroke: tint, "stroke-width": 1.6 }));
      const spot = svg("circle", { cx: x, cy: v, r: 12, fill: "transparent", tabindex: 0, "data-point": "" });
      const tell = (e) => showTip(e, describe(r, chart, y));
      spot.addEventListener("mousemove", tell);
      spot.addEventListener("focus", () => { const b = spot.getBoundingClientRect(); tell({ clientX: b.right, clientY: b.top }); });
      ["mouseleave", "blur"].forEach((kind) => spot.addEventListener(kind, hideTip));
      if (about.onPoint) { spot.style.cursor = "pointer"; spot.addEventListener("click", () => about.onPoint(r)); }
      root.append(spot);
    }
  }

  function describe(r, chart, y) {
    const rate = chart.percent || /_rate$/.test(r.measure || "");
    const form = rate ? percent : number;
    const few = r.drawn === "hollow" ? "fewer than 5 cases" : r.drawn === "marked" ? "fewer than 15 cases" : "";
    return [
      `${r[chart.series]}, ${chart.xlabel || ""} ${r[chart.x]}`,
      `${form(r.value)}${typeof r.low === "number" ? ` [${form(r.low)}, ${form(r.high)}]` : ""}`,
      typeof r.count === "number" && rate ? `${r.count} of ${r.n}` : r.n !== null && r.n !== undefined ? `n = ${r.n}` : "",
      typeof r.low === "number" && r.interval ? `95 % ${r.interval}` : "", few,
    ];
  }

  function heatmaps(rows, chart, state, paint, about) {
    const detail = el("div", { class: "detail", hidden: true });
    const panels = panelled(rows, chart, (mine, name) => heatmap(mine, chart, name, (cell) => {
      if (!about.onCell) return;
      detail.hidden = false;
      detail.replaceChildren(about.onCell(cell));
    }));
    return [panels, detail];
  }

  function heatmap(rows, chart, name, onClick) {
    const xs = unique(rows.map((r) => r[chart.x])), ys = unique(rows.map((r) => r[chart.y]));
    const diverging = (chart.diverging || []).includes(name);
    const stops = RAMPS[dark() ? "dark" : "light"][diverging ? "diverging" : "plain"];
    const [low, high] = diverging ? [-chart.reach, chart.reach] : [chart.low, chart.high];
    const at = new Map(rows.map((r) => [`${ys.indexOf(r[chart.y])},${xs.indexOf(r[chart.x])}`, r]));
    const named = typeof xs[0] === "string";
    const [W, left, bottom] = [420, named ? 96 : 34, named ? 44 : 30];
    const cell = Math.min((W - left) / xs.length, named ? 64 : 40);
    const tall = Math.max(Math.min(cell, 34), Math.min(16, 300 / ys.length));
    const H = tall * ys.length + bottom;
    const wide = named ? cell : (W - left) / xs.length;
    const canvas = el("canvas", { role: "img", "aria-label": `${label(name || "")} by ${chart.y} and ${chart.x}` });
    const ratio = Math.max(2, devicePixelRatio || 1);
    canvas.width = W * ratio; canvas.height = H * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const [ink, muted] = [css("--ink"), css("--muted")];
    for (const [key, r] of at) {
      const [i, j] = key.split(",").map(Number);
      if (typeof r.value !== "number") {
        pen.fillStyle = muted;
        pen.textAlign = "center";
        if (named) pen.fillText("–", left + (j + 0.5) * wide, (i + 0.5) * tall);
        continue;
      }
      const share = (r.value - low) / (high - low || 1);
      pen.fillStyle = shade(stops, share);
      pen.fillRect(left + j * wide, i * tall, wide - (wide > 6 ? 1 : 0), tall - (tall > 6 ? 1 : 0));
      if (named) {
        pen.fillStyle = share > 0.45 !== dark() ? "#ffffff" : "#10151b";
        pen.textAlign = "center";
        pen.fillText(r.value.toFixed(2), left + (j + 0.5) * wide, (i + 0.5) * tall);
      }
    }
    pen.fillStyle = muted;
    pen.textAlign = "right";
    const skipY = Math.ceil(12 / tall);
    ys.forEach((v, i) => { if (i % skipY === 0) pen.fillText(short(v), left - 5, (i + 0.5) * tall); });
    pen.textAlign = "center";
    const skipX = named ? 1 : Math.ceil(18 / wide);
    xs.forEach((v, j) => { if (j % skipX === 0) pen.fillText(short(v), left + (j + 0.5) * wide, H - bottom + 11 + (named && j % 2 ? 13 : 0)); });
    if (!named) { pen.fillStyle = ink; pen.fillText(chart.x, left + (W - left) / 2, H - 7); }
    const find = (event) => {
      const b = canvas.getBoundingClientRect();
      const j = Math.floor(((event.clientX - b.left) * (W / b.width) - left) / wide), i = Math.floor(((event.clientY - b.top) * (H / b.height)) / tall);
      return at.get(`${i},${j}`);
    };
    canvas.addEventListener("mousemove", (e) => {
      const r = find(e);
      if (!r) return hideTip();
      const spread = typeof r.low === "number" ? ` [${number(r.low)}, ${number(r.high)}]` : "";
      showTip(e, [`${chart.y} ${r[chart.y]}, ${chart.x} ${r[chart.x]}`, `${number(r.value)}${spread}`, r.n !== null && r.n !== undefined ? `n = ${r.n}` : ""]);
    });
    canvas.addEventListener("mouseleave", hideTip);
    canvas.addEventListener("click", (e) => { const r = find(e); if (r) onClick(r); });
    return el("div", {}, canvas, ramp(stops, low, high));
  }

  const short = (v) => { const s = String(v); return s.length > 14 ? `${s.slice(0, 13)}…` : s; };

  function ramp(stops, low, high) {
    const bar = el("canvas", { width: 128, height: 8, "aria-hidden": "true" });
    const pen = bar.getContext("2d");
    for (let i = 0; i < 128; i++) { pen.fillStyle = shade(stops, i / 127); pen.fillRect(i, 0, 1, 8); }
    return el("div", { class: "ramp" }, number(low), bar, number(high));
  }

  return { draw, objects, unique, choose };
})();
