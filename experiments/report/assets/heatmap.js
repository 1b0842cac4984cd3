// One map of cells on a canvas, for mouse and arrow keys.
"use strict";
composcope.heatmap = (() => {
  const { el, showTip, hideTip, colors, stops } = composcope;
  // Pixels: browsers draw nothing on a wider canvas, and a map of a long prompt has a column for each token.
  const WIDEST = 16000;
  const short = (v, most = 14) => { const s = String(v).replace(/\s/g, " ").trim(); return s.length > most ? `${s.slice(0, most - 1)}…` : s; };

  // about: {xs, ys, value(i, j), low, high, diverging, name, xlabel, tell(i, j) -> lines, pick(i, j), numbers, tokens}
  // few(i, j): whether a cell rests on too few cases, and is struck out; numbers: written into cells; tokens: xs are pieces of text, written upright in columns that keep their width.
  function draw(about) {
    const size = layout(about);
    const keys = about.pick ? "arrow keys move over it, Enter opens a cell" : "arrow keys move over it";
    const canvas = el("canvas", { role: "application", tabindex: 0, "aria-label": `${about.name}; ${keys}`, class: about.tokens ? "natural" : null });
    let here = null;
    const paint = () => drawAll(canvas, about, size, here);
    paint();
    const tell = (event, cell) => showTip(event, about.tell(cell.i, cell.j));
    canvas.addEventListener("mousemove", (e) => { const cell = find(e, canvas, about, size); if (cell) tell(e, cell); else hideTip(); });
    canvas.addEventListener("mouseleave", hideTip);
    canvas.addEventListener("blur", () => { hideTip(); here = null; paint(); });
    canvas.addEventListener("click", (e) => { const cell = find(e, canvas, about, size); if (cell && about.pick) about.pick(cell.i, cell.j); });
    const show = (i, j) => {
      here = { i: clamp(i, about.ys), j: clamp(j, about.xs) };
      paint();
      reveal(canvas, size, here);
      tell(corner(canvas, size, here), here);
    };
    canvas.addEventListener("entered", (e) => show(e.detail.row ?? 0, e.detail.by > 0 ? 0 : about.xs.length - 1));
    canvas.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
      if (step) {
        const [i, j] = here ? [here.i + step[0], here.j + step[1]] : [0, 0];
        if ((j >= 0 && j < about.xs.length) || !stops.leave(canvas, step[1], here.i)) show(i, j);
        e.preventDefault();
      } else if ((e.key === "Enter" || e.key === " ") && here && about.pick) { about.pick(here.i, here.j); e.preventDefault(); }
    });
    const frame = about.tokens ? el("div", { class: "scroll" }, canvas) : canvas;
    return el("div", {}, frame, about.xlabel ? el("p", { class: "xlabel" }, about.xlabel) : null, colors.legend(colors.stops(about.diverging), about.low, about.high));
  }

  const clamp = (i, list) => Math.min(Math.max(i, 0), list.length - 1);

  function layout({ xs, ys, numbers, tokens }) {
    const named = tokens || typeof xs[0] === "string";
    const left = numbers ? 96 : 34;
    const bottom = tokens ? 72 : numbers ? 44 : 18;
    const width = tokens ? left + 19 * xs.length + 8 : 420;
    const wide = tokens ? 19 : numbers ? Math.min((width - left) / xs.length, 64) : (width - left) / xs.length;
    const tall = Math.max(Math.min(numbers ? wide : Math.min(wide, 40), 34), Math.min(16, 300 / ys.length));
    return { left, bottom, width, wide, tall: tokens ? Math.max(16, Math.min(26, 300 / ys.length)) : tall, named, height: (tokens ? Math.max(16, Math.min(26, 300 / ys.length)) : tall) * ys.length + bottom };
  }

  function drawAll(canvas, about, size, here) {
    const { left, wide, tall, width, height } = size;
    const ratio = Math.min(Math.max(2, devicePixelRatio || 1), WIDEST / width);
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    if (about.tokens) canvas.style.width = `${width}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const ramp = colors.stops(about.diverging), muted = colors.css("--muted");
    about.ys.forEach((_, i) => about.xs.forEach((__, j) => {
      const value = about.value(i, j);
      const [x, y] = [left + j * wide, i * tall];
      if (typeof value !== "number") {
        pen.fillStyle = muted;
        pen.textAlign = "center";
        if (wide > 12) pen.fillText("–", x + wide / 2, y + tall / 2);
        return;
      }
      const share = (value - about.low) / (about.high - about.low || 1);
      const color = colors.shade(ramp, share);
      pen.fillStyle = color;
      pen.fillRect(x, y, wide - (wide > 6 ? 1 : 0), tall - (tall > 6 ? 1 : 0));
      if (about.few && about.few(i, j)) {
        pen.strokeStyle = colors.ink(color);
        pen.lineWidth = 1;
        pen.beginPath(); pen.moveTo(x, y + tall - 1); pen.lineTo(x + wide - 1, y); pen.stroke();
      }
      if (about.numbers) {
        pen.fillStyle = colors.ink(color);
        pen.textAlign = "center";
        pen.fillText(value.toFixed(2), x + wide / 2, y + tall / 2);
      }
    }));
    labels(pen, about, size, muted);
    for (const cell of [about.picked, here].filter(Boolean)) {
      pen.strokeStyle = colors.css("--ink");
      pen.lineWidth = 2;
      pen.strokeRect(left + cell.j * wide, cell.i * tall, wide - 1, tall - 1);
    }
  }

  function labels(pen, about, { left, bottom, wide, tall, height }, muted) {
    pen.fillStyle = muted;
    pen.textAlign = "right";
    const everyRow = Math.ceil(12 / tall);
    about.ys.forEach((v, i) => { if (i % everyRow === 0) pen.fillText(short(v), left - 5, (i + 0.5) * tall); });
    const everyColumn = about.tokens || about.numbers ? 1 : Math.ceil(18 / wide);
    about.xs.forEach((v, j) => {
      if (j % everyColumn) return;
      const x = left + (j + 0.5) * wide;
      if (!about.tokens) { pen.textAlign = "center"; pen.fillText(short(v), x, height - bottom + 11 + (about.numbers && j % 2 ? 13 : 0)); return; }
      pen.save();
      pen.translate(x, height - bottom + 5);
      pen.rotate(-Math.PI / 2);
      pen.textAlign = "right";
      pen.fillText(short(String(v).replace(/\n/g, "↵") || "·", 12), 0, 0);
      pen.restore();
    });
  }

  function find(event, canvas, { xs, ys }, { left, wide, tall, width }) {
    const b = canvas.getBoundingClientRect(), scale = width / b.width;
    const j = Math.floor(((event.clientX - b.left) * scale - left) / wide), i = Math.floor(((event.clientY - b.top) * scale) / tall);
    return i >= 0 && i < ys.length && j >= 0 && j < xs.length ? { i, j } : null;
  }

  function corner(canvas, { left, wide, tall, width }, cell) {
    const b = canvas.getBoundingClientRect(), scale = b.width / width;
    return { clientX: b.left + (left + (cell.j + 1) * wide) * scale, clientY: b.top + (cell.i + 1) * tall * scale, target: canvas };
  }

  // A map that is wider than its place scrolls to the marked cell.
  function reveal(canvas, { left, wide, width }, cell) {
    canvas.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
    const frame = canvas.closest(".scroll");
    if (!frame) return;
    const scale = canvas.getBoundingClientRect().width / width, [from, to] = [left + cell.j * wide, left + (cell.j + 1) * wide].map((x) => x * scale);
    if (from < frame.scrollLeft) frame.scrollLeft = cell.j ? from : 0;
    else if (to > frame.scrollLeft + frame.clientWidth) frame.scrollLeft = to - frame.clientWidth;
  }

  return { draw };
})();
