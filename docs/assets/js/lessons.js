// @ts-check
/**
 * The list of cards: search, filters and order, which stand in the address; the reader's progress;
 * what is due for review; export, import and forget. The rows are in the page already.
 *
 * @typedef {{row: HTMLElement, state: string, entries: [string, import("./progress.js").Entry | undefined][]}} Known
 */

import { all, forget, isDue, read, take } from "./progress.js";

/** @param {HTMLElement} row @returns {Known} the reader's progress on a card */
function know(row) {
  const questions = Object.entries(JSON.parse(row.dataset.questions ?? "{}"));
  const entries = /** @type {Known["entries"]} */ (
    questions.map(([id, hash]) => [id, read(row.dataset.slug ?? "", id, String(hash))])
  );
  const answered = entries.filter(([, entry]) => entry).length;
  const due = entries.filter(([, entry]) => isDue(entry)).length;
  let state = "new";
  if (due) state = "due";
  else if (answered) state = answered === entries.length ? "done" : "begun";
  const said = answered ? `${answered} of ${entries.length} answered` : "";
  const place = row.querySelector(".tbt-progress");
  if (place) place.textContent = [said && ` · ${said}`, due && `, ${due} to review`].filter(Boolean).join("");
  return { row, state, entries };
}

/** @param {HTMLFormElement} form @param {Known[]} cards */
function apply(form, cards) {
  const wanted = Object.fromEntries(
    [...new FormData(form)].filter(([, value]) => value !== "").map(([key, value]) => [key, String(value)]),
  );
  const words = (wanted.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const { row, state } of cards) {
    const text = row.textContent?.toLowerCase() ?? "";
    const fits =
      words.every((word) => text.includes(word)) &&
      ["role", "level", "kind"].every((key) => !wanted[key] || row.dataset[key] === wanted[key]) &&
      (!wanted.state || wanted.state === state);
    row.hidden = !fits;
    shown += Number(fits);
  }
  const by = wanted.sort ?? "";
  const value = (/** @type {Known} */ card) =>
    by === "minutes" ? Number(card.row.dataset.minutes) : by === "level" ? Number(card.row.dataset.level?.slice(1)) : 0;
  const sorted = [...cards].sort((a, b) => value(a) - value(b)); // equal ones stay in their order
  cards[0]?.row.parentElement?.append(...sorted.map((card) => card.row));
  const { q, state, sort, ...kept } = wanted;
  const onward = new URLSearchParams(kept).toString();
  for (const { row } of cards) {
    const link = /** @type {HTMLAnchorElement} */ (row.querySelector("a"));
    link.search = onward; // so that a card's neighbours are those of the filter
  }
  const count = document.querySelector(".tbt-count");
  if (count) count.textContent = `${shown} of ${cards.length} cards shown.`;
  return new URLSearchParams(wanted).toString();
}

/** @param {HTMLFormElement} form sets it to what the address says */
function fill(form) {
  const asked = new URLSearchParams(location.search);
  for (const field of /** @type {Iterable<HTMLInputElement>} */ (form.elements)) {
    field.value = asked.get(field.name) ?? "";
    if (field instanceof HTMLSelectElement && field.selectedIndex < 0) field.selectedIndex = 0;
  }
}

/** @param {Known[]} cards */
function review(cards) {
  const list = document.querySelector(".tbt-due");
  const items = cards.flatMap(({ row, entries }) =>
    entries
      .filter(([, entry]) => isDue(entry))
      .map(([id]) => {
        const item = document.createElement("li");
        const link = document.createElement("a");
        link.href = `${row.dataset.slug}/#${id}`;
        link.textContent = `${row.querySelector("h2 a")?.textContent}: question ${
          entries.findIndex(([each]) => each === id) + 1
        }`;
        item.append(link);
        return item;
      }),
  );
  if (!items.length) {
    const none = document.createElement("li");
    none.textContent = "Nothing is due today.";
    items.push(none);
  }
  list?.replaceChildren(...items);
}

/** @param {string} said */
function say(said) {
  const place = document.querySelector(".tbt-said-so");
  if (place) place.textContent = said;
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(all(), null, 1)], { type: "application/json" }));
  link.download = "token-by-token-progress.json";
  link.click();
  URL.revokeObjectURL(link.href);
  say("Exported.");
}

/** Wakes the list of the page that is now shown. */
function start() {
  const form = /** @type {HTMLFormElement | null} */ (document.querySelector(".tbt-filter"));
  if (!form || form.classList.contains("tbt-awake")) return;
  form.classList.add("tbt-awake");
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".tbt-cards > li")]);
  let cards = rows.map(know);
  const again = () => {
    cards = rows.map(know);
    apply(form, cards);
    review(cards);
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    const asked = apply(form, cards);
    history.replaceState(null, "", asked ? `?${asked}` : location.pathname);
  });
  window.addEventListener("popstate", () => {
    fill(form);
    apply(form, cards);
  });
  window.addEventListener("pageshow", again);
  document.querySelector("[data-do=export]")?.addEventListener("click", save);
  document.querySelector("[data-do=forget]")?.addEventListener("click", () => {
    if (!window.confirm("Forget all answers that this browser keeps?")) return;
    forget();
    again();
    say("Forgotten.");
  });
  const file = /** @type {HTMLInputElement | null} */ (document.querySelector(".tbt-file input"));
  file?.addEventListener("change", async () => {
    try {
      say(`Imported: ${take((await file.files?.[0].text()) ?? "")} answers.`);
      again();
    } catch {
      say("That file holds no progress of this site.");
    }
    file.value = "";
  });
  fill(form);
  again();
}

const pages = /** @type {any} */ (window).document$;
if (pages) pages.subscribe(start);
else start();
