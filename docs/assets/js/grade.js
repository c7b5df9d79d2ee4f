// @ts-check
/**
 * Compares an answer with the key that harness/render/cards/key.py put into the page. Units and
 * bands are computed there; here a number is read, looked up and compared, and nothing else.
 */

/**
 * A number as people write it: 1.2k, 3.5 GB, 2e6, 1,200, 1 200 tokens. A comma before three digits
 * parts thousands, any other is a decimal point.
 * @param {string} text
 * @param {Record<string, number>} units  what may stand behind it, and what it then is times
 * @returns {number}  NaN: no number, or a unit of another kind
 */
export function parse(text, units) {
  const said = text.trim().replace(/[\u00a0\u202f]/g, " ").replace(/^[~≈]\s*/, "");
  const found = /^([+-]?[\d., ]*\d\.?(?:e[+-]?\d+)?)\s*(.*)$/i.exec(said);
  if (!found) return NaN;
  const unit = found[2].trim().toLowerCase().replace(/\s+/g, " ");
  if (!Object.hasOwn(units, unit)) return NaN;
  let digits = found[1].replace(/ /g, "").replace(/,(?=\d{3}(?:\D|$))/g, "");
  digits = digits.replace(",", ".");
  return /^[+-]?\d*\.?\d+\.?(e[+-]?\d+)?$/i.test(digits) ? Number(digits) * units[unit] : NaN;
}

/**
 * @param {HTMLElement} question
 * @param {HTMLFormElement} form
 * @returns {{ready: string, right: boolean, picked: string[], value: number}}
 *   ready: what is still asked for, or ""; picked: the options chosen; value: of a number
 */
export function grade(question, form) {
  const { type, key = "", low, high, need } = question.dataset;
  const units = JSON.parse(question.dataset.units ?? "{}");
  const ask = /** @type {HTMLElement} */ (form.querySelector(".tbt-ask"));
  const fields = /** @type {HTMLInputElement[]} */ ([...ask.querySelectorAll("input,select,textarea")]);
  const result = { ready: "", right: false, picked: /** @type {string[]} */ ([]), value: NaN };
  if (type === "single" || type === "multi" || type === "line") {
    result.picked = fields.filter((field) => field.checked).map((field) => field.value);
    if (!result.picked.length) result.ready = type === "line" ? "Pick a line." : "Pick an answer.";
    result.right = result.picked.join(" ") === key;
  } else if (type === "order") {
    const places = fields.map((field) => field.value);
    if (new Set(places).size < places.length || places.includes("")) {
      result.ready = "Give each a place of its own.";
    }
    result.right = places.join(" ") === key;
  } else if (type === "number") {
    result.value = parse(fields[0].value, units);
    if (Number.isNaN(result.value)) result.ready = "Write a number, such as 1.2k or 3e5.";
    result.right = result.value >= Number(low) && result.value <= Number(high);
  } else if (type === "sketch") {
    const points = JSON.parse(question.dataset.points ?? "[]");
    const values = fields.map((field) => parse(field.value, units));
    if (values.some(Number.isNaN)) result.ready = "Give each point a number.";
    const good = values.filter((value, i) => value >= points[i][2] && value <= points[i][3]);
    result.value = good.length;
    result.right = good.length >= Number(need);
  } else if (!fields[0].value.trim()) {
    result.ready = "Write your answer first.";
  }
  return result;
}
