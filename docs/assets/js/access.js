// @ts-check
/** Mends what Material for MkDocs 9.8 leaves out for screen readers. */

/** The search box has the role of a dialog and no name. */
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");

/** A section with an index page names its list by a label that holds an icon alone. */
for (const list of document.querySelectorAll("nav.md-nav[aria-labelledby]")) {
  const label = document.getElementById(list.getAttribute("aria-labelledby") ?? "");
  if (label?.textContent?.trim()) continue;
  const title = list.querySelector(".md-nav__title")?.textContent?.trim();
  list.removeAttribute("aria-labelledby");
  if (title) list.setAttribute("aria-label", title);
}

/** The buttons of a code block come in a <nav> each, made when the block is near the screen. */
function demote() {
  for (const bar of document.querySelectorAll("nav.md-code__nav:not([role])")) {
    bar.setAttribute("role", "none"); // else each is a landmark without a name
  }
}

/** A hand-written table that is wider than the screen scrolls: by the keyboard too. */
function reach() {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    box.setAttribute("tabindex", "0");
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "Table");
  }
}

function mend() {
  demote();
  reach();
}
const article = document.querySelector("article");
if (article) new MutationObserver(mend).observe(article, { childList: true, subtree: true });
mend();
