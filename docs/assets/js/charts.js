// @ts-check
/**
 * Replaces the static picture of a figure by Plotly when it comes near the screen.
 *
 * A figure is <div class="tbt-plot" data-figure="ID" data-version="HASH">; its data is
 * ../data/ID.json, made by harness/render/figure.py, in which colours are CSS variables
 * ("var(--tbt-vllm)" or "var(--tbt-vllm) 0.2"). Plotly is fetched once, and only if a figure comes
 * near. Whatever fails, the static picture stays.
 *
 * A figure with levels (layout.meta.levels: their names) shows the traces of one of them, those
 * whose meta.level is its number, and those of none; a slider above it picks the level.
 *
 * @typedef {{data: any[], layout: Record<string, any>}} Figure
 * @typedef {HTMLElement & {tbtFigure?: Figure, tbtLevel?: number}} Plot
 */

const PLOTLY = new URL("../vendor/plotly-cartesian-4.1.1.min.js", import.meta.url);
const DATA = new URL("../data/", import.meta.url);
const NEAR = "300px";
const CONFIG = {
  showSendToCloud: false, // Plotly's default uploads the chart to its cloud
  displaylogo: false,
  responsive: true,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
};

/** @type {Promise<any> | undefined} */
let plotly;

/** @returns {Promise<any>} the one Plotly of the page */
function loadPlotly() {
  plotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = PLOTLY.href;
    script.onload = () => resolve(/** @type {any} */ (window).Plotly);
    script.onerror = () => reject(new Error("Plotly could not be loaded"));
    document.head.append(script);
  });
  return plotly;
}

/**
 * Resolves CSS variables to the colours of the current scheme, all through a figure.
 * @param {any} value
 * @param {CSSStyleDeclaration} style
 * @returns {any}
 */
function resolve(value, style) {
  if (Array.isArray(value)) return value.map((item) => resolve(item, style));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolve(v, style)]));
  }
  const found = typeof value === "string" && /^var\((--[\w-]+)\)(?: ([\d.]+))?$/.exec(value);
  if (!found) return value;
  const hex = style.getPropertyValue(found[1]).trim();
  if (found[2] === undefined) return hex;
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return `rgba(${r},${g},${b},${found[2]})`;
}

/**
 * Draws, or draws again in the current scheme.
 * @param {Plot} plot
 */
async function draw(plot) {
  const Plotly = await loadPlotly();
  const style = getComputedStyle(document.body);
  const figure = resolve(plot.tbtFigure, style);
  figure.data = figure.data.filter((trace) => (trace.meta?.level ?? plot.tbtLevel) === plot.tbtLevel);
  figure.layout.font = { family: style.fontFamily, ...figure.layout.font };
  figure.layout.hoverlabel = {
    bgcolor: style.getPropertyValue("--tbt-surface").trim(),
    font: { color: style.getPropertyValue("--tbt-ink").trim() },
  };
  let stage = plot.querySelector(".tbt-stage");
  if (!stage) {
    stage = document.createElement("div");
    stage.className = "tbt-stage";
    plot.append(stage);
  }
  await Plotly.react(stage, figure.data, figure.layout, CONFIG);
  plot.classList.add("tbt-live");
  plot.setAttribute("role", "group"); // no longer one picture: its parts take the focus
}

/**
 * Fills the place above a figure with levels with a slider. Arrow keys move it, as any range input.
 * @param {Plot} plot
 */
function addSlider(plot) {
  const levels = plot.tbtFigure?.layout.meta?.levels;
  const place = plot.previousElementSibling;
  if (!levels || !place) return;
  const label = document.createElement("label");
  const slider = document.createElement("input");
  Object.assign(slider, { type: "range", min: 0, max: levels.length - 1, value: plot.tbtLevel });
  const chosen = document.createElement("output");
  const tell = () => {
    chosen.textContent = levels[Number(slider.value)];
    slider.setAttribute("aria-valuetext", levels[Number(slider.value)]);
  };
  slider.addEventListener("input", () => {
    plot.tbtLevel = Number(slider.value);
    tell();
    draw(plot);
  });
  tell();
  label.append("Level ", slider);
  place.replaceChildren(label, chosen);
}

/** @param {Plot} plot */
async function show(plot) {
  try {
    const url = new URL(`${plot.dataset.figure}.json?v=${plot.dataset.version}`, DATA);
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(`${url}: HTTP ${answer.status}`);
    plot.tbtFigure = await answer.json();
    plot.tbtLevel = plot.tbtFigure?.layout.meta?.start;
    await draw(plot);
    addSlider(plot);
  } catch (error) {
    plot.querySelector(".tbt-stage")?.remove();
    plot.classList.remove("tbt-live");
    plot.setAttribute("role", "img");
    console.warn("The static picture stays:", error);
  }
}

const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watcher.unobserve(entry.target);
      show(/** @type {Plot} */ (entry.target));
    }
  },
  { rootMargin: NEAR },
);

/** Every plot that has been begun. @type {Set<Plot>} */
const begun = new Set();

/** Finds the figures of the page that is now shown; forgets those of a page that was left. */
function start() {
  for (const plot of begun) {
    if (plot.isConnected) continue;
    const stage = plot.querySelector(".tbt-stage");
    if (stage) /** @type {any} */ (window).Plotly?.purge(stage);
    begun.delete(plot);
  }
  for (const plot of /** @type {NodeListOf<Plot>} */ (document.querySelectorAll(".tbt-plot"))) {
    if (begun.has(plot)) continue;
    begun.add(plot);
    watcher.observe(plot);
  }
}

/** Opens the <details> that a link or the address points into. */
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
}

const pages = /** @type {any} */ (window).document$;
if (pages) pages.subscribe(start);
else start();
openTarget();
window.addEventListener("hashchange", openTarget);

new MutationObserver(() => {
  for (const plot of begun) if (plot.tbtFigure) draw(plot);
}).observe(document.body, { attributes: true, attributeFilter: ["data-md-color-scheme"] });
