// @ts-check
/**
 * Makes a lesson card of its questions.
 *
 * The page holds all of it (harness/render/cards/html.py) and reads well without this script, which
 * hides the answers, grades by the key in the page (grade.js), moves each reason to its option
 * (question.js), asks the missed ones again, and keeps the outcome in this browser (progress.js).
 */

import { addNeighbours } from "./neighbours.js";
import { isDue } from "./progress.js";
import { button, find, Question } from "./question.js";

/** The card of the page. */
export class Card {
  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
    this.name = place.dataset.card ?? "";
    this.end = find(place, ".tbt-end");
    // Material turns pages at n and p, and takes f, s and / for the search.
    place.addEventListener("keydown", (event) => event.stopPropagation());
    this.questions = /** @type {HTMLElement[]} */ ([...place.querySelectorAll(".tbt-question")]).map(
      (each) => new Question(each, this),
    );
    this.unfold(true);
    this.tell();
    window.addEventListener("hashchange", () => this.unfold(true));
    addNeighbours(this.name);
  }

  /**
   * Shows the questions up to the first that is open, and those before the one in the address.
   * @param {boolean} jump  whether to go to that one
   */
  unfold(jump) {
    const wanted = this.questions.findIndex((each) => each.id === location.hash.slice(1));
    let open = true;
    this.questions.forEach((question, i) => {
      question.place.hidden = !open && i > wanted;
      const known = question.stored && !isDue(question.stored);
      open &&= question.finished || Boolean(known);
    });
    this.end.hidden = !open;
    const numbers = find(this.place, ".tbt-numbers");
    if (numbers) numbers.hidden = !open;
    if (jump && wanted >= 0) this.questions[wanted].place.scrollIntoView();
  }

  /** @param {Question} question */
  isLast(question) {
    return this.questions.at(-1) === question;
  }

  /** @param {Question} question */
  next(question) {
    this.unfold(false);
    const open = this.questions.slice(this.questions.indexOf(question) + 1);
    const following = open.find((each) => !each.finished && !each.place.hidden) ?? open[0];
    if (following && !following.place.hidden && !find(this.place, ".tbt-again").contains(question.place)) {
      following.focus();
    } else {
      this.end.hidden = false;
      const title = find(this.end, "h2");
      title.tabIndex = -1;
      title.focus();
    }
    this.tell();
  }

  /** What came of it, once there is something: at the end, with the missed ones to ask again. */
  tell() {
    const done = this.questions.filter((each) => each.finished);
    const right = done.filter((each) => each.first);
    const certain = done.filter((each) => each.confidence === 2);
    const lines = done.length ? [`Right at the first try: ${right.length} of ${done.length}.`] : [];
    if (certain.length) {
      lines.push(`You were certain ${certain.length} times, and right in ${certain.filter((each) => each.first).length}.`);
    }
    find(this.end, ".tbt-tally").textContent = lines.join(" ");
    const missed = done.filter((each) => !each.first);
    const again = find(this.end, ".tbt-again");
    again.querySelector(":scope > button")?.remove();
    if (missed.length && done.length === this.questions.length) {
      again.prepend(button(`Answer the ${missed.length} missed again`, () => this.again(missed)));
    }
  }

  /** @param {Question[]} missed */
  again(missed) {
    const place = find(this.end, ".tbt-again");
    for (const question of missed) {
      question.begin();
      place.append(question.place);
    }
    this.tell();
    missed[0].focus();
  }
}

/** Wakes the card of the page that is now shown. */
function start() {
  const place = /** @type {HTMLElement | null} */ (document.querySelector(".tbt-card"));
  if (!place || place.classList.contains("tbt-awake")) return;
  place.classList.add("tbt-awake");
  new Card(place);
}

const pages = /** @type {any} */ (window).document$;
if (pages) pages.subscribe(start);
else start();
