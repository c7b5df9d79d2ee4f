// @ts-check
/**
 * What the reader has answered, kept in this browser alone: one entry of localStorage a question.
 *
 * A question that was missed, hinted at or guessed is due again after 1, 3, 7, 21 and 60 days, a
 * step each time that it is answered well. An entry is void once the question's key has changed.
 *
 * @typedef {object} Entry
 * @property {string} hash  of what graded the answer
 * @property {boolean} right  at the first try
 * @property {number} sure  0 to 2; -1: not asked
 * @property {number} hints  how many were opened
 * @property {number} step  place in STEPS of the next review; -1: not in review
 * @property {number} due  the day of it, since 1970
 */

const PREFIX = "tbt:1:";
export const STEPS = [1, 3, 7, 21, 60];
const DAY_MS = 86_400_000;

/** @returns {number} today, as days since 1970 in the reader's own time */
export function today() {
  const now = new Date();
  return Math.floor((now.getTime() - now.getTimezoneOffset() * 60_000) / DAY_MS);
}

/**
 * @param {string} card
 * @param {string} question
 * @param {string} hash
 * @returns {Entry | undefined}
 */
export function read(card, question, hash) {
  try {
    const entry = JSON.parse(localStorage.getItem(`${PREFIX}${card}:${question}`) ?? "null");
    return entry?.hash === hash ? entry : undefined;
  } catch {
    return undefined; // storage is off, or the entry is not ours
  }
}

/**
 * Keeps an answer, and says when the question comes back.
 * @param {string} card
 * @param {string} question
 * @param {{hash: string, right: boolean, sure: number, hints: number}} answer
 */
export function keep(card, question, answer) {
  const before = read(card, question, answer.hash);
  const weak = !answer.right || answer.hints > 0 || answer.sure === 0;
  let step = before?.step ?? -1;
  if (weak) step = 0;
  else if (step >= 0 && (before?.due ?? 0) <= today()) step = step + 1 < STEPS.length ? step + 1 : -1;
  const moved = weak || step !== before?.step;
  const due = step < 0 ? 0 : moved ? today() + STEPS[step] : before?.due ?? 0;
  try {
    localStorage.setItem(`${PREFIX}${card}:${question}`, JSON.stringify({ ...answer, step, due }));
  } catch {
    // storage is off or full: the card works without
  }
}

/** @param {Entry | undefined} entry @returns {boolean} whether it is to be reviewed by now */
export function isDue(entry) {
  return entry !== undefined && entry.step >= 0 && entry.due <= today();
}

/** @returns {Record<string, string>} all that is kept, as it is stored */
export function all() {
  /** @type {Record<string, string>} */
  const found = {};
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(PREFIX)) found[key] = localStorage.getItem(key) ?? "";
    }
  } catch {
    // storage is off: nothing is kept
  }
  return found;
}

/**
 * Takes what another browser exported. Throws where it is nothing of ours.
 * @param {string} text
 * @returns {number} how many entries
 */
export function take(text) {
  const entries = Object.entries(JSON.parse(text));
  const good = entries.every(
    ([key, value]) => key.startsWith(PREFIX) && typeof value === "string" && JSON.parse(value).hash,
  );
  if (!good || !entries.length) throw new Error("no progress of this site");
  for (const [key, value] of entries) localStorage.setItem(key, /** @type {string} */ (value));
  return entries.length;
}

export function forget() {
  for (const key of Object.keys(all())) localStorage.removeItem(key);
}
