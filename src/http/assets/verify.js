"use strict";
// Computes the SHA-256 of a file in the browser and looks it up. The file is not sent.
(() => {
  const form = document.getElementById("file-form");
  const input = document.getElementById("file");
  const state = document.getElementById("file-state");
  if (!form || !input || !state) return;
  form.hidden = false;

  const check = async (file) => {
    state.textContent = state.dataset.reading;
    try {
      const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer());
      const hex = Array.from(new Uint8Array(digest), (b) => b.toString(16).padStart(2, "0")).join("");
      location.assign("/verify?sha256=" + hex);
    } catch {
      state.textContent = state.dataset.failed;
    }
  };

  input.addEventListener("change", () => input.files.length && check(input.files[0]));
  addEventListener("dragover", (event) => {
    event.preventDefault();
    form.classList.add("over");
  });
  addEventListener("dragleave", () => form.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    if (event.dataTransfer.files.length) check(event.dataTransfer.files[0]);
  });
})();
