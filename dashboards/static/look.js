// Changes the look where the page stands, so that nothing typed is lost; without it the form is sent.
"use strict";

document.addEventListener("submit", async (event) => {
  const { target: form, submitter: button } = event;
  if (!form.matches(".themes") || !button) return;
  event.preventDefault();
  const body = new URLSearchParams({ theme: button.value });
  await fetch(form.action, { method: "POST", body, redirect: "manual" }).catch(() => {});
  document.documentElement.dataset.theme = button.value;
  for (const each of form.elements.theme) each.setAttribute("aria-pressed", each === button);
});
