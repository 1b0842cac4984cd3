// Colors of both themes: a palette that color-blind readers can tell apart, and ramps for numbers.
"use strict";
composcope.colors = (() => {
  const { el, number } = composcope;
  const PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8a7a10", "#8C8C8C"];
  const NAMED = { failure: "#D55E00", success: "#0072B2", "within failures": "#D55E00", "within successes": "#0072B2", across: "#8C8C8C" };
  const RAMPS = {
    light: { plain: ["#f4f6f8", "#9cc5e3", "#2f7fb8", "#083a63"], diverging: ["#0072B2", "#8fc0de", "#f4f4f4", "#f0a877", "#D55E00"] },
    dark: { plain: ["#1d2530", "#1f527a", "#3f97d1", "#cfe8fa"], diverging: ["#4db1ec", "#1f5f86", "#222a34", "#8a4a1c", "#ff9447"] },
  };
  // Colors for tokens: attention to the context looks back, attention to new text does not.
  const REGIONS = { light: { context: "0,114,178", fresh: "213,94,0" }, dark: { context: "86,180,233", fresh: "255,148,71" } };

  const name = () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light");
  const css = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  const stops = (diverging) => RAMPS[name()][diverging ? "diverging" : "plain"];
  const over = (region, share) => `rgba(${REGIONS[name()][region]},${Math.min(Math.max(share, 0), 1).toFixed(3)})`;

  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

  function shade(ramp, share) {
    const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
    const i = Math.min(Math.floor(at), ramp.length - 2);
    const [a, b] = [rgb(ramp[i]), rgb(ramp[i + 1])];
    return `rgb(${a.map((v, k) => Math.round(v + (b[k] - v) * (at - i))).join(",")})`;
  }

  // Black or white, whichever has the higher contrast on a color (relative luminance, WCAG).
  function ink(color) {
    const [r, g, b] = color.match(/\d+/g).map((v) => { const c = Number(v) / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
  }

  // The scale under a map.
  function legend(ramp, low, high) {
    const bar = el("canvas", { width: 128, height: 8, "aria-hidden": "true" });
    const pen = bar.getContext("2d");
    for (let i = 0; i < 128; i++) { pen.fillStyle = shade(ramp, i / 127); pen.fillRect(i, 0, 1, 8); }
    return el("div", { class: "ramp" }, number(low), bar, number(high));
  }

  return { PALETTE, NAMED, css, stops, over, shade, ink, legend };
})();
