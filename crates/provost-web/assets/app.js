// Refreshes what a page shows when the server says that something changed. Pages work without it.
"use strict";

(() => {
  const typing = () => {
    const focused = document.activeElement;
    return focused && focused.matches("input, textarea, select, summary, button");
  };

  const refresh = async () => {
    if (document.hidden || typing()) return;
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
  });

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
