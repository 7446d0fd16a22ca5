// Refreshes what a page shows when the server says that something changed. Pages work without it.
"use strict";

(() => {
  const typing = () => {
    const focused = document.activeElement;
    return focused && focused.matches("input, textarea, select, summary, button");
  };

  const refresh = async () => {
    if (document.hidden || typing()) return;
    keep();
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const open = [...document.querySelectorAll("details[open][id]")].map((it) => it.id);
    for (const id of ["main", "inbox-link"]) {
      const [now, then] = [document.getElementById(id), next.getElementById(id)];
      if (now && then && now.innerHTML !== then.innerHTML && !typing()) now.replaceWith(then);
    }
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    document.title = next.title;
  };

  // The number of a line of a change puts its place into the words of the next attempt.
  document.addEventListener("click", (event) => {
    const line = event.target.closest("a[data-at]");
    const words = document.querySelector("#words textarea");
    if (!line || !words) return;
    event.preventDefault();
    const gap = words.value && !words.value.endsWith("\n") ? "\n" : "";
    words.value += `${gap}${line.dataset.at}: `;
    words.focus();
    keepSoon();
  });

  // Words that are not sent yet are kept by the server, so that leaving the page loses none.
  let kept = document.querySelector("textarea[data-keep]")?.value ?? "";
  let timer = 0;
  const keep = () => {
    const words = document.querySelector("textarea[data-keep]");
    if (!words || words.value === kept) return;
    kept = words.value;
    const body = new URLSearchParams(new FormData(words.form));
    fetch(words.dataset.keep, { method: "POST", body, credentials: "same-origin", keepalive: true })
      .catch(() => { kept = null; });
  };
  const keepSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(keep, 400);
  };
  document.addEventListener("input", (event) => {
    if (event.target.matches("textarea[data-keep]")) keepSoon();
  });
  addEventListener("pagehide", keep);

  let waiting = false;
  const soon = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      refresh().catch(() => {});
    }, 50);
  };

  // A stream that breaks is opened again by the browser; what was missed is loaded then.
  const stream = new EventSource("/live");
  let opened = false;
  stream.addEventListener("open", () => {
    if (opened) soon();
    opened = true;
  });
  stream.addEventListener("changed", soon);
  document.addEventListener("visibilitychange", soon);
  document.addEventListener("focusout", soon);
})();
