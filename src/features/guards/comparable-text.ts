/** Texts as denied terms are compared with them: one form for everything that reads alike. */

// A run of combining marks is put into order by insertion, so a long hostile one takes quadratic time. Cut after 30, as
// the stream-safe text format of Unicode (UAX #15) does it; half-width voicing marks become combining ones.
const longMarks = /[\p{M}\uff9e\uff9f]{30}/gu;
const joiner = '\u034f';

/**
 * Characters that show nothing: zero-width ones, joiners, soft hyphens, direction marks, variation selectors, marks of
 * annotations, and controls but those that are white space.
 */
const invisible = /(?:(?![\t-\r\u0085])[\p{Default_Ignorable_Code_Point}\p{Cc}\ufff9-\ufffb])+/gu;
const whiteSpace = /[\s\u0085]+/g;
// Most texts have single spaces alone, and looking is a good deal cheaper than replacing.
const unevenSpace = /[^\S ]| {2}|\u0085/;
const beyondPlain = /[^\t-\r -~]/;

/** Whether a text has nothing but visible ASCII and white space. */
export const isPlain = (text: string): boolean => !beyondPlain.test(text);

const evenSpaces = (text: string): string => (unevenSpace.test(text) ? text.replace(whiteSpace, ' ') : text);

/** NFKC, without case, without invisible characters, runs of white space as one space. Linear in the text. */
export const comparable = (text: string): string => {
  if (isPlain(text)) return evenSpaces(text.toLowerCase());
  const folded = text
    .replace(invisible, '')
    .replace(longMarks, `$&${joiner}`)
    .normalize('NFKC')
    // Both ways, so that letters with several lower-case forms meet: ß and SS, ς and σ.
    .toUpperCase()
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .replace(invisible, '');
  return evenSpaces(folded);
};
