// Changes the theme without a reload, so that no input is lost; without it the form is sent.
"use strict";

document.addEventListener("submit", async (event) => {
  const { target: form, submitter: button } = event;
  if (!form.matches(".themes") || !button) return;
  event.preventDefault();
  const body = new URLSearchParams({ theme: button.value });
  await fetch(form.action, { method: "POST", body, redirect: "manual" }).catch(() => {});
  document.documentElement.dataset.theme = button.value;
  for (const choice of form.elements.theme) choice.setAttribute("aria-pressed", choice === button);
});
