/* Passkeys: forms that the browser's authenticator fills in. They are hidden until support is detected. */
"use strict";

{
  const toBytes = text =>
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), one => one.charCodeAt(0));
  const toText = bytes => btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const keys = ids => ids.map(id => ({type: "public-key", id: toBytes(id)}));

  const ceremonies = {
    async create(asked) {
      const {response} = await navigator.credentials.create({publicKey: {
        challenge: toBytes(asked.challenge),
        rp: {id: asked.party, name: asked.service},
        user: {id: toBytes(asked.user), name: asked.email, displayName: asked.email},
        pubKeyCredParams: [-7, -8].map(alg => ({type: "public-key", alg})),
        excludeCredentials: keys(asked.known),
        authenticatorSelection: {residentKey: "required", requireResidentKey: true, userVerification: "required"}}});
      return {client_data: response.clientDataJSON, authenticator_data: response.getAuthenticatorData()};
    },

    async get(asked) {
      const {rawId, response} = await navigator.credentials.get({publicKey: {
        challenge: toBytes(asked.challenge),
        rpId: asked.party,
        allowCredentials: keys(asked.known),
        userVerification: "required"}});
      return {credential: rawId, client_data: response.clientDataJSON, authenticator_data: response.authenticatorData,
              signature: response.signature, user: response.userHandle ?? new ArrayBuffer()};
    }};

  /* A refusal is shown in the response to the form. */
  const fillIn = async form => {
    const ceremony = form.dataset.passkey;
    const answer = await fetch("/console/passkey/challenge", {
      method: "POST", body: new URLSearchParams({token: form.elements.token.value, ceremony})});
    if (!answer.ok)
      return;
    for (const [name, bytes] of Object.entries(await ceremonies[ceremony](await answer.json()))) {
      const field = document.createElement("input");
      Object.assign(field, {type: "hidden", name, value: toText(bytes)});
      form.append(field);
    }
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    if (!window.PublicKeyCredential || location.origin !== form.dataset.origin)
      continue;
    const button = form.querySelector("button"), failed = form.querySelector("[data-failed]");
    form.hidden = false;
    form.nextElementSibling.hidden = true;
    form.addEventListener("submit", async event => {
      event.preventDefault();
      button.disabled = true;
      failed.hidden = true;
      try {
        await fillIn(form);
        form.submit();
      } catch {
        button.disabled = false;
        failed.hidden = false;
        failed.focus();
      }
    }, {capture: true});
  }
}
