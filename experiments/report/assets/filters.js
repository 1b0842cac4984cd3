// The light index of all cases, and the filters over it.
"use strict";
composcope.filters = (() => {
  const { el, own } = composcope;

  // Rows of the index as objects, with names in place of numbers.
  function rows(index) {
    const seen = new Map();
    return index.rows.map((row) => {
      const r = Object.fromEntries(index.columns.map((c, i) => [c, row[i]]));
      const number = seen.get(r.run) || 0;
      seen.set(r.run, number + 1);
      const of = (role) => { const c = r.roles[index.roles.indexOf(role)]; return c === undefined || c === "." ? null : index.outcomes[Number(c)]; };
      return {
        ...r, number, bin: r.bin ?? r.depth, outcome: of, whole: of("whole"), family: r.family === null ? null : index.families[r.family],
        sets: r.sets.map((s) => index.sets[s]), skills: r.skills.map((s) => index.skills[s]), gate: r.gate === null ? null : index.gates[r.gate],
        origin: r.origin === null ? null : index.origins[r.origin], means: r.origin === null ? null : index.origins_mean[r.origin], cause: causeOf(index, r),
        file: `cases/${r.run}-${Math.floor(number / index.chunk)}`,
      };
    });
  }

  const causeOf = (index, r) => (own((index.causes || [])[r.run], r.case) || { cause: null }).cause;

  // Roles that are filtered together, then every role by itself (wordings of atoms only together).
  function groups(index) {
    const some = [["whole", (r) => r === "whole"], ["any part", (r) => /^part:\d+$/.test(r)], ["any wording of an atom", (r) => r.includes(":paraphrase:")],
      ["any scaffold", (r) => r.startsWith("scaffold:")]];
    const found = some.map(([name, test]) => [name, index.roles.filter(test)]).filter(([, roles]) => roles.length);
    const single = index.roles.filter((r) => r !== "whole" && !r.includes(":paraphrase:")).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    return new Map([...found, ...single.map((r) => [r, [r]])]);
  }

  const values = (all, key) => [...new Set(all.flatMap((r) => r[key]).filter((v) => v !== null && v !== undefined))].sort((a, b) => (a > b) - (a < b));

  function make(index, all, changed) {
    const chosen = {}, roles = groups(index);
    const said = (list) => list.map((v) => [v, v]);
    const bar = el("div", { class: "controls" });
    // The address holds the reader's choices.
    function tell() {
      const role = chosen.outcome ? chosen.role : "";
      composcope.address({ ...chosen, role, run: chosen.run === undefined || chosen.run === "" ? "" : index.runs[Number(chosen.run)].label });
      changed();
    }
    function pick(key, name, options, always) {
      if (options.length < 2 && !always) return;
      const select = el("select", { "data-filter": key, onchange: () => { chosen[key] = select.value; tell(); } },
        key === "role" ? null : el("option", { value: "" }, "all"), ...options.map(([value, shown]) => el("option", { value }, shown)));
      if (key === "role") chosen.role = options[0][0];
      bar.append(el("label", {}, name, select));
    }
    pick("run", "run", index.runs.map((r, i) => [i, r.label]));
    pick("set", "case set", said(values(all, "sets")), true);
    pick("gate", "gate", said(index.gates.filter((g) => all.some((r) => r.gate === g))));
    pick("role", "role", said([...roles.keys()]), roles.size > 0);
    pick("outcome", "is", said(index.outcomes), true);
    pick("origin", "wrong because", said(values(all, "origin")), all.some((r) => r.origin !== null));
    pick("cause", "cause", said(values(all, "cause")), all.some((r) => r.cause !== null));
    pick("depth", "depth", said(values(all, "depth")));
    if (all.some((r) => r.bin !== r.depth)) pick("bin", "depth bin", said(values(all, "bin")));
    pick("family", "family", said(values(all, "family")));
    pick("skill", "skill", said(values(all, "skills")));
    pick("k", "scaffold k", values(all, "k").map((k) => [k, k < 0 ? "intractable" : k]));
    bar.append(el("label", {}, "find", el("input", { type: "search", "data-filter": "find", size: 14, placeholder: "in id or question", oninput: (e) => { chosen.find = e.target.value; tell(); } })));
    bar.append(el("button", { type: "button", class: "link", "data-filter-reset": "", onclick: () => { go({}); tell(); } }, "clear"));
    const tests = {
      run: (r, v) => String(r.run) === v, set: (r, v) => r.sets.includes(v), gate: (r, v) => r.gate === v, origin: (r, v) => r.origin === v, cause: (r, v) => r.cause === v, depth: (r, v) => String(r.depth) === v, bin: (r, v) => String(r.bin) === v,
      family: (r, v) => r.family === v, skill: (r, v) => r.skills.includes(v), k: (r, v) => String(r.k) === v, role: () => true,
      outcome: (r, v) => (roles.get(chosen.role) || []).some((role) => r.outcome(role) === v),
      find: (r, v) => `${r.case} ${r.question}`.toLowerCase().includes(v.toLowerCase()),
    };
    const matches = (r) => Object.entries(chosen).every(([key, v]) => !v || tests[key](r, v));
    // Set every filter at once; a filter that does not offer the value stays at "all".
    function go(wanted) {
      for (const field of bar.querySelectorAll("[data-filter]")) {
        const key = field.dataset.filter, value = String(wanted[key] ?? "");
        const offered = !field.options || [...field.options].some((o) => o.value === value);
        chosen[key] = field.value = offered ? value : field.options[0].value;
      }
      changed();
    }
    return { bar, matches, go, chosen };
  }

  return { rows, make };
})();
