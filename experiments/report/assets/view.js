// Of a served page only: is there a newer one, and one file of what is seen.
"use strict";
(() => {
  const KEPT = "composcope-view", number = Number(location.pathname.split("/")[1]);
  const said = document.getElementById("live"), link = document.getElementById("export");

  // What was shown before the page was written again: the run by its label, and the place.
  composcope.ready.then((index) => {
    const tell = (at) => { link.href = `/export?run=${at}`; };
    composcope.onRun(tell);
    tell(composcope.run.at);
    let before = null;
    try { before = JSON.parse(sessionStorage.getItem(KEPT)); sessionStorage.removeItem(KEPT); } catch { /* nothing kept */ }
    if (!before || !index) return;
    const at = index.runs.findIndex((r) => r.label === before.run);
    if (at >= 0 && at !== composcope.run.at) composcope.showRun(at);
    if (!location.hash) scrollTo({ top: before.top, behavior: "instant" });
  });

  async function look() {
    try {
      const newest = (await (await fetch("/version")).json()).version;
      said.textContent = "live";
      if (newest === number) return;
      const index = await composcope.ready;
      try { sessionStorage.setItem(KEPT, JSON.stringify({ run: index && index.runs[composcope.run.at].label, top: scrollY })); } catch { /* storage can be switched off */ }
      location.replace(`/${newest}/report.html${location.hash}`);
    } catch { said.textContent = "server gone"; }
  }
  setInterval(look, 1000);
})();
