/* Optional enhancements of the console's pages, which also work without this script. */
"use strict";

const spanish = document.documentElement.lang === "es";

/* Adds the local time after each UTC time. */
const zone = new Intl.DateTimeFormat(document.documentElement.lang, {
  day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short"});
if (new Date().getTimezoneOffset() !== 0) {
  for (const time of document.querySelectorAll("time[datetime*=T]")) {
    const own = document.createElement("span");
    own.className = "zone";
    own.textContent = ` (${zone.format(new Date(time.dateTime))})`;
    time.append(own);
  }
  document.querySelector("[data-zone]")?.removeAttribute("hidden");
}

/* Focuses an error message, so that it is read and seen first. */
document.getElementById("said")?.focus();

/* Asks for confirmation of operations that cannot be undone. */
for (const form of document.querySelectorAll("form[data-confirm]"))
  form.addEventListener("submit", event => {
    if (!confirm(form.dataset.confirm))
      event.preventDefault();
  });

/* Prevents submitting a form twice. */
for (const form of document.querySelectorAll("form[method=post]"))
  form.addEventListener("submit", event => {
    if (form.dataset.sent)
      event.preventDefault();
    else if (!event.defaultPrevented)
      form.dataset.sent = "yes";
  });
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]"))
    delete form.dataset.sent;
});

/* Adds a copy button to digests and programs. */
for (const hash of document.querySelectorAll("code.hash, .program")) {
  if (!navigator.clipboard)
    break;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = spanish ? "Copiar" : "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(hash.textContent);
    button.textContent = spanish ? "Copiado" : "Copied";
  });
  hash.after(button);
}

/* Polls an operation in progress for ten minutes. Longer polling would keep the session from expiring. */
const underWay = document.querySelector("[data-refresh]");
if (underWay) {
  const page = underWay.querySelector("a").href;
  let left = 600 / underWay.dataset.refresh;
  const looking = setInterval(async () => {
    if (document.hidden)
      return;
    try {
      const answer = await fetch(page, {redirect: "error"});
      const now = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-refresh]");
      if (now)
        underWay.querySelector("progress").value = now.querySelector("progress").value;
      else if (answer.ok)
        location.replace(page);
      if (!--left || !answer.ok)
        clearInterval(looking);
    } catch {
      clearInterval(looking);
    }
  }, 1000 * underWay.dataset.refresh);
}
