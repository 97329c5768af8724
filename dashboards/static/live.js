// Polling: pauses while the tab is hidden, and shows a banner when an answer fails.
"use strict";

const stale = () => document.getElementById("stale");

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden) event.preventDefault();
});

for (const failure of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  document.addEventListener(failure, () => {
    if (stale()) stale().hidden = false;
  });
}

document.addEventListener("htmx:afterSwap", () => {
  if (stale()) stale().hidden = true;
});
