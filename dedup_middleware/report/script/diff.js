// The difference of two texts: sentence aligned with sentence, and then word with word.

// Cells of a table for an alignment; texts with more are shown without one.
const MAX_CELLS = 4_000_000;
// Sentences that have less in common, 0-1, are different ones.
const ALIKE = 0.4;
const segmenter = globalThis.Intl?.Segmenter ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;

/** Return the words of `text`, each with its key for comparisons and the white space after it. */
function wordsOf(text) {
  const parts = segmenter
    ? Array.from(segmenter.segment(text), (part) => part.segment)
    : (text.match(/\s+|\p{Script=Han}|[\p{L}\p{M}\p{N}]+|./gsu) ?? []);
  const found = [];
  for (const part of parts) {
    if (/^\s+$/.test(part) && found.length) found.at(-1).space += part;
    else found.push({ text: part, key: part.normalize("NFKC").toLowerCase(), space: "" });
  }
  return found;
}

/**
 * Return pairs of places, both ascending, of two lists of `n` and `m` things, with the largest sum of weights, and
 * null if the lists are too long. `weight` of two places is 0 to 1: 0 for things that must not be paired.
 */
function alignment(n, m, weight) {
  let start = 0;
  let end = 0;
  while (start < n && start < m && weight(start, start) === 1) start += 1;
  while (end < n - start && end < m - start && weight(n - 1 - end, m - 1 - end) === 1) end += 1;
  const [rows, columns] = [n - start - end, m - start - end];
  if ((rows + 1) * (columns + 1) > MAX_CELLS) return null;
  // The best sum of what is left, from each cell on.
  const width = columns + 1;
  const best = new Float32Array((rows + 1) * width);
  const weights = new Float32Array(rows * columns);
  for (let i = rows - 1; i >= 0; i -= 1) {
    for (let j = columns - 1; j >= 0; j -= 1) {
      const cell = i * width + j;
      const paired = (weights[i * columns + j] = weight(start + i, start + j));
      best[cell] = Math.max(best[cell + 1], best[cell + width], paired && paired + best[cell + width + 1]);
    }
  }
  const found = Array.from({ length: start }, (_, place) => [place, place]);
  for (let i = 0, j = 0; i < rows && j < columns; ) {
    const cell = i * width + j;
    const paired = weights[i * columns + j];
    if (paired && best[cell] === Math.fround(paired + best[cell + width + 1])) found.push([start + i++, start + j++]);
    else if (best[cell] === best[cell + width]) i += 1;
    else j += 1;
  }
  for (let place = end; place > 0; place -= 1) found.push([n - place, m - place]);
  return found;
}

/** Return the share that two lists of words have in common, 0-1, by the counts of their keys. */
function likeness(one, other) {
  let common = 0;
  for (const [key, count] of one.counts) common += Math.min(count, other.counts.get(key) ?? 0);
  return (2 * common) / (one.words.length + other.words.length || 1);
}

function sentenceOf([mark, text]) {
  const words = wordsOf(visible(text));
  const counts = new Map();
  for (const { key } of words) counts.set(key, (counts.get(key) ?? 0) + 1);
  return { mark, words, counts, key: words.map(({ key }) => key).join(" ") };
}

/** Return rows of two sentences, of which one may be missing, from the marked sentences of a page and its original. */
function aligned(page, original) {
  const [ones, others] = [page.map(sentenceOf), original.map(sentenceOf)];
  const weight = (i, j) => {
    if (ones[i].key === others[j].key) return 1;
    const alike = likeness(ones[i], others[j]);
    // Both are repeated, but in other characters, as in simplified and traditional Chinese.
    const isRepeated = ones[i].mark === "=" && others[j].mark === "=";
    return alike >= ALIKE ? 0.99 * alike : isRepeated ? 0.1 : 0;
  };
  const rows = [];
  let [i, j] = [0, 0];
  for (const [one, other] of [...(alignment(ones.length, others.length, weight) ?? []), [ones.length, others.length]]) {
    while (i < one) rows.push({ one: ones[i++], other: null });
    while (j < other) rows.push({ one: null, other: others[j++] });
    if (i < ones.length && j < others.length) rows.push({ one: ones[i++], other: others[j++] });
  }
  return rows;
}

/** Return the words of both sentences as runs of text, each with whether the other sentence lacks it. */
function runsOf(one, other) {
  const found = alignment(one.words.length, other.words.length, (i, j) => Number(one.words[i].key === other.words[j].key)) ?? [];
  return [one, other].map(({ words }, side) => {
    const common = new Set(found.map((places) => places[side]));
    const runs = [];
    words.forEach(({ text, space }, place) => {
      const isOwn = !common.has(place);
      if (runs.at(-1)?.isOwn === isOwn) runs.at(-1).text += text;
      else runs.push({ text, isOwn, space: "" });
      const isWithin = !common.has(place + 1) === isOwn && place + 1 < words.length;
      runs.at(-1)[isWithin ? "text" : "space"] += space;
    });
    return runs;
  });
}
