// Made where a text needs it: ICU takes milliseconds to load its rules, which every start would wait for.
let segmenter: Intl.Segmenter | null = null;

/** What a reader sees as single characters, one after another: grapheme clusters of Unicode Standard Annex 29. */
export const clusters = (text: string): Intl.Segments => {
  segmenter ??= new Intl.Segmenter();
  return segmenter.segment(text);
};
