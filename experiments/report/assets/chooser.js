// Which single case a view shows: the models and cases that the runs kept something of.
"use strict";
composcope.chooser = (() => {
  const { el, need } = composcope;

  // make(box, wanted(case) -> boolean, show(file, entry, run)): two lists, and what is said about what was kept.
  function make(box, probe, wanted, show) {
    // Cases with a sweep over positions come first where sweeps are looked at.
    const swept = (c) => probe === "patching" && c.sweep;
    return need("pictures").then((index) => {
      const runs = index.runs.map((run, i) => ({ ...run, number: i, cases: run.cases.filter(wanted).sort((a, b) => swept(b) - swept(a)) })).filter((r) => r.cases.length);
      if (!runs.length) {
        box.replaceChildren(el("p", { class: "absent" }, "No single cases were kept for this view. `composcope probe RUN --case-details 4` keeps them."));
        return null;
      }
      const state = { run: runs[0], at: 0 };
      const models = el("select", { "data-view-run": "", onchange: () => choose(runs[Number(models.value)], 0) }, ...runs.map((r, i) => el("option", { value: i }, r.label)));
      const cases = el("select", { "data-view-case": "", onchange: () => choose(state.run, Number(cases.value)) });
      const note = el("p", { class: "fine", dir: "auto" });
      const body = el("div", { class: "view" });
      const bar = el("div", { class: "controls" }, runs.length > 1 ? el("label", {}, "model", models) : null, el("label", {}, "case", cases));
      box.replaceChildren(bar, body, note);
      function choose(run, at) {
        state.run = run;
        state.at = at;
        models.value = String(runs.indexOf(run));
        cases.replaceChildren(...run.cases.map((c, i) => el("option", { value: i, selected: i === at }, `${c.case} (${c.group || "?"}${swept(c) ? ", token by token" : ""})`)));
        cases.value = String(at);
        note.textContent = [run.notes[probe], ...index.notes].filter(Boolean).join(" ");
        return open();
      }
      function open() {
        const entry = state.run.cases[state.at], asked = entry.file;
        return need(entry.file).then((file) => { if (asked === state.run.cases[state.at].file) show(body, file, state.run); },
          (error) => body.replaceChildren(el("p", { class: "absent" }, error.message)));
      }
      choose(runs[0], 0);
      return {
        // Switch to a model by its label; where nothing of it was kept, say so and stay.
        go(label) {
          const run = runs.find((r) => r.label === label);
          const shown = choose(run || state.run, run && run !== state.run ? 0 : state.at);
          if (!run) note.textContent = `No single cases of “${label}” were kept: the tokens above are those of “${state.run.label}”. ${note.textContent}`;
          return shown;
        },
      };
    }, (error) => box.replaceChildren(el("p", { class: "absent" }, error.message)));
  }

  return { make };
})();
