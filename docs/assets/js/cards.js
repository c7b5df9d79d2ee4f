// @ts-check
/**
 * Makes a lesson card of its questions: commit, then the verdict and the reasons in place.
 *
 * The page holds all of it (harness/render/cards/html.py) and reads well without this script, which
 * hides the answers, grades by the key in the page (grade.js), moves each reason to its option, asks
 * the missed ones again, and keeps the outcome in this browser (progress.js).
 */

import { grade } from "./grade.js";
import { isDue, keep, read } from "./progress.js";
import { addPicture, drawKey } from "./sketch.js";

/** @param {Element} root @param {string} selector @returns {HTMLElement} */
const find = (root, selector) => /** @type {HTMLElement} */ (root.querySelector(selector));

/** One question of the page: its parts, and where the reader stands. */
class Question {
  /** @param {HTMLElement} place @param {Card} card */
  constructor(place, card) {
    this.place = place;
    this.card = card;
    this.form = /** @type {HTMLFormElement} */ (find(place, "form"));
    this.verdict = find(place, ".tbt-verdict");
    this.check = find(place, "[type=submit]");
    this.sure = find(place, ".tbt-sure");
    this.explain = find(place, ".tbt-explain");
    this.rest = /** @type {HTMLElement[]} */ ([
      ...place.querySelectorAll(".tbt-whole, .tbt-rubric, .tbt-sample"),
    ]);
    this.whys = /** @type {HTMLElement[]} */ ([...place.querySelectorAll(".tbt-why")]);
    this.hints = 0;
    this.tries = 0;
    this.finished = false;
    /** @type {boolean | undefined} of the first try */
    this.first = undefined;
    this.lay();
  }

  get id() {
    return this.place.id;
  }

  get stored() {
    return read(this.card.name, this.id, this.place.dataset.hash ?? "");
  }

