// @ts-check
/**
 * The picture of a sketch: a press or a drag sets the number of the nearest x. The numbers in the
 * entries are the answer; the picture only shows them and is hidden from screen readers.
 */

import { parse } from "./grade.js";

const WIDTH = 600;
const HEIGHT = 260;
const EDGE = 28;
const LEFT = 64; // room for the numbers of the scale
const SVG = "http://www.w3.org/2000/svg";

/** @param {HTMLElement} question @returns {number[][]} x, y, and the band that is right */
const pointsOf = (question) => JSON.parse(question.dataset.points ?? "[]");

/** @param {HTMLElement} question @returns {HTMLInputElement[]} */
const entriesOf = (question) => [...question.querySelectorAll(".tbt-entries input")];

/** The top of the scale: well above the highest, at a round number, so that it tells nothing. */
function top(points) {
  const high = 1.7 * Math.max(...points.map(([, y]) => y));
  const power = 10 ** Math.floor(Math.log10(high));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= high) ?? high;
}

/** @param {number} i @param {number} count */
const across = (i, count) => LEFT + ((WIDTH - LEFT - EDGE) * i) / Math.max(1, count - 1);

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {string} [said]
 */
function part(name, attributes, said = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.textContent = said;
  return made;
}

/** A line through values; those that are no number are left out. */
function curve(values, most, name) {
  const at = (value) => HEIGHT - EDGE - ((HEIGHT - 2 * EDGE) * Math.min(value, most)) / most;
  const spots = values.flatMap((value, i) =>
    Number.isFinite(value) ? [[across(i, values.length), at(value)]] : [],
  );
  const group = part("g", { class: name });
  group.append(part("polyline", { points: spots.map((spot) => spot.join(",")).join(" ") }));
  for (const [x, y] of spots) group.append(part("circle", { cx: x, cy: y, r: 5 }));
  return group;
}

/** @param {HTMLElement} question */
function redraw(question) {
  const units = JSON.parse(question.dataset.units ?? "{}");
  const values = entriesOf(question).map((entry) => parse(entry.value, units));
  const old = question.querySelector(".tbt-own");
  old?.replaceWith(curve(values, top(pointsOf(question)), "tbt-own"));
}

/** @param {HTMLElement} question */
export function addPicture(question) {
  const points = pointsOf(question);
  const most = top(points);
  const svg = /** @type {SVGSVGElement} */ (part("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}` }));
  for (const share of [0, 0.5, 1]) {
    const y = HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * share;
    svg.append(part("line", { x1: LEFT, x2: WIDTH - EDGE, y1: y, y2: y }));
    const place = { x: LEFT - 10, y: y + 5, "text-anchor": "end" };
    svg.append(part("text", place, `${Number((most * share).toPrecision(3))}`));
  }
  points.forEach(([x], i) => {
    const place = { x: across(i, points.length), y: HEIGHT - 8, "text-anchor": "middle" };
    svg.append(part("text", place, `${x}`));
  });
  svg.append(part("g", { class: "tbt-own" }));
  const set = (/** @type {PointerEvent} */ event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const y = ((event.clientY - box.top) / box.height) * HEIGHT;
    const places = points.map((_, i) => Math.abs(across(i, points.length) - x));
    const entry = entriesOf(question)[places.indexOf(Math.min(...places))];
    if (entry.disabled) return;
    const share = Math.min(1, Math.max(0.01, (HEIGHT - EDGE - y) / (HEIGHT - 2 * EDGE)));
    entry.value = String(Number((share * most).toPrecision(2)));
    entry.dispatchEvent(new Event("input", { bubbles: true }));
  };
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    set(event);
  });
  svg.addEventListener("pointermove", (event) => {
    if (event.buttons) set(event);
  });
  question.querySelector(".tbt-draw")?.append(svg);
  const form = question.querySelector("form");
  form?.addEventListener("input", () => redraw(question));
  form?.addEventListener("reset", () => {
    question.querySelector(".tbt-recorded")?.remove();
    setTimeout(() => redraw(question)); // the values are reset after the event
  });
}

/** The recorded curve over the reader's own. @param {HTMLElement} question */
export function drawKey(question) {
  const points = pointsOf(question);
  const values = points.map(([, y]) => y);
  question.querySelector(".tbt-recorded")?.remove();
  question.querySelector(".tbt-draw svg")?.append(curve(values, top(points), "tbt-recorded"));
}
