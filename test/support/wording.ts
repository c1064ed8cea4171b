interface Construction {
  readonly pattern: RegExp;
  /** What a reader trips over, and what to write. */
  readonly instead: string;
}

/** Constructions that public texts do not use; names in backticks are no text. */
const constructions: readonly Construction[] = [
  {
    pattern: /(?:^|[.:;] )(?:what|who|whose|why|where|how(?! to\b)) /i,
    instead: 'a clause in place of a noun hides the subject: "Usage in the period", "Source of the role"',
  },
  {
    pattern: /^(?:it|they|those|(?:this|that|these) (?:is|are|was|were)) /i,
    instead: 'a pronoun at the start has nothing to refer to: name the thing',
  },
  {
    pattern: /(?:^|[.:;] )one (?:that|which|with|is|has|was) /i,
    instead: 'a pronoun as the subject: repeat the noun',
  },
  {
    pattern: /\b(?:nobody|somebody|anybody|everybody|who(?:so)?ever|those (?:who|that))\b/i,
    instead: 'a person or program has a role: caller, owner, tenant, process, operator',
  },
  { pattern: /\b(?:told|tells?|telling)\b/i, instead: 'show, report, publish, send' },
  { pattern: /\bask(?:s|ed|ing)?\b/i, instead: 'request, prompt, signal, need approval' },
  { pattern: /\b(?:says?|said)\b/i, instead: 'state, report, specify' },
  {
    pattern: /\blook(?:s|ed|ing)? (?:at|after|for)\b|\b(?:later|last|next|a) look\b/i,
    instead: 'show, check, poll, maintain, search',
  },
  { pattern: /\bkept\b/i, instead: 'stored, cached' },
  { pattern: /\b(?:stands?|stood)\b/i, instead: 'is, remains' },
  { pattern: /\b(?:go|goes|going|went|gone) (?:on|to)\b/i, instead: 'continue, connect' },
  { pattern: /\bbeside\b/i, instead: 'in addition to, next to' },
  { pattern: /\b(?:elsewhere|here)\b/i, instead: 'in this process, in another system: name it' },
  { pattern: /\bwhole\b/i, instead: 'complete; tenant-wide' },
  { pattern: /\bplaces?\b/i, instead: 'slot, queue position, location, offset; "replaces" for "takes the place of"' },
  { pattern: /\brooms?\b/i, instead: 'headroom' },
  { pattern: /\bdoors?\b/i, instead: 'entry point, protocol' },
  { pattern: /\blapses?\b/i, instead: 'expire' },
  { pattern: /\bsigns? of life\b/i, instead: 'heartbeat' },
  { pattern: /\bset aside\b/i, instead: 'a reservation, with its noun' },
  { pattern: /\bstretch(?:es)? of time\b/i, instead: 'time range, period' },
  {
    pattern: /(?<!\b(?:json|per|command|one) )\blines?\b/i,
    instead: 'queue, unless it is a line of text ("one entry per line")',
  },
  { pattern: /\bmembers?\b/i, instead: 'property, field' },
  {
    pattern: /\banswer(?:s|ed|ing)?\b/i,
    instead: 'response (HTTP, a model), result (a tool), reply (a person)',
  },
];

/** What is not plain in a public text, a sentence each. */
export const wordingFaults = (text: string): readonly string[] => {
  const words = text.replaceAll(/`[^`]*`/g, '``');
  return constructions
    .map(({ pattern, instead }) => ({ match: pattern.exec(words), instead }))
    .filter(({ match }) => match !== null)
    .map(({ match, instead }) => `"${match?.[0].trim()}" in "${text}": ${instead}`);
};