  /** Takes the answers out of their disclosure, and makes the buttons. */
  lay() {
    const after = document.createElement("div");
    after.className = "tbt-after";
    for (const why of this.whys) {
      const option = why.dataset.option;
      const home = option && this.place.querySelector(`.tbt-option[data-option="${option}"]`);
      (home || after).append(why);
    }
    after.append(...this.rest, this.explain);
    this.form.after(after);
    find(this.place, ".tbt-key").remove();
    if (this.place.dataset.type === "sketch") addPicture(this.place);
    const buttons = find(this.place, ".tbt-buttons");
    buttons.hidden = false;
    this.giveUp = button("Give up and see", () => this.finish(false));
    this.hint = button("A hint", () => this.showHint());
    buttons.append(this.giveUp, this.hint);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.finished) this.card.next(this);
      else this.commit();
    });
    this.form.addEventListener("input", () => {
      if (this.sure) this.sure.hidden = false;
    });
    this.begin();
  }

  /** As at the first sight of it; hints that were seen stay. */
  begin() {
    this.finished = false;
    this.tries = 0;
    this.first = undefined;
    this.form.reset();
    this.verdict.textContent = "";
    this.check.textContent = "Check";
    for (const part of [...this.whys, ...this.rest, this.explain]) part.hidden = true;
    for (const tick of this.place.querySelectorAll(".tbt-rubric input")) {
      /** @type {HTMLInputElement} */ (tick).checked = false;
    }
    if (this.sure) this.sure.hidden = true;
    if (this.giveUp) this.giveUp.hidden = true;
    const hints = find(this.place, ".tbt-hints");
    if (this.hint) this.hint.hidden = !hints;
    if (hints && !this.hints) hints.hidden = true;
    this.place.classList.remove("tbt-is-right", "tbt-is-wrong");
    this.lock(false);
  }

  showHint() {
    const hints = /** @type {HTMLDetailsElement} */ (find(this.place, ".tbt-hints"));
    const items = [...hints.querySelectorAll("li")];
    this.hints = Math.min(this.hints + 1, items.length);
    hints.hidden = false;
    hints.open = true;
    items.forEach((item, i) => (item.hidden = i >= this.hints));
    if (this.hints === items.length && this.hint) {
      if (document.activeElement === this.hint) this.check.focus();
      this.hint.hidden = true;
    }
  }

  commit() {
    const result = grade(this.place, this.form);
    const sure = /** @type {HTMLInputElement | null} */ (this.sure?.querySelector("input:checked"));
    if (!result.ready && this.sure && !sure && this.first === undefined) {
      this.sure.hidden = false;
      result.ready = "Say how sure you are, then check.";
    }
    if (result.ready) {
      this.verdict.textContent = result.ready;
      return;
    }
    if (this.place.dataset.type === "text") {
      this.finish(undefined);
      return;
    }
    this.tries += 1;
    this.first ??= result.right;
    if (result.right) {
      this.finish(true);
      return;
    }
    this.place.classList.add("tbt-is-wrong");
    let said = this.place.dataset.type === "multi" ? "Not all of it." : "Not so.";
    if (this.place.dataset.type === "sketch") said = `${result.value} of the points are near.`;
    this.verdict.textContent = `✗ ${said} Change your answer, or give up and see.`;
    this.showWhys(result);
    if (this.giveUp) this.giveUp.hidden = false;
  }

  /** The reasons of what was picked, and of nothing else: the key stays hidden. @param {any} result */
  showWhys(result) {
    const free = this.whys.find((why) => why.dataset.option === "-1");
    let found = false;
    for (const why of this.whys) {
      const { option, low, high } = why.dataset;
      why.hidden = option
        ? !result.picked.includes(option)
        : !(result.value >= Number(low) && result.value <= Number(high));
      found ||= !why.hidden;
    }
    if (free && result.picked.length && !found) free.hidden = false;
  }

  /** @param {boolean | undefined} right  undefined: the reader's own to say, by the rubric */
  finish(right) {
    this.finished = true;
    this.first ??= right;
    this.place.classList.toggle("tbt-is-right", right === true);
    this.place.classList.toggle("tbt-is-wrong", right === false);
    for (const part of [...this.rest, this.explain]) part.hidden = false;
    const named = this.place.dataset.type !== "number";
    for (const why of this.whys) why.hidden &&= !named;
    if (this.place.dataset.type === "sketch") drawKey(this.place);
    this.check.textContent = this.card.isLast(this) ? "To the end" : "Next question";
    for (const each of [this.giveUp, this.hint]) {
      if (!each) continue;
      if (document.activeElement === each) this.check.focus();
      each.hidden = true;
    }
    this.lock(true);
    if (right === undefined) this.askRubric();
    else {
      this.verdict.textContent = right ? this.praise() : "✗ Here is the answer.";
      this.keep();
    }
  }

  praise() {
    const sure = this.confidence;
    if (this.tries > 1) return "✓ Right, after another try.";
    if (sure === 0) return "✓ Right, though you guessed: read why.";
    return "✓ Right.";
  }

  /** The reader compares and ticks; enough ticks make it good. */
  askRubric() {
    const need = Number(this.place.dataset.need);
    const ticks = () => this.place.querySelectorAll(".tbt-rubric input:checked").length;
    const tell = () => {
      this.first = ticks() >= need;
      this.verdict.textContent = `You ticked ${ticks()}; ${need} make a good answer.`;
      this.keep();
    };
    find(this.place, ".tbt-rubric").oninput = tell;
    this.verdict.textContent = `Compare with the answers below, and tick what yours holds: ${need} make it good.`;
  }

  get confidence() {
    const sure = /** @type {HTMLInputElement | null} */ (this.sure?.querySelector("input:checked"));
    return sure ? Number(sure.value) : -1;
  }

  keep() {
    const { hash = "" } = this.place.dataset;
    const answer = { hash, right: this.first === true, sure: this.confidence, hints: this.hints };
    keep(this.card.name, this.id, answer);
    this.card.tell();
  }

  /** Inputs keep the focus and the reader's answer, and take no other. @param {boolean} on */
  lock(on) {
    const active = document.activeElement;
    if (on && active?.closest("fieldset, textarea") && this.form.contains(active)) this.check.focus();
    for (const field of this.form.querySelectorAll("fieldset input, select, textarea")) {
      /** @type {HTMLInputElement} */ (field).disabled = on;
    }
  }

  focus() {
    const title = find(this.place, "h2");
    title.tabIndex = -1;
    title.focus();
  }
}

/** The card of the page. */
class Card {
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

/** @param {string} said @param {() => void} act */
function button(said, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = said;
  made.addEventListener("click", act);
  return made;
}

/**
 * Within a filter of the list (?level=L3&kind=Debug), the neighbours are those of the filter.
 * @param {string} name
 */
async function addNeighbours(name) {
  const wanted = new URLSearchParams(location.search);
  if (![...wanted.keys()].length) return;
  const answer = await fetch(new URL("../data/lessons.json", import.meta.url));
  if (!answer.ok) return;
  /** @type {string[][]} */
  const all = await answer.json();
  const fits = all.filter(
    ([slug, , level, kind, role]) =>
      slug === name ||
      Object.entries({ level, kind, role }).every(([key, value]) => [null, "", value].includes(wanted.get(key))),
  );
  const here = fits.findIndex(([slug]) => slug === name);
  for (const [rel, word, found] of /** @type {[string, string, string[] | undefined][]} */ ([
    ["prev", "Previous", fits[here - 1]],
    ["next", "Next", fits[here + 1]],
  ])) {
    const old = find(document.body, `.tbt-around [data-rel="${rel}"]`);
    const made = document.createElement(found ? "a" : "span");
    made.dataset.rel = rel;
    if (found && made instanceof HTMLAnchorElement) {
      made.href = `../${found[0]}/${location.search}`;
      made.rel = rel;
      made.textContent = `${word}: ${found[1]}`;
    }
    old.replaceWith(made);
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
