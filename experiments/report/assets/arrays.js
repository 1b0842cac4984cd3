// Decode the arrays in data scripts; see report/scripts.py.
"use strict";
composcope.arrays = (() => {
  // {shape, low, high, bits, data} -> {shape, at(i, j, ...)}; a missing value is null.
  function unpack(packed) {
    const raw = atob(packed.data);
    const wide = packed.bits === 16, count = raw.length / (wide ? 2 : 1);
    const missing = wide ? 65535 : 255, step = (packed.high - packed.low) / (missing - 1);
    const read = (i) => (wide ? raw.charCodeAt(2 * i) + 256 * raw.charCodeAt(2 * i + 1) : raw.charCodeAt(i));
    const values = new Float32Array(count);
    for (let i = 0; i < count; i++) { const n = read(i); values[i] = n === missing ? NaN : packed.low + step * n; }
    const { shape } = packed;
    const at = (...place) => {
      let i = 0;
      place.forEach((p, axis) => { i = i * shape[axis] + p; });
      return Number.isNaN(values[i]) ? null : values[i];
    };
    return { shape, at };
  }

  // Mean of the values that are not missing; null if there are none.
  function mean(values) {
    const kept = values.filter((v) => v !== null);
    return kept.length ? kept.reduce((a, b) => a + b, 0) / kept.length : null;
  }

  const range = (n) => Array.from({ length: n }, (_, i) => i);
  return { unpack, mean, range };
})();
