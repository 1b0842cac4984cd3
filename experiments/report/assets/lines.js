// One panel of curves: points with intervals, joined by lines if they rest on enough cases.
"use strict";
composcope.lines = (() => {
  const { el, svg, showTip, hideTip, number, stops, colors } = composcope;
  const unique = (values) => [...new Set(values)];
  const percent = (v) => `${(100 * v).toFixed(Math.abs(v) < 0.1 && v !== 0 ? 1 : 0)} %`;

  // Series differ without color, too, as in the figures for print (figures/style.py).
  const DASHES = [null, "9 4", "9 3 2 3", "2 3"];
  const dash = (i) => DASHES[(i + Math.floor(i / colors.PALETTE.length)) % DASHES.length];

  // The line and mark of the i-th series, beside its name.
  function sample(i, tint) {
    const node = el("canvas", { class: "sample", width: 64, height: 20, "data-dash": dash(i) || "", "aria-hidden": "true" }), pen = node.getContext("2d");
    pen.strokeStyle = pen.fillStyle = tint;
    pen.lineWidth = 4;
    pen.setLineDash((dash(i) || "").split(" ").map((n) => 2 * Number(n)).filter(Boolean));
    pen.beginPath(); pen.moveTo(0, 10); pen.lineTo(64, 10); pen.stroke();
    pen.beginPath(); pen.arc(32, 10, 8, 0, 2 * Math.PI); pen.fill();
    return node;
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

  function draw(rows, chart, color, name, about, panels, ofAll) {
    // Text keeps its size: the more panels share the width, the smaller the drawing's own units.
    const [W, H, left, right, top, bottom] = [panels > 3 ? 270 : panels > 2 ? 340 : 460, panels > 2 ? 210 : 270, 46, 14, 10, 38];
    const found = unique(ofAll.map((r) => r[chart.x]));  // of all panels if they share their axis
    const xs = chart.order ? chart.order.filter((x) => found.includes(x)) : found;
    if (xs.every((x) => typeof x === "number")) xs.sort((a, b) => a - b);
    const numeric = xs.every((x) => typeof x === "number") && xs.length > 1;
    const y = scaleOf(rows, chart.percent || /_rate$/.test(name || ""));
    const inner = W - left - right - 36;
    const px = (x) => left + 18 + (numeric ? (x - xs[0]) / (xs[xs.length - 1] - xs[0]) : xs.length > 1 ? xs.indexOf(x) / (xs.length - 1) : 0.5) * inner;
    const py = (v) => top + (1 - (v - y.low) / (y.high - y.low)) * (H - top - bottom);
    const root = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "application", tabindex: 0, "aria-label": `${chart.ylabel || name || "chart"}; arrow keys go from point to point` });
    const spots = [];
    for (const t of y.ticks) {
      root.append(svg("line", { class: "gridline", x1: left, x2: W - right, y1: py(t), y2: py(t) }),
        svg("text", { class: "axis", x: left - 6, y: py(t) + 4, "text-anchor": "end" }, y.name(t)));
    }
    const every = Math.ceil(xs.length / 12);
    xs.forEach((x, i) => { if (i % every === 0) root.append(svg("text", { class: "axis", x: px(x), y: H - bottom + 17, "text-anchor": "middle" }, x)); });
    root.append(svg("text", { class: "axis", x: (W + left) / 2, y: H - 4, "text-anchor": "middle" }, chart.xlabel || ""));
    const series = unique(rows.map((r) => r[chart.series])), order = [...color.keys()];
    // Series stand side by side at each place, closer together where places are.
    const room = (W - left - right) / Math.max(xs.length, 1), apart = Math.min(4, (0.7 * room) / Math.max(series.length, 1)), size = room < 24 ? 2.5 : 4;
    series.forEach((s, i) => oneLine(root, rows.filter((r) => r[chart.series] === s), { chart, px, py, y, shade: color.get(s), dashes: dash(order.indexOf(s)), nudge: (i - (series.length - 1) / 2) * apart, size, spots }));
    pointing(root, spots, (r) => describe(r, chart, y), about.onPoint, W);
    return root;
  }

  function oneLine(root, rows, { chart, px, py, shade: tint, dashes, nudge, size, spots }) {
    const drawn = rows.filter((r) => typeof r.value === "number");
    const solid = drawn.filter((r) => r.drawn !== "hollow");
    for (const run of unique(solid.map((r) => r.run))) {  // trainings of one recipe each have their own line
      const joined = solid.filter((r) => r.run === run);
      if (joined.length > 1) root.append(svg("polyline", { points: joined.map((r) => `${px(r[chart.x]) + nudge},${py(r.value)}`).join(" "), fill: "none", stroke: tint, "stroke-width": 2, ...(dashes ? { "stroke-dasharray": dashes } : {}) }));
    }
    for (const r of drawn) {
      const [x, v] = [px(r[chart.x]) + nudge, py(r.value)];
      const hollow = r.drawn === "hollow";
      if (!hollow && typeof r.low === "number" && typeof r.high === "number") root.append(svg("line", { x1: x, x2: x, y1: py(r.low), y2: py(r.high), stroke: tint, "stroke-width": 1.6, opacity: 0.6 }));
      const face = hollow ? "var(--panel)" : tint;
      root.append(r.drawn === "marked"
        ? svg("rect", { x: x - size, y: v - size, width: 2 * size, height: 2 * size, transform: `rotate(45 ${x} ${v})`, fill: face, stroke: tint, "stroke-width": 1.6 })
        : svg("circle", { cx: x, cy: v, r: size, fill: face, stroke: tint, "stroke-width": 1.6 }));
      root.lastChild.setAttribute("data-point", "");
      spots.push({ x, y: v, row: r, node: root.lastChild });
    }
  }

  // One tab stop per chart. The tooltip tells the point nearest to the pointer, so that overlapping points can be reached.
  const REACH = 24;
  function pointing(root, spots, tell, pick, width) {
    spots.sort((a, b) => a.x - b.x || a.y - b.y);
    let here = -1;
    const mark = (i) => { spots.forEach((s, k) => s.node.classList.toggle("here", k === i)); here = i; };
    const nearest = (e) => {
      const b = root.getBoundingClientRect(), scale = width / b.width, [x, y] = [(e.clientX - b.left) * scale, (e.clientY - b.top) * scale];
      const far = spots.map((s) => Math.hypot(s.x - x, s.y - y)), least = Math.min(...far);
      return least <= REACH ? far.indexOf(least) : -1;
    };
    const leave = () => { mark(-1); hideTip(); };
    root.addEventListener("mousemove", (e) => {
      const i = nearest(e);
      root.style.cursor = pick && i >= 0 ? "pointer" : "";
      if (i < 0) leave(); else { mark(i); showTip(e, tell(spots[i].row)); }
    });
    ["mouseleave", "blur"].forEach((kind) => root.addEventListener(kind, leave));
    root.addEventListener("click", (e) => { const i = nearest(e); if (pick && i >= 0) pick(spots[i].row); });
    const show = (i) => {
      if (!spots.length) return;
      mark(Math.min(Math.max(i, 0), spots.length - 1));
      root.scrollIntoView({ block: "nearest", behavior: "instant" });
      const { node, row } = spots[here], b = node.getBoundingClientRect();
      showTip({ clientX: b.right, clientY: b.top, target: node }, tell(row));
    };
    root.addEventListener("entered", (e) => show(e.detail.by > 0 ? 0 : spots.length - 1));
    root.addEventListener("keydown", (e) => {
      const by = stops.STEPS[e.key];
      if (by) {
        const next = here < 0 && by > 0 ? 0 : here + by;
        if ((next >= 0 && next < spots.length) || !stops.leave(root, by)) show(next);
        e.preventDefault();
      } else if (e.key === "Enter" && here >= 0 && pick) pick(spots[here].row);
    });
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

  return { draw, sample };
})();
