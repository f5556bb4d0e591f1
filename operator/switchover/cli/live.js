"use strict";
// Reads this page again and again. The focus stays, and the page stays where it was scrolled to.
const pause = Number(document.currentScript.dataset.seconds) * 1000;
let read = new Date();

function say(text) {
  let note = document.getElementById("live");
  if (!note) {
    note = document.createElement("p");
    note.id = "live";
    note.className = "note";
    note.setAttribute("role", "status");
    document.body.prepend(note);
  }
  const line = `${text} What stands here was read at ${read.toISOString().slice(11, 19)} UTC.`;
  if (note.textContent !== line) note.textContent = line;
}

function show(page) {
  const focused = document.activeElement?.getAttribute("href");
  document.title = page.title;
  document.body.replaceChildren(...page.body.childNodes);
  if (focused) document.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({preventScroll: true});
  read = new Date();
}

async function again() {
  try {
    const answer = await fetch(location.href, {cache: "no-store"});
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok && !document.querySelector("main.trouble")) {
      say([...page.querySelectorAll("main p")].map((line) => line.textContent).join(" "));
    } else if (!getSelection().isCollapsed) {
      say("Not refreshed while text is selected.");
    } else {
      show(page);
    }
  } catch {
    say("switchover dashboard does not answer any more.");
  }
  setTimeout(again, pause);
}

setTimeout(again, pause);
