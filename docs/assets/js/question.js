// @ts-check
/**
 * One question of a card: commit, then the verdict and the reasons in place; hints, another try, or
 * give up and see. What the whole card does with its questions is in cards.js.
 */

import { grade } from "./grade.js";
import { keep, read } from "./progress.js";
import { addPicture, drawKey } from "./sketch.js";

/** @typedef {import("./cards.js").Card} Card */

/** @param {Element} root @param {string} selector @returns {HTMLElement} */
export const find = (root, selector) => /** @type {HTMLElement} */ (root.querySelector(selector));

/** One question of the page: its parts, and where the reader stands. */
export class Question {
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

/** @param {string} said @param {() => void} act */
export function button(said, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = said;
  made.addEventListener("click", act);
  return made;
}
