// @ts-check
/**
 * Moves the small models of the "Try it" parts.
 *
 * A model is <div class="tbt-try"> with a <fieldset disabled> of inputs, each a place among its
 * data-stops, and one element with data-values for each output: its text at every setting, the
 * first input varying slowest. harness/render/try_it.py computes and writes all of it; here it is
 * only looked up.
 */

const BETWEEN = "|";

/** @param {HTMLElement} model shows the answer to what its inputs say */
function show(model) {
  let place = 0;
  for (const input of /** @type {NodeListOf<HTMLInputElement>} */ (
    model.querySelectorAll("[data-stops]")
  )) {
    const stops = (input.dataset.stops ?? "").split(BETWEEN);
    const chosen = Number(input.value);
    place = place * stops.length + chosen;
    if (input.type !== "range") continue;
    input.setAttribute("aria-valuetext", stops[chosen]);
    if (input.nextElementSibling) input.nextElementSibling.textContent = stops[chosen];
  }
  for (const output of /** @type {NodeListOf<HTMLElement>} */ (
    model.querySelectorAll("[data-values]")
  )) {
    const said = (output.dataset.values ?? "").split(BETWEEN)[place];
    if (output.textContent !== said) output.textContent = said;
  }
}

/** Wakes the models of the page that is now shown. */
function start() {
  for (const model of /** @type {NodeListOf<HTMLElement>} */ (
    document.querySelectorAll(".tbt-try")
  )) {
    const inputs = model.querySelector("fieldset");
    if (!inputs?.disabled) continue;
    inputs.disabled = false;
    inputs.addEventListener("input", () => show(model));
    show(model); // a browser may have kept what was set before a reload
  }
}

const pages = /** @type {any} */ (window).document$;
if (pages) pages.subscribe(start);
else start();
