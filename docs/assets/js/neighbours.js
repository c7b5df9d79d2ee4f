// @ts-check
/** The links to the card before and the one after, within the filter that the reader came from. */

/**
 * Within a filter of the list (?level=L3&kind=Debug), the neighbours are those of the filter.
 * @param {string} name
 */
export async function addNeighbours(name) {
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
    const old = document.querySelector(`.tbt-around [data-rel="${rel}"]`);
    const made = document.createElement(found ? "a" : "span");
    made.dataset.rel = rel;
    if (found && made instanceof HTMLAnchorElement) {
      made.href = `../${found[0]}/${location.search}`;
      made.rel = rel;
      made.textContent = `${word}: ${found[1]}`;
    }
    old?.replaceWith(made);
  }
}
