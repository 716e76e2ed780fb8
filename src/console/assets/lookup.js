/* Looks a file up by its digest, which the browser computes. The file is not sent anywhere. Without this script, or
 * without the browser's functions for it, the digest is entered as text. */
"use strict";

for (const lookup of document.querySelectorAll("[data-lookup]")) {
  if (!globalThis.crypto?.subtle)
    break;
  const file = lookup.querySelector("input[type=file]"), algorithm = lookup.querySelector("select");
  const said = lookup.querySelector("[role=status]"), form = lookup.closest("form");
  const field = form.elements.namedItem("hash");

  const look = async () => {
    const [chosen] = file.files, name = algorithm.value;
    if (!chosen)
      return;
    said.textContent = lookup.dataset.working;
    try {
      const digest = new Uint8Array(await crypto.subtle.digest(name, await chosen.arrayBuffer()));
      if (chosen !== file.files[0] || name !== algorithm.value)
        return; // another choice was made meanwhile
      field.value = Array.from(digest, byte => byte.toString(16).padStart(2, "0")).join("");
      said.textContent = lookup.dataset.ready;
      form.requestSubmit();
    } catch {
      said.textContent = lookup.dataset.failed;
    }
  };
  file.addEventListener("change", look);
  algorithm.addEventListener("change", look);
  lookup.hidden = false;
}
