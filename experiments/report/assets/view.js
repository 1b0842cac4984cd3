// For a served page only: check for a newer page, and export the shown run as one file.
"use strict";
(() => {
  const KEPT = "composcope-view", number = Number(location.pathname.split("/")[1]);
  const said = document.getElementById("live"), link = document.getElementById("export");

  // Restore the run, the unfolded parts and the scroll position that were there before the page was written again.
  composcope.ready.then((index) => {
    const tell = (at) => { link.href = `/export?run=${at}`; };
    composcope.onRun(tell);
    tell(composcope.run.at);
    let before = null;
    try { before = JSON.parse(sessionStorage.getItem(KEPT)); sessionStorage.removeItem(KEPT); } catch { /* nothing kept */ }
    if (!before || !index) return;
    const at = index.runs.findIndex((r) => r.label === before.run);
    before.views.forEach((view) => composcope.dossier.opened.add(view));
    if (at >= 0 && at !== composcope.run.at) composcope.showRun(at);
    before.open.map((id) => document.getElementById(id)).filter(Boolean).forEach(composcope.unfold);
    if (!location.hash) scrollTo({ top: before.top, behavior: "instant" });
  });

  async function look() {
    try {
      const { version: newest, exported } = await (await fetch("/version")).json();
      said.textContent = exported === null ? "live" : `exporting, ${Math.round(100 * exported)} %`;
      if (newest === number) return;
      const index = await composcope.ready;
      try { sessionStorage.setItem(KEPT, JSON.stringify({ run: index && index.runs[composcope.run.at].label, open: [...document.querySelectorAll(".whole[open]")].map((part) => part.parentNode.id), views: [...composcope.dossier.opened], top: scrollY })); } catch { /* storage can be switched off */ }
      location.replace(`/${newest}/report.html${location.hash}`);
    } catch { said.textContent = "server gone"; }
  }
  setInterval(look, 1000);
})();
