// One opened case: its question, its scaffold ladder, and every ask with its response and the reason for its grade.
"use strict";
composcope.case = (() => {
  const { el, text } = composcope;
  const OUTCOMES = ["correct", "incorrect", "abstained", "invalid"];

  // chunk.texts holds every text once: a number, or [number, full length] where it was cut.
  const reader = (chunk) => (put) => (put === null || put === undefined ? null : Array.isArray(put) ? { text: chunk.texts[put[0]], length: put[1] } : { text: chunk.texts[put], length: null });

  function read(chunk, name) {
    const found = new Map(Object.entries(chunk.cases)).get(name), put = reader(chunk);
    const told = (n) => Object.fromEntries(chunk.fields.map((field, i) => [field, chunk.asked[n][i] ?? null]));
    const asks = found.asks.map(([role, outcome, repeat, n]) => ({ role, outcome: OUTCOMES[outcome], repeat, ...told(n) }));
    return { ...found, question: put(found.question), gold: put(found.gold), cluster: put(found.cluster), asks, put };
  }

  // found: the result of read; about: the case's row in the list.
  function draw(found, about) {
    const facts = [["question", found.question], ["right answer", found.gold], ["cluster", found.cluster],
      ["gates", about.gate ? { text: about.gate } : null], ["skills", about.skills.length ? { text: about.skills.join(" → ") } : null],
      ["guess is right in", found.chance === null ? null : { text: `${(100 * found.chance).toPrecision(3)} %` }]];
    const asks = [...found.asks].sort((a, b) => (b.role === "whole") - (a.role === "whole"));
    return [el("dl", { class: "said" }, ...pairs(facts)), ladder(found, about.k), ...asks.map((a) => ask(a, found.put))].filter(Boolean);
  }

  // The rungs that were asked: with how many steps revealed is the whole solved?
  function ladder(found, k) {
    const rung = (role) => found.asks.find((a) => a.role === role);
    const levels = found.asks.map((a) => /^scaffold:(\d+)$/.exec(a.role)).filter(Boolean).map((m) => Number(m[1]));
    if (!levels.length && k === null) return null;
    const top = Math.max(found.parts.length - 1, ...levels);
    const row = (name, a) => el("li", {}, el("span", { class: `badge ${a ? a.outcome : ""}` }, a ? a.outcome : "not asked"), el("span", {}, name), el("span", { class: "muted", dir: "auto" }, a && a.read !== null ? found.put(a.read).text : ""));
    const rows = [row("0: the whole, nothing revealed", rung("whole"))];
    for (let j = 1; j <= top; j++) {
      rows.push(row(`${j}: step${j > 1 ? "s 1 to" : ""} ${j} of ${top + 1} revealed`, rung(`scaffold:${j}`)));
      if (rung(`placeholder:${j}`)) rows.push(row(`${j}: the same with the values blanked`, rung(`placeholder:${j}`)));
    }
    const said = k === null ? "k is open: a level could not be judged or was not asked." : k === 0 ? "k = 0: solved without help." : k < 0 ? "Intractable: no level solves it." : `k = ${k}: solved once ${k} step${k > 1 ? "s are" : " is"} revealed.`;
    return el("div", { class: "ladder" }, el("h5", {}, "Scaffold ladder"), el("ol", {}, ...rows), el("p", { class: "fine" }, said));
  }

  function pairs(facts) {
    return facts.filter(([, v]) => v).flatMap(([key, v]) => [el("dt", {}, key), el("dd", {}, v instanceof Node ? v : text(v.text), v instanceof Node ? null : cut(v))]);
  }

  const cut = (v) => (v.length ? el("p", { class: "cut" }, `first ${v.text.length.toLocaleString("en")} of ${v.length.toLocaleString("en")} characters; the run folder has the rest`) : null);

  // The prompt inside what the chat template put around it, as the model was given it.
  function prompt(a, read) {
    const own = read(a.prompt);
    if (a.sent !== null) return el("div", {}, text(read(a.sent).text, { class: "text sent" }), cut(read(a.sent)));
    if (a.before === null || own === null) return own ? el("div", {}, text(own.text), cut(own)) : null;
    const around = (put) => el("span", { class: "around", title: "from the chat template" }, read(put).text);
    return el("div", {}, el("div", { class: "text sent", dir: "auto" }, around(a.before), el("span", {}, own.text), around(a.after)), cut(own));
  }

  // The reason for a grade: how the answer was matched, or what was wrong with it.
  function why(a, read) {
    const plain = a.outcome === "incorrect" && a.reason === null ? "the extracted answer is not the right one" : null;
    return [a.match ? `matched: ${a.match}` : null, a.reason === null ? plain : `because: ${read(a.reason).text}`,
      a.finish && a.finish !== "stop" ? `stopped by: ${a.finish}` : null].filter(Boolean).join(" · ");
  }

  function ask(a, read) {
    const count = (n) => (n === null ? "" : ` (${n} token${n === 1 ? "" : "s"})`);
    const because = why(a, read);
    const raw = a.before === null && a.sent === null && a.prompting === "chat" ? " before the template" : "";
    return el("div", { class: "ask", "data-role": a.role },
      el("header", {}, el("b", { dir: "auto" }, a.role), a.repeat ? el("span", { class: "muted" }, `repeat ${a.repeat}`) : null, el("span", { class: `badge ${a.outcome}` }, a.outcome),
        el("span", { class: "muted", dir: "auto" }, because), el("span", { class: "muted", dir: "auto" }, [a.kind, a.format, a.prompting].filter(Boolean).join(" · "))),
      el("dl", { class: "said" }, ...pairs([[`prompt${raw}${count(a.given)}`, prompt(a, read)], [`response${count(a.said)}`, read(a.response)], ["read as", read(a.read)], ["right", read(a.gold)], ["error", read(a.error)]])));
  }

  return { draw, read, pairs, prompt, why };
})();
